package wake_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

// edited returns a change of an object.
func edited[T client.Object](before T, edit func(T)) wake.Change {
	now := before.DeepCopyObject().(T)
	edit(now)
	return wake.Change{Old: before, New: now}
}

func TestMatters_OfStatefulSets(t *testing.T) {
	matters := wake.Matters(&appsv1.StatefulSet{})
	for what, test := range map[string]struct {
		edit func(*appsv1.StatefulSet)
		want bool
	}{
		"nothing but a version":   {func(s *appsv1.StatefulSet) { s.ResourceVersion = "2" }, false},
		"a pod that is not ready": {func(s *appsv1.StatefulSet) { s.Status.Replicas, s.Status.CurrentRevision = 2, "r" }, false},
		"a pod that is ready":     {func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 1 }, true},
		"its spec":                {func(s *appsv1.StatefulSet) { s.Generation = 2 }, true},
		"an annotation":           {func(s *appsv1.StatefulSet) { s.Annotations = map[string]string{"a": "b"} }, true},
		"a label":                 {func(s *appsv1.StatefulSet) { s.Labels = map[string]string{"a": "b"} }, true},
		"another of its name":     {func(s *appsv1.StatefulSet) { s.UID = "2" }, true},
		"its deletion":            {func(s *appsv1.StatefulSet) { s.DeletionTimestamp = &metav1.Time{} }, true},
	} {
		before := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "demo-redis", Generation: 1, ResourceVersion: "1"}}
		if got := matters(edited(before, test.edit)); got != test.want {
			t.Errorf("%s matters: %t, want %t", what, got, test.want)
		}
	}
	if made := (&appsv1.StatefulSet{}); !matters(wake.Change{New: made}) || !matters(wake.Change{Old: made}) {
		t.Error("a StatefulSet that comes or goes does not matter to its cluster")
	}
}

func TestMatters_OfOtherKinds(t *testing.T) {
	status := edited(&networkingv1.Ingress{}, func(i *networkingv1.Ingress) { i.ResourceVersion = "2" })
	if wake.Matters(&networkingv1.Ingress{})(status) {
		t.Error("the status of an Ingress matters, which nobody reads")
	}
	service := wake.Matters(&corev1.Service{})
	if !service(edited(&corev1.Service{}, func(s *corev1.Service) { s.ResourceVersion = "2" })) {
		t.Error("a change of a Service does not matter")
	}
	if service(edited(&corev1.Service{}, func(*corev1.Service) {})) {
		t.Error("a Service that was only read again matters")
	}
}

func TestControllers_FindsFormerAndPresent(t *testing.T) {
	owned := func(kind, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", OwnerReferences: []metav1.OwnerReference{
			{Kind: kind, Name: name, Controller: new(true)},
		}}}
	}
	find := wake.Controllers("ComputeCluster")
	for what, test := range map[string]struct {
		of   wake.Change
		want []types.NamespacedName
	}{
		"a cluster's pod":              {wake.Change{New: owned("ComputeCluster", "demo")}, []types.NamespacedName{{Namespace: "n", Name: "demo"}}},
		"another controller's":         {wake.Change{New: owned("ReplicaSet", "demo")}, nil},
		"one that was a cluster's pod": {wake.Change{Old: owned("ComputeCluster", "demo"), New: owned("ReplicaSet", "x")}, []types.NamespacedName{{Namespace: "n", Name: "demo"}}},
	} {
		if got, err := find(t.Context(), nil, test.of); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s wakes %v, %v, want %v", what, got, err, test.want)
		}
	}
}
