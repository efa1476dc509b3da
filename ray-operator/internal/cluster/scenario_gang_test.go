package cluster_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

var volcano = schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}

// together has a cluster placed as a gang.
func together(name v1beta1.SchedulerKind, cluster *v1beta1.ComputeCluster) *v1beta1.ComputeCluster {
	cluster.Spec.Scheduler = &v1beta1.Scheduler{Name: name}
	return cluster
}

// gangIs asserts how many pods demo's scheduler places together.
func gangIs(w *testkit.World, want int64, fields ...string) {
	w.Helper()
	if object := w.Gangs.Of("demo"); object == nil {
		w.Fatal("there is no PodGroup")
	} else if have, _, _ := unstructured.NestedInt64(object.Object, append([]string{"spec"}, fields...)...); have != want {
		w.Fatalf("the gang has %d pods, want %d", have, want)
	}
}

// noGang asserts that demo holds no place with its scheduler.
func noGang(w *testkit.World) {
	w.Helper()
	if w.Gangs.Of("demo") != nil {
		w.Fatal("there is a PodGroup")
	}
}

func resizeTo(w *testkit.World, replicas int32) {
	w.Helper()
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Replicas = &replicas })
	w.Settle()
}

func TestGang(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "placed-resized-suspended-deleted", Run: func(w *testkit.World) {
			w.Gangs.Kind = volcano
			w.Create(together(v1beta1.SchedulerVolcano, testkit.Cluster("demo", testkit.Group("cpu", 2))))
			w.Settle()
			w.Expect("demo", ready)
			gangIs(w, 3, "minMember")
			for _, made := range w.Pods("demo") {
				if made.Spec.SchedulerName != "volcano" || made.Annotations["scheduling.k8s.io/group-name"] != "demo-gang" {
					w.Fatalf("pod %s is not of the gang", made.Name)
				}
			}
			resizeTo(w, 4)
			gangIs(w, 5, "minMember")
			resizeTo(w, 1)
			gangIs(w, 2, "minMember")
			suspend(w, true)
			w.Settle()
			noGang(w)
			suspend(w, false)
			w.Settle()
			w.Expect("demo", ready)
			gangIs(w, 2, "minMember")
			w.Delete(w.Cluster("demo"))
			w.Settle()
			noGang(w)
		}},
		testkit.Scenario{Name: "autoscaled-gang-has-its-minimum", Run: func(w *testkit.World) {
			w.Gangs.Kind = volcano
			w.Create(together(v1beta1.SchedulerVolcano, elastic(func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].MinReplicas = new(int32(1)) })))
			w.Settle()
			scaledTo(w, 5)
			sizes(w, "demo", map[string]int{"cpu": 5})
			gangIs(w, 2, "minMember")
		}},
		testkit.Scenario{Name: "head-lost", Run: func(w *testkit.World) {
			w.Gangs.Kind = volcano
			w.Create(together(v1beta1.SchedulerVolcano, testkit.Cluster("demo", testkit.Group("cpu", 2))))
			w.Settle()
			w.Force(w.Head("demo"))
			w.Settle()
			w.Expect("demo", ready)
			epochIs(w, 2)
			gangIs(w, 3, "minMember")
		}},
	)
}

// TestGang_ThatCannotBeKept: no pod is made that nobody would place together, and the status says what helps.
func TestGang_ThatCannotBeKept(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "scheduler-not-installed", Run: func(w *testkit.World) {
			w.Create(together(v1beta1.SchedulerVolcano, testkit.Cluster("demo", testkit.Group("cpu", 2))))
			w.Settle()
			w.Expect("demo", "Ready=False SchedulerMissing", "Stalled=False")
			if pods := w.Pods("demo"); len(pods) > 0 {
				w.Fatalf("%d pods were made that nobody would place together", len(pods))
			}
			w.Gangs.Kind = volcano
			w.After(time.Minute)
			w.Expect("demo", ready)
			gangIs(w, 3, "minMember")
		}},
		testkit.Scenario{Name: "gang-that-keeps-its-size", Run: func(w *testkit.World) {
			w.Gangs.Kind = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1alpha2", Kind: "PodGroup"}
			size := []string{"schedulingPolicy", "gang", "minCount"}
			w.Create(together(v1beta1.SchedulerKubernetes, testkit.Cluster("demo", testkit.Group("cpu", 2))))
			w.Settle()
			resizeTo(w, 1)
			w.Expect("demo", ready, "UpToDate=False GangFixed")
			gangIs(w, 3, size...)
			suspend(w, true)
			w.Settle()
			suspend(w, false)
			w.Settle()
			w.Expect("demo", ready, "UpToDate=True")
			gangIs(w, 2, size...)
		}},
		testkit.Scenario{Name: "others-object-in-the-place", Run: func(w *testkit.World) {
			w.Gangs.Kind = volcano
			w.Create(testkit.Cluster("other", testkit.Group("cpu", 0)))
			w.Settle()
			taken := &unstructured.Unstructured{}
			taken.SetGroupVersionKind(volcano)
			taken.SetNamespace(testkit.Namespace)
			taken.SetName("demo-gang")
			taken.SetOwnerReferences([]metav1.OwnerReference{
				*metav1.NewControllerRef(w.Cluster("other"), v1beta1.GroupVersion.WithKind("ComputeCluster")),
			})
			w.Gangs.Put(taken)
			w.Create(together(v1beta1.SchedulerVolcano, testkit.Cluster("demo", testkit.Group("cpu", 2))))
			w.Settle()
			w.Expect("demo", "Ready=False NameConflict")
			if w.Pods("demo") != nil || w.Gangs.Of("demo").GetOwnerReferences()[0].Name != "other" {
				w.Fatal("the object of another was touched, or counted on")
			}
		}},
	)
}
