package integration

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// foreigners are objects of others under names that clusters need, which are called after their kinds.
func foreigners(namespace string) map[string]client.Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	return map[string]client.Object{
		"Service": &corev1.Service{
			ObjectMeta: named("service-head"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		},
		"Secret":        &corev1.Secret{ObjectMeta: named("secret-token"), StringData: map[string]string{"a": "b"}},
		"NetworkPolicy": &networkingv1.NetworkPolicy{ObjectMeta: named("networkpolicy-network")},
	}
}

// nameTaken makes a cluster beside a foreign object. The status names the object, and the operator leaves it alone.
func (r *reasons) nameTaken(t *testing.T, kind string, foreign client.Object) {
	must(t, shared.Create(t.Context(), foreign))
	cluster := lone(foreign.GetNamespace(), strings.ToLower(kind), v1beta1.RoleHead)
	keepOff(&cluster.Spec.Head.NodeSpec)
	wait := conflicts(t, cluster, foreign.GetName())
	begin := time.Now()
	must(t, shared.Create(t.Context(), cluster))
	r.tell(t, wait(live.Told{Cause: "the name of its " + kind + " is taken", Of: "cluster"}, begin))

	again, ok := foreign.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("a copy of a %T is none", foreign)
	}
	must(t, shared.Get(t.Context(), client.ObjectKeyFromObject(foreign), again))
	if again.GetUID() != foreign.GetUID() || len(again.GetLabels()) > 0 || len(again.GetOwnerReferences()) > 0 {
		t.Errorf("the %s of someone was touched: it has UID %s, labels %v and owners %v",
			kind, again.GetUID(), again.GetLabels(), again.GetOwnerReferences())
	}
}

// conflicts watches for a status that names a foreign object, and gives a function that waits for it.
func conflicts(t *testing.T, of *v1beta1.ComputeCluster, name string) func(told live.Told, begin time.Time) live.Told {
	t.Helper()
	named := func(cluster *v1beta1.ComputeCluster) *metav1.Condition {
		if cluster.Name != of.Name || !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1beta1.ConditionStalled) {
			return nil
		}
		return meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionNameConflict)
	}
	wait := sight(t, of.Namespace, func(cluster *v1beta1.ComputeCluster) bool {
		condition := named(cluster)
		return condition != nil && condition.Reason == reason.NameConflict.Code && strings.Contains(condition.Message, name)
	})
	return func(told live.Told, begin time.Time) live.Told {
		t.Helper()
		seen, at := wait("the status to name " + name)
		condition := named(seen)
		told.Reason, told.Message, told.Seconds = condition.Reason, condition.Message, at.Sub(begin).Seconds()
		return told
	}
}

// workerNameTaken takes the name of a worker while its group is suspended. Once it is free, the worker is made.
func (r *reasons) workerNameTaken(t *testing.T, namespace string) {
	cluster := lone(namespace, "staff", v1beta1.RoleWorker)
	keepOff(&cluster.Spec.WorkerGroups[0].NodeSpec)
	must(t, shared.Create(t.Context(), cluster))
	name := client.ObjectKeyFromObject(cluster)
	worker := podsLeft(t, name, v1beta1.RoleWorker, 1)[0]
	suspend := func(yes bool) {
		t.Helper()
		must(t, shared.Edit(t.Context(), name, func(spec *v1beta1.ComputeClusterSpec) {
			spec.WorkerGroups[0].Suspend = new(yes)
		}))
	}
	suspend(true)
	podsLeft(t, name, v1beta1.RoleWorker, 0)
	foreign := podWith(namespace, nil)
	foreign.GenerateName, foreign.Name = "", worker.Name
	must(t, shared.Create(t.Context(), foreign))
	wait := conflicts(t, cluster, worker.Name)
	begin := time.Now()
	suspend(false)
	r.tell(t, wait(live.Told{Cause: "the name of a pod is taken", Of: v1beta1.RoleWorker}, begin))
	must(t, shared.Delete(t.Context(), foreign, client.GracePeriodSeconds(0)))
	if again := podsLeft(t, name, v1beta1.RoleWorker, 1)[0]; again.Name != worker.Name || again.UID == worker.UID {
		t.Errorf("the worker is %s, %s, it was %s, %s", again.Name, again.UID, worker.Name, worker.UID)
	}
}
