package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestRecord: a record that cannot be this cluster's is written again, and nothing of the cluster is touched.
func TestRecord(t *testing.T) {
	for name, text := range map[string]func(*testkit.World) string{
		"of-another": func(w *testkit.World) string {
			w.Create(testkit.Cluster("other"))
			w.Settle()
			w.Force(w.Head("other"))
			w.Settle()
			return w.Cluster("other").Annotations[v1beta1.AnnotationRecord]
		},
		"with-another-head": func(*testkit.World) string { return `{"v":1,"of":"demo-1","epoch":1,"headUID":"another"}` },
		"far-ahead": func(w *testkit.World) string {
			return fmt.Sprintf(`{"v":1,"of":"demo-1","epoch":9000000000000000,"headUID":"%s"}`, w.Head("demo").UID)
		},
	} {
		play(t, testkit.Scenario{Name: name, KeepRecord: true, Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 1))
			before, record := testkit.UIDs(w.Pods("demo")), text(w)
			w.Edit("demo", func(c *v1beta1.ComputeCluster) {
				metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1beta1.AnnotationRecord, record)
			})
			w.Settle()
			w.Expect("demo", ready)
			epochIs(w, 1)
			if after := testkit.UIDs(w.Pods("demo")); !slices.Equal(before, after) {
				w.Fatalf("pods were %v and are %v", before, after)
			}
			of := w.Cluster("demo")
			have, err := cluster.ParseRecord(of.Annotations[v1beta1.AnnotationRecord])
			if err != nil || have.Of != of.UID || have.HeadUID != w.Head("demo").UID {
				w.Fatalf("the record is %+v, %v", have, err)
			}
		}})
	}
	play(t, testkit.Scenario{Name: "none-in-a-first-epoch", Run: func(w *testkit.World) {
		started(w, "demo", testkit.Group("cpu", 1))
		of := w.Cluster("demo")
		if record, is := of.Annotations[v1beta1.AnnotationRecord]; is {
			w.Fatalf("there is a record that nothing needs: %s", record)
		}
		w.Force(w.Head("demo"))
		of.Status = v1beta1.ComputeClusterStatus{}
		w.Must(w.Client.Status().Update(w.Ctx, of))
		w.Settle()
		w.Expect("demo", ready)
		epochIs(w, 2)
	}})
	play(t, testkit.Scenario{Name: "copied-to-a-new-cluster", Run: func(w *testkit.World) {
		started(w, "demo", testkit.Group("cpu", 1))
		w.Force(w.Head("demo"))
		w.Settle()
		copied := testkit.Cluster("copy", testkit.Group("cpu", 1))
		copied.Annotations = map[string]string{v1beta1.AnnotationRecord: w.Cluster("demo").Annotations[v1beta1.AnnotationRecord]}
		w.Create(copied)
		w.Settle()
		w.Expect("copy", ready)
		if epoch := w.Cluster("copy").Status.Epoch; epoch != 1 {
			w.Fatalf("a new cluster begins with epoch %d", epoch)
		}
	}})
}

// TestReclaim: a pod that lost its owner reference gets it back and goes on with its work.
func TestReclaim(t *testing.T) {
	for name, which := range map[string]func(*testkit.World) *corev1.Pod{
		"head":   func(w *testkit.World) *corev1.Pod { return w.Head("demo") },
		"worker": func(w *testkit.World) *corev1.Pod { return w.Workers("demo", "cpu")[0] },
	} {
		play(t, testkit.Scenario{Name: name, Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 2))
			before, stray := testkit.UIDs(w.Pods("demo")), which(w)
			stray.OwnerReferences = nil
			w.Must(w.Client.Update(w.Ctx, stray))
			w.Settle()
			w.Expect("demo", ready, "NameConflict=absent")
			epochIs(w, 1)
			if after := testkit.UIDs(w.Pods("demo")); !slices.Equal(before, after) {
				w.Fatalf("pods were %v and are %v", before, after)
			}
			if owner := metav1.GetControllerOf(which(w)); owner == nil || owner.UID != w.Cluster("demo").UID {
				w.Fatalf("the pod belongs to %+v", owner)
			}
		}})
	}
}

// TestReclaim_LeavesStrangers: a pod with the labels of a cluster's whose name is not of that cluster's UID stays nobody's.
func TestReclaim_LeavesStrangers(t *testing.T) {
	at := naming.Place{Group: "cpu", Slot: 7, Epoch: 1}
	play(t, testkit.Scenario{Name: "stranger", Run: func(w *testkit.World) {
		w.Kubelet.Idle = func(pod *corev1.Pod) bool { return metav1.GetControllerOf(pod) == nil }
		started(w, "demo", testkit.Group("cpu", 1))
		stranger := &corev1.Pod{ObjectMeta: named(naming.Pod("demo", "another", at))}
		stranger.Labels = w.Workers("demo", "cpu")[0].Labels
		stranger.Labels[v1beta1.LabelSlot] = "7"
		w.Create(stranger)
		version := stranger.ResourceVersion
		w.Settle()
		w.Expect("demo", ready)
		w.Read(stranger)
		if stranger.ResourceVersion != version || len(stranger.OwnerReferences) > 0 {
			w.Fatalf("a pod of nobody's was written: %+v", stranger.ObjectMeta)
		}
	}})
}
