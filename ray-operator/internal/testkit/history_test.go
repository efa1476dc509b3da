package testkit_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// demo is a cluster of two workers with a record.
func demo(record string) *v1beta1.ComputeCluster {
	of := testkit.Cluster("demo", testkit.Group("cpu", 2))
	of.Annotations = map[string]string{v1beta1.AnnotationRecord: record}
	return of
}

const first = `{"v":1,"epoch":1}`

func worker(of *v1beta1.ComputeCluster, slot int, edits ...func(*corev1.Pod)) *corev1.Pod {
	made := pod.Worker(of, &of.Spec.WorkerGroups[0], slot, 1)
	made.UID = types.UID(made.Name)
	for _, edit := range edits {
		edit(made)
	}
	return made
}

func head(of *v1beta1.ComputeCluster, epoch int64) *corev1.Pod {
	made := pod.Head(of, epoch)
	made.UID = types.UID(made.Name)
	return made
}

func drains(pod *corev1.Pod) { pod.Annotations[v1beta1.AnnotationDrain] = "{}" }

func leaves(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{} }

func edited(of *v1beta1.ComputeCluster, edit func(*v1beta1.ComputeCluster)) *v1beta1.ComputeCluster {
	after := of.DeepCopy()
	after.Generation++
	edit(after)
	return after
}

func suspended(text string) *v1beta1.ComputeCluster {
	return demo(strings.Replace(text, "}", `,"suspended":{"cause":"Spec"}}`, 1))
}

// TestHistoryBites breaks each rule, and keeps each by a hair's breadth.
func TestHistoryBites(t *testing.T) {
	of := demo(first)
	surge := edited(of, func(c *v1beta1.ComputeCluster) {
		c.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRollingWorkers, RollingWorkers: &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1))}}
	})
	smaller := edited(of, func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups = []v1beta1.WorkerGroup{testkit.Group("cpu", 1)}
	})
	for name, test := range map[string]struct {
		story []client.Object
		own   bool
		want  string
	}{
		"two heads of an epoch":      {story: []client.Object{of, head(of, 1), named(head(of, 1), "other")}, want: "both live heads"},
		"a head beside a fenced one": {story: []client.Object{of, head(of, 1), demo(`{"v":1,"epoch":2}`), head(of, 2)}},
		"a head beside one unfenced": {story: []client.Object{of, head(of, 1), head(of, 2)}, want: "both live heads"},
		"as many as wanted":          {story: []client.Object{of, worker(of, 0), worker(of, 1)}},
		"one too many":               {story: []client.Object{of, worker(of, 0), worker(of, 1), worker(of, 2)}, want: "3 live pods and 2 are wanted"},
		"one more that drains":       {story: []client.Object{of, worker(of, 0), worker(of, 1, drains), worker(of, 2)}},
		"one more that leaves":       {story: []client.Object{of, worker(of, 0), worker(of, 1, leaves), worker(of, 2)}},
		"one more as surge":          {story: []client.Object{of, surge, worker(of, 0), worker(of, 1), worker(of, 2)}},
		"two more with surge":        {story: []client.Object{surge, worker(of, 0), worker(of, 1), worker(of, 2), worker(of, 3)}, want: "4 live pods and 3"},
		"as many as were wanted":     {story: []client.Object{of, smaller, worker(of, 0), worker(of, 1)}},
		"a pod of a suspended one":   {story: []client.Object{suspended(first), worker(of, 0)}, want: "is suspended"},
		"a user's edit":              {story: []client.Object{of, smaller}},
		"the operator's edit":        {story: []client.Object{of, smaller}, own: true, want: "changed the spec"},
	} {
		t.Run(name, func(t *testing.T) {
			history := testkit.NewHistory()
			known := map[types.UID]bool{}
			for _, obj := range test.story {
				kind := watch.Added
				if known[obj.GetUID()] {
					kind = watch.Modified
				}
				known[obj.GetUID()] = true
				history.Observe(testkit.Event{Type: kind, Object: obj, Own: test.own})
			}
			if broken := strings.Join(history.Broken(), "\n"); !strings.Contains(broken, test.want) || test.want == "" && broken != "" {
				t.Errorf("broken: %q, want %q", broken, test.want)
			}
		})
	}
}

func named(pod *corev1.Pod, name string) *corev1.Pod {
	pod.Name, pod.UID = name, types.UID(name)
	return pod
}

func TestHistoryForgetsFormerSizesAtRest(t *testing.T) {
	of, history := demo(first), testkit.NewHistory()
	history.Observe(testkit.Event{Type: watch.Added, Object: of})
	history.Observe(testkit.Event{Type: watch.Modified, Object: edited(of, func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups = []v1beta1.WorkerGroup{testkit.Group("cpu", 1)}
	})})
	history.Rested()
	for slot := range 2 {
		history.Observe(testkit.Event{Type: watch.Added, Object: worker(of, slot)})
	}
	if broken := history.Broken(); len(broken) != 1 {
		t.Errorf("broken: %q, want one", broken)
	}
}

func TestHistoryOfOthers(t *testing.T) {
	of, history := demo(first), testkit.NewHistory()
	history.Foreign("ComputeCluster", "delete", of)
	history.Foreign("ComputeCluster", "delete", worker(of, 0))
	if broken := history.Broken(); len(broken) > 0 {
		t.Errorf("what is ours: %q", broken)
	}
	history.Foreign("ComputeCluster", "delete", worker(of, 0, func(pod *corev1.Pod) { pod.OwnerReferences = nil }))
	if broken := history.Broken(); len(broken) != 1 {
		t.Errorf("what is not ours: %q", broken)
	}
	history.Observe(testkit.Event{Type: watch.Added, Object: of})
	history.Observe(testkit.Event{Type: watch.Added, Object: worker(of, 0)})
	if left := history.Left(); len(left) > 0 {
		t.Errorf("left while the cluster lives: %q", left)
	}
	history.Observe(testkit.Event{Type: watch.Deleted, Object: of})
	if left := history.Left(); len(left) != 1 {
		t.Errorf("left: %q, want the worker", left)
	}
}
