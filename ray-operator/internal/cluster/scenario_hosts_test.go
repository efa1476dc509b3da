package cluster_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// sliced is a group whose replicas have so many hosts each.
func sliced(replicas, hosts int32) v1beta1.WorkerGroup {
	group := testkit.Group("tpu", replicas)
	group.HostsPerReplica = hosts
	return group
}

// whole asserts that a group has so many replicas with all their hosts.
func whole(w *testkit.World, replicas, hosts int) {
	w.Helper()
	count := map[string]map[string]bool{}
	for _, pod := range w.Workers("demo", "tpu") {
		replica, host := pod.Labels[v1beta1.LabelReplica], pod.Labels[v1beta1.LabelHost]
		if number, err := strconv.Atoi(host); err != nil || number >= hosts {
			w.Fatalf("pod %s is host %q", pod.Name, host)
		}
		if count[replica] == nil {
			count[replica] = map[string]bool{}
		}
		count[replica][host] = true
	}
	if len(count) != replicas || len(w.Workers("demo", "tpu")) != replicas*hosts {
		w.Fatalf("replicas %v, want %d of %d hosts", count, replicas, hosts)
	}
}

// refuse lets the API server refuse what is chosen.
func refuse(w *testkit.World, chosen func(client.Object) bool) {
	w.Refuse(func(obj client.Object) error {
		if !chosen(obj) {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, obj.GetName(), errQuota)
	})
}

func TestHosts(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "hosts-scaled", Run: func(w *testkit.World) {
			started(w, "demo", sliced(2, 2))
			whole(w, 2, 2)
			w.Must(w.Client.Get(w.Ctx, clientKey("demo-hosts"), &corev1.Service{}))
			w.Scale("demo", 3)
			w.Settle()
			whole(w, 3, 2)
			w.Scale("demo", 1)
			w.Settle()
			w.Expect("demo", ready)
			whole(w, 1, 2)
		}},
		testkit.Scenario{Name: "host-failed", Run: func(w *testkit.World) {
			started(w, "demo", sliced(2, 2))
			w.Clock.Step(time.Minute)
			broken := w.Workers("demo", "tpu")[1]
			siblings, all := siblingsOf(w, broken), testkit.UIDs(w.Pods("demo"))
			w.Must(w.Kubelet.Fail(w.Ctx, broken, "Evicted"))
			w.Settle()
			replacedWhole(w, siblings)
			after := testkit.UIDs(w.Pods("demo"))
			for _, uid := range all {
				if !slices.Contains(siblings, uid) && !slices.Contains(after, uid) {
					w.Fatalf("pod %s is gone, which is no host of the broken replica", uid)
				}
			}
		}},
		testkit.Scenario{Name: "host-deleted", Run: func(w *testkit.World) {
			w.Ray.Busy, w.Ray.WorkTakes = all, longer
			started(w, "demo", sliced(2, 2))
			gone := w.Workers("demo", "tpu")[2]
			siblings := siblingsOf(w, gone)
			w.Delete(gone)
			w.Settle()
			replacedWhole(w, siblings)
		}},
		testkit.Scenario{Name: "host-retired", Run: func(w *testkit.World) {
			started(w, "demo", sliced(2, 2))
			old := w.Workers("demo", "tpu")[0]
			siblings := siblingsOf(w, old)
			w.Annotate(old, v1beta1.AnnotationRetire, "")
			w.Settle()
			replacedWhole(w, siblings)
		}},
		testkit.Scenario{Name: "host-refused", Run: hostRefused, Waits: true},
		testkit.Scenario{Name: "hosts-suspended", Run: func(w *testkit.World) {
			started(w, "demo", sliced(1, 3))
			suspend(w, true)
			w.Settle()
			gaveBack(w, isSuspended)
			suspend(w, false)
			w.Settle()
			w.Expect("demo", ready)
			whole(w, 1, 3)
		}},
	)
}

func siblingsOf(w *testkit.World, pod *corev1.Pod) []string {
	w.Helper()
	siblings := slices.DeleteFunc(w.Workers("demo", "tpu"), func(other *corev1.Pod) bool {
		return other.Labels[v1beta1.LabelReplica] != pod.Labels[v1beta1.LabelReplica]
	})
	return testkit.UIDs(siblings)
}

// replacedWhole asserts that no pod of a replica is left, and that another took its place.
func replacedWhole(w *testkit.World, former []string) {
	w.Helper()
	w.Expect("demo", ready)
	whole(w, 2, 2)
	for _, uid := range testkit.UIDs(w.Workers("demo", "tpu")) {
		if slices.Contains(former, uid) {
			w.Fatalf("a host of a broken replica is still there")
		}
	}
	epochIs(w, 1)
}

// hostRefused never lets the second host of a replica in, and then does.
func hostRefused(w *testkit.World) {
	refuse(w, func(obj client.Object) bool { return obj.GetLabels()[v1beta1.LabelHost] == "1" })
	w.Create(testkit.Cluster("demo", sliced(1, 2)))
	w.During(80 * time.Second) // what is half there is given back, and tried again
	w.Expect("demo", "HeadReady=True", "WorkersReady=False", "Ready=False CreateRefused")
	w.Refuse(nil)
	w.Settle()
	w.Expect("demo", ready)
	whole(w, 1, 2)
}
