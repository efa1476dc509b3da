package cluster_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// spread puts heads on the node head and workers on the node old, and from when move is
// called, workers on the node new.
func spread(w *testkit.World) (move func()) {
	node := "old"
	w.Kubelet.Node = func(pod *corev1.Pod) string {
		if pod.Labels[v1beta1.LabelRole] == v1beta1.RoleHead {
			return "head"
		}
		return node
	}
	return func() { node = "new" }
}

// moved asserts that every worker is on another node than before.
func moved(w *testkit.World) {
	w.Helper()
	for _, pod := range w.Workers("demo", "cpu") {
		if pod.Spec.NodeName != "new" {
			w.Fatalf("pod %s is on node %s", pod.Name, pod.Spec.NodeName)
		}
	}
	back(w, 1)
}

func TestNodes(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "node-going", Run: nodeGoing},
		testkit.Scenario{Name: "node-cordoned", Run: func(w *testkit.World) {
			spread(w)
			started(w, "demo", testkit.Group("cpu", 2))
			w.After(time.Minute)
			kept := testkit.UIDs(w.Pods("demo"))
			w.Taint("old", corev1.TaintNodeUnschedulable)
			w.After(10 * time.Minute)
			w.Expect("demo", ready)
			untouched(w, kept, w.Pods("demo"))
			budgets(w, 1)
		}},
		testkit.Scenario{Name: "head-node-cordoned", Run: func(w *testkit.World) {
			spread(w)
			started(w, "demo", testkit.Group("cpu", 2))
			w.After(2 * time.Minute)
			budgets(w, 1)
			w.Taint("head", corev1.TaintNodeUnschedulable)
			w.After(time.Minute)
			budgets(w, 1)
			w.After(10 * time.Minute)
			budgets(w, 0)
			back(w, 1)
		}},
		testkit.Scenario{Name: "head-node-going", Run: func(w *testkit.World) {
			spread(w)
			started(w, "demo", testkit.Group("cpu", 2))
			w.After(2 * time.Minute)
			budgets(w, 1)
			w.Taint("head", "cloud.google.com/impending-node-termination")
			w.Settle()
			budgets(w, 0)
			back(w, 1)
		}},
	)
}

// TestCordonedHeadNode: where the node does not say since when it is cordoned, the head's budget holds for its time too.
func TestCordonedHeadNode(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "head-node-cordoned-without-a-time", NoPast: true, Run: func(w *testkit.World) {
			spread(w)
			started(w, "demo", testkit.Group("cpu", 2))
			w.After(2 * time.Minute)
			w.Cordon("head")
			w.After(time.Minute)
			budgets(w, 1)
			w.After(10 * time.Minute)
			budgets(w, 0)
			back(w, 1)
		}},
	)
}

func TestSilentNodes(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "node-silent", Run: func(w *testkit.World) {
			move := spread(w)
			started(w, "demo", testkit.Group("cpu", 2))
			move()
			w.Silence("old")
			w.Settle()
			moved(w)
			w.After(10 * time.Minute) // by then it is told of those that still hang there
		}},
		testkit.Scenario{Name: "head-node-silent", Run: func(w *testkit.World) {
			spread(w)
			started(w, "demo", testkit.Group("cpu", 2))
			w.Kubelet.Node = nil
			w.Silence("head")
			w.Settle()
			back(w, 2)
			w.After(10 * time.Minute)
		}},
		testkit.Scenario{Name: "node-of-redis-going", Run: redisNode},
	)
}

func TestOwn(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "secret-of-ones-own", Run: ownToken},
		testkit.Scenario{Name: "metadata-of-ones-own", Run: ownMetadata},
	)
}

func budgets(w *testkit.World, want int) {
	w.Helper()
	var list policyv1.PodDisruptionBudgetList
	w.Must(w.Client.List(w.Ctx, &list))
	if len(list.Items) != want {
		w.Fatalf("%d budgets, want %d", len(list.Items), want)
	}
}

// ownToken brings a Secret of one's own: too late, then well, then changed.
func ownToken(w *testkit.World) {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 2))
	cluster.Spec.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationToken, SecretName: "mine"}
	w.Create(cluster)
	w.Settle()
	w.Expect("demo", "Ready=False TokenSecretInvalid", "Stalled=False")
	sizes(w, "demo", map[string]int{"": 0, "cpu": 0})
	secret := &corev1.Secret{ObjectMeta: named("mine"), StringData: map[string]string{v1beta1.TokenKey: strings.Repeat("a", 32)}}
	w.Create(secret)
	w.After(2 * time.Minute)
	w.Expect("demo", ready, "UpToDate=True")
	kept := testkit.UIDs(w.Pods("demo"))
	secret.Data = map[string][]byte{v1beta1.TokenKey: []byte(strings.Repeat("b", 32))}
	w.Must(w.Client.Update(w.Ctx, secret))
	w.After(2 * time.Minute)
	w.Expect("demo", ready, "UpToDate=False TokenChanged")
	untouched(w, kept, w.Pods("demo"))
	w.Delete(w.Head("demo"))
	w.Settle()
	w.Expect("demo", ready, "UpToDate=True")
	epochIs(w, 2)
	w.Read(secret)
	if len(secret.OwnerReferences) > 0 {
		w.Fatalf("the user's Secret was taken")
	}
}

// ownMetadata has a user's labels, annotations and finalizers on what is ours: they stay,
// and a finalizer on a pod or on the cluster is waited for and blocks nothing else.
func ownMetadata(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 2))
	w.Edit("demo", func(c *v1beta1.ComputeCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, "mine", "yes")
		c.Labels, c.Finalizers = map[string]string{"mine": "yes"}, []string{"example.com/mine"}
	})
	worker := w.Workers("demo", "cpu")[0]
	worker.Finalizers, worker.Labels["mine"], worker.Annotations["mine"] = []string{"example.com/mine"}, "yes", "yes"
	w.Must(w.Client.Update(w.Ctx, worker))
	w.Settle()
	w.Delete(worker)
	w.Settle()
	back(w, 1)
	w.Read(worker)
	if !slices.Equal(worker.Finalizers, []string{"example.com/mine"}) || worker.Labels["mine"] != "yes" || worker.Annotations["mine"] != "yes" {
		w.Fatalf("the user's metadata is gone: %+v", worker.ObjectMeta)
	}
	found := w.Cluster("demo")
	if found.Labels["mine"] != "yes" || found.Annotations["mine"] != "yes" || !slices.Equal(found.Finalizers, []string{"example.com/mine"}) {
		w.Fatalf("the user's metadata is gone: %+v", found.ObjectMeta)
	}
	worker.Finalizers = nil
	w.Must(w.Client.Update(w.Ctx, worker))
	w.Delete(found)
	w.Settle()
	if w.Cluster("demo").DeletionTimestamp == (*metav1.Time)(nil) {
		w.Fatalf("the cluster is not on its way out")
	}
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Finalizers = nil })
	w.Settle()
	nothingLeft(w)
}

// nodeGoing has the old node of two busy workers about to go: they are replaced, and drained when their work is done.
func nodeGoing(w *testkit.World) {
	move := spread(w)
	w.Ray.Busy, w.Ray.WorkTakes = all, longer
	started(w, "demo", testkit.Group("cpu", 2))
	move()
	w.Taint("old", "karpenter.sh/disrupted")
	w.Settle()
	draining(w, "cpu", 2)
	sizes(w, "demo", map[string]int{"cpu": 4})
	w.Ray.WorkTakes = 0
	w.After(10 * time.Second)
	moved(w)
}
