package testkit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
)

// Scenario is a story of one World, with its assertions. It ends settled.
type Scenario struct {
	Name string
	Run  func(*World)
	// KeepRecord leaves out the variant in which the record is removed, for a story
	// that is about the record itself.
	KeepRecord bool
}

// Play tells the story, and tells it again with each API call of the operator failing
// once in turn, with the operator killed around each write, with a cache that is late,
// and with status or record lost at each rest. It must always end the same.
func (s Scenario) Play(t *testing.T) {
	t.Helper()
	t.Run(s.Name, func(t *testing.T) {
		t.Parallel()
		plain := NewWorld(t)
		s.Run(plain)
		want, calls := plain.state(), slices.Clone(plain.operator.calls)
		s.variant(t, "status-wiped", want, func(w *World) { w.settled = w.wipeStatus })
		if !s.KeepRecord {
			s.variant(t, "record-removed", want, func(w *World) { w.settled = w.removeRecord })
		}
		for lag := 1; lag <= 3; lag++ {
			s.variant(t, fmt.Sprintf("cache-late-by-%d", lag), want, func(w *World) { w.Lag = lag })
		}
		for i, write := range calls {
			modes := []Mode{Fail}
			if write {
				modes = []Mode{Fail, LoseReply, KillBefore, KillAfter}
			}
			for _, mode := range modes {
				s.variant(t, fmt.Sprintf("call-%d-%s", i+1, mode), want, func(w *World) { w.operator.fault = Fault{i + 1, mode} })
			}
		}
	})
}

func (s Scenario) variant(t *testing.T, name, want string, disturb func(*World)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		w := NewWorld(t)
		disturb(w)
		s.Run(w)
		if have := w.state(); have != want {
			t.Fatalf("ends differently (- undisturbed, + disturbed):\n%s", cmp.Diff(strings.Split(want, "\n"), strings.Split(have, "\n")))
		}
	})
}

// wipeStatus empties every cluster's status, once at a rest.
func (w *World) wipeStatus() {
	w.disturb(func(found *v1alpha1.ComputeCluster) error {
		found.Status = v1alpha1.ComputeClusterStatus{}
		return w.Client.Status().Update(w.Ctx, found)
	})
}

// removeRecord removes every cluster's record, once at a rest.
func (w *World) removeRecord() {
	w.disturb(func(found *v1alpha1.ComputeCluster) error {
		delete(found.Annotations, v1alpha1.AnnotationRecord)
		return w.Client.Update(w.Ctx, found)
	})
}

func (w *World) disturb(act func(*v1alpha1.ComputeCluster) error) {
	w.Helper()
	for _, obj := range w.all() {
		if found, ok := obj.(*v1alpha1.ComputeCluster); ok {
			w.Must(act(found))
		}
	}
	w.run()
}

// state is the world's end as text: every object without what differs between two
// runs that mean the same, such as UIDs and times.
func (w *World) state() string {
	var lines []string
	for _, obj := range w.all() {
		normalise(obj)
		text, err := yaml.Marshal(obj)
		w.Must(err)
		lines = append(lines, fmt.Sprintf("%T %s:\n%s", obj, obj.GetName(), text))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func normalise(obj client.Object) {
	obj.SetUID("")
	obj.SetResourceVersion("")
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetManagedFields(nil)
	switch obj := obj.(type) {
	case *v1alpha1.ComputeCluster:
		normaliseCluster(obj)
	case *corev1.Pod:
		if obj.DeletionTimestamp != nil {
			obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
		}
		for i := range obj.Status.Conditions {
			obj.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		for i := range obj.Status.ContainerStatuses {
			obj.Status.ContainerStatuses[i].LastTerminationState = corev1.ContainerState{}
		}
	case *corev1.Secret:
		for name := range obj.Data {
			obj.Data[name] = nil
		}
	}
}

func normaliseCluster(obj *v1alpha1.ComputeCluster) {
	if record, err := cluster.ParseRecord(obj.Annotations[v1alpha1.AnnotationRecord]); err == nil && record.HeadUID != "" {
		record.HeadUID = "known"
		obj.Annotations[v1alpha1.AnnotationRecord] = record.String()
	}
	if head := obj.Status.Head; head != nil {
		head.Since = nil
		if head.UID != "" {
			head.UID = "known"
		}
	}
	for i := range obj.Status.Conditions {
		obj.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
}
