package cluster_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestStoreBudget_IsTheHeads: a managed Redis has one while its head has one, unless its own node must be free to go.
func TestStoreBudget_IsTheHeads(t *testing.T) {
	going, cordoned := cluster.Node{Going: "karpenter.sh/disrupted"}, cluster.Node{Closed: true, Cordoned: now.Add(-299 * time.Second)}
	for name, test := range map[string]struct {
		store *v1beta1.ControlStore
		node  string
		nodes map[string]cluster.Node
		edit  func(*cluster.Seen)
		want  bool
	}{
		"beside its head":                      {managedRedis(), "node-1", map[string]cluster.Node{"node-1": {}}, nil, true},
		"nobody knows its node":                {managedRedis(), "", nil, nil, true},
		"a Redis of the user's":                {givenRedis(), "", nil, nil, false},
		"the head has none yet":                {managedRedis(), "", nil, noBudget, false},
		"the node of both goes":                {managedRedis(), "node-1", map[string]cluster.Node{"node-1": going}, nil, false},
		"the head's node goes":                 {managedRedis(), "node-2", map[string]cluster.Node{"node-1": going, "node-2": {}}, nil, false},
		"its own node goes":                    {managedRedis(), "node-2", map[string]cluster.Node{"node-1": {}, "node-2": going}, nil, false},
		"its own node is cordoned for 299 s":   {managedRedis(), "node-2", map[string]cluster.Node{"node-2": cordoned}, nil, true},
		"its own node is cordoned for minutes": {managedRedis(), "node-2", map[string]cluster.Node{"node-2": {Closed: true, Cordoned: now.Add(-5 * time.Minute)}}, nil, false},
	} {
		of := demo()
		of.Spec.ControlStore = test.store
		seen := given(1)
		seen.Store, seen.Nodes = serving(), test.nodes
		seen.Store.Node = test.node
		if test.edit != nil {
			test.edit(&seen)
		}
		plan := decide(of, seen)
		have := false
		for _, fixing := range plan.Fixtures {
			have = have || fixing.Kind == "PodDisruptionBudget of the store" && fixing.Act == reconcile.Make
		}
		if have != test.want {
			t.Errorf("%s: a budget %v, want %v", name, have, test.want)
		}
		if apart := test.node == "node-2" && test.nodes["node-1"].Going == ""; apart && (plan.Wake == 0 || plan.Wake > time.Minute) {
			t.Errorf("%s: its node is looked at after %s", name, plan.Wake)
		}
	}
}

// redisNode lets a managed Redis move to a node that goes: its budget follows it, as no watch tells of its pod.
func redisNode(w *testkit.World) {
	spread(w)
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	cluster.Spec.ControlStore = managedRedis()
	w.Create(cluster)
	w.Settle()
	bind(w)
	w.Settle()
	redisOn(w, "calm")
	w.After(2 * time.Minute)
	budgets(w, 2)
	redisOn(w, "busy")
	w.After(2 * time.Minute)
	budgets(w, 2)
	w.Taint("busy", "karpenter.sh/disrupted")
	w.After(time.Minute)
	budgets(w, 1)
	redisOn(w, "")
	w.Settle()
	budgets(w, 2)
}

// redisOn runs the pod of a managed Redis on a node, as a StatefulSet's controller and a scheduler would, or ends it.
func redisOn(w *testkit.World, node string) {
	w.Helper()
	var set appsv1.StatefulSet
	key := types.NamespacedName{Namespace: testkit.Namespace, Name: naming.Store("demo")}
	w.Must(w.Client.Get(w.Ctx, key, &set))
	meta := named(naming.StorePod("demo"))
	meta.Labels = naming.StoreLabels("demo")
	meta.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	if set.Status.ReadyReplicas > 0 {
		w.Force(&corev1.Pod{ObjectMeta: named(meta.Name)})
	}
	set.Status.Replicas, set.Status.ReadyReplicas = 1, 0
	if node != "" {
		w.Create(&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: node, Containers: set.Spec.Template.Spec.Containers}})
		set.Status.ReadyReplicas = 1
	}
	set.Status.ObservedGeneration++ // a change, as its controller makes one for each pod
	w.Must(w.Client.Status().Update(w.Ctx, &set))
}
