package service

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestObserve_SeesOnlyWhatTheOperatorMade: anybody could name the service as a controller, and nobody else marks objects.
func TestObserve_SeesOnlyWhatTheOperatorMade(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1beta1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	revision, err := revisionOf(text())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		edit              func(*metav1.ObjectMeta)
		cluster, revision bool
	}{
		"what the operator made":         {func(*metav1.ObjectMeta) {}, true, true},
		"without its label":              {func(m *metav1.ObjectMeta) { delete(m.Labels, v1beta1.LabelService) }, false, false},
		"with the label of another":      {func(m *metav1.ObjectMeta) { m.Labels[v1beta1.LabelService] = "chat" }, false, false},
		"with a name of its own":         {func(m *metav1.ObjectMeta) { m.Name = "mine" }, false, true},
		"without its number":             {func(m *metav1.ObjectMeta) { m.Annotations = nil }, false, true},
		"with a controller of any group": {func(m *metav1.ObjectMeta) { m.OwnerReferences[0].APIVersion = "v1" }, false, false},
	} {
		cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: naming.ServiceCluster("text", "text-uid", 1),
			Labels: map[string]string{v1beta1.LabelService: "text"}, Annotations: map[string]string{v1beta1.AnnotationRevisionCluster: "1"},
			OwnerReferences: []metav1.OwnerReference{*ownerOf(text())},
		}}
		kept := revision.toObject(text(), 1)
		test.edit(&cluster.ObjectMeta)
		test.edit(&kept.ObjectMeta)
		builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, kept)
		for _, field := range index.Fields() {
			switch field.Kind.(type) {
			case *v1beta1.ComputeCluster, *appsv1.ControllerRevision:
				builder = builder.WithIndex(field.Kind, field.Name, field.Value)
			}
		}
		r := &Reconciler{Client: builder.Build()}
		seen := Seen{Clusters: map[int]*Cluster{}, Revisions: map[string]Revision{}}
		err := errors.Join(r.seeClusters(t.Context(), text(), &seen), r.seeRevisions(t.Context(), text(), &seen))
		if err != nil || (len(seen.Clusters) == 1) != test.cluster || (len(seen.Revisions) == 1) != test.revision {
			t.Errorf("%s: clusters %v, versions %v, %v", name, seen.Clusters, seen.Revisions, err)
		}
	}
}
