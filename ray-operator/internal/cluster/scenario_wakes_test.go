package cluster_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestWakeRules_AreNeeded(t *testing.T) {
	testkit.NeedWakeRules(t, "ComputeCluster", map[string]func(*testkit.World){
		"a job wakes the cluster that it refers to":     wokenByJob,
		"a policy wakes the clusters beside it":         closedByNamespace,
		"a *v1.Pod wakes its cluster":                   workerDeleted,
		"a *v1.Service wakes its cluster":               losing(&corev1.Service{ObjectMeta: named("demo-head")}),
		"a *v1.PersistentVolumeClaim wakes its cluster": volumeReplaced,
		"a *v1.NetworkPolicy wakes its cluster":         losing(&networkingv1.NetworkPolicy{ObjectMeta: named("demo-network")}),
		"a *v1.Ingress wakes its cluster":               losing(&networkingv1.Ingress{ObjectMeta: named("demo-dashboard")}),
		"a *v1.PodDisruptionBudget wakes its cluster":   losing(&policyv1.PodDisruptionBudget{ObjectMeta: named("demo-head")}),
		"a *v1.StatefulSet wakes its cluster":           setDeleted,
		"a node wakes the clusters on it":               nodeGoing,
	})
}

func TestWakes(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "idle-suspended-and-a-job-comes", Run: wokenByJob, KeepRecord: true},
		testkit.Scenario{Name: "namespace-rules-egress", Run: closedByNamespace},
	)
}

// losing has a cluster with one of everything lose an object, which it gets back.
func losing(obj client.Object) func(*testkit.World) {
	return func(w *testkit.World) {
		furnish(w)
		w.Delete(copyOf(obj))
		w.Settle()
		w.Expect("demo", ready)
		w.Read(copyOf(obj))
	}
}

// wokenByJob is a cluster that is suspended for being idle until a job comes that refers to it.
func wokenByJob(w *testkit.World) {
	used(w, v1beta1.IdleSuspend)
	unused(w)
	w.After(4 * time.Minute)
	gaveBack(w, isIdle)
	w.Ray.IdleSince = time.Time{}
	w.Create(testkit.Job("train"))
	w.Settle()
	back(w, 2)
	w.ExpectJob("train", v1beta1.PhaseSucceeded)
}

// closedByNamespace is a cluster whose namespace comes to limit what all of its pods reach.
func closedByNamespace(w *testkit.World) {
	started(w, "demo")
	closed := &networkingv1.NetworkPolicy{ObjectMeta: named("closed"), Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
	}}
	w.Create(closed)
	w.Settle()
	ours := &networkingv1.NetworkPolicy{ObjectMeta: named("demo-network")}
	w.Read(ours)
	if len(ours.Spec.PolicyTypes) != 1 {
		w.Fatalf("the policy of the cluster has the types %v beside one that rules egress", ours.Spec.PolicyTypes)
	}
	w.Delete(closed)
	w.Settle()
	w.Read(ours)
	if len(ours.Spec.PolicyTypes) != 2 {
		w.Fatalf("the policy of the cluster has the types %v, with none beside it", ours.Spec.PolicyTypes)
	}
}
