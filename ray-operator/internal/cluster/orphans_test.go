package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestNothingIsKeptOfAClusterWithoutPods: a cluster that was suspended, or never got a
// pod, is forgotten like any other.
func TestNothingIsKeptOfAClusterWithoutPods(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).Build()}
	name := types.NamespacedName{Namespace: "default", Name: "demo"}
	r.Gone.Add(name, "gone")
	if err := r.hasten(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if len(r.Gone.uids) > 0 {
		t.Errorf("%v are kept", r.Gone.uids)
	}
}
