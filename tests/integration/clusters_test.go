package integration

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// limit is for anything that has to happen; only hanging is longer.
const limit = 3 * time.Minute

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a look gives no error.
func eventually(t *testing.T, what string, look func(context.Context) error) {
	t.Helper()
	must(t, live.Until(t.Context(), limit, what, look))
}

// newNamespace makes one that is gone with all it held when the test ends.
func newNamespace(t *testing.T) string {
	t.Helper()
	return newNamespaceOf(t, "integration")
}

// newNamespaceOf makes a namespace whose name begins with a word.
func newNamespaceOf(t *testing.T, word string) string {
	t.Helper()
	name, err := shared.Namespace(t.Context(), word)
	must(t, err)
	dropAtEnd(t, name)
	return name
}

// dropAtEnd deletes a namespace with all it holds when the test ends.
func dropAtEnd(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() {
		if err := shared.Drop(context.WithoutCancel(t.Context()), name); err != nil {
			t.Error(err)
		}
	})
}

// sample is the ten-line manifest that the documentation begins with; it makes "demo".
func sample(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../ray-operator/config/samples/cluster.yaml")
	must(t, err)
	return text
}

// newCluster is a head with one group "cpu".
func newCluster(namespace, name string, workers int32) *v1beta1.ComputeCluster {
	return &v1beta1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.ComputeClusterSpec{
			RayVersion: "2.60.0",
			// The fake heads of these pods answer nobody, so a drain would last its whole time.
			WorkerGroups: []v1beta1.WorkerGroup{{Name: "cpu", Replicas: &workers, DrainSeconds: new(int32)}},
		},
	}
}

// create makes n clusters of a size, named c0, c1 and so on, and gives their names.
func create(t *testing.T, namespace string, n int, workers int32) []types.NamespacedName {
	t.Helper()
	var names []types.NamespacedName
	for i := range n {
		cluster := newCluster(namespace, fmt.Sprintf("c%d", i), workers)
		must(t, shared.Create(t.Context(), cluster))
		names = append(names, types.NamespacedName{Namespace: namespace, Name: cluster.Name})
	}
	return names
}

// ready waits for a cluster.
func ready(t *testing.T, name types.NamespacedName) *v1beta1.ComputeCluster {
	t.Helper()
	cluster, err := shared.UntilReady(t.Context(), name, limit)
	must(t, err)
	return cluster
}

// scaleTo edits the replicas of the only group.
func scaleTo(t *testing.T, name types.NamespacedName, replicas int32) {
	t.Helper()
	must(t, shared.Edit(t.Context(), name, func(spec *v1beta1.ComputeClusterSpec) { spec.WorkerGroups[0].Replicas = &replicas }))
}

func podsOf(t *testing.T, name types.NamespacedName, role string) []corev1.Pod {
	t.Helper()
	pods, err := shared.PodsOf(t.Context(), name, role)
	must(t, err)
	return pods
}

// amounts are resources, given as names and amounts in turn.
func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}
