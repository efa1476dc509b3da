package index_test

import (
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
)

func TestFields(t *testing.T) {
	yes := true
	owned := metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "other"}, {UID: "u", Controller: &yes}}}
	objects := []client.Object{
		&corev1.Pod{ObjectMeta: owned, Spec: corev1.PodSpec{NodeName: "n1"}},
		&corev1.Pod{},
		&v1alpha1.ComputeCluster{ObjectMeta: owned},
		&v1alpha1.ClusterJob{Spec: v1alpha1.ClusterJobSpec{ClusterRef: &v1alpha1.ClusterReference{Name: "demo"}}},
		&v1alpha1.ClusterJob{},
		&v1alpha1.ClusterService{Spec: v1alpha1.ClusterServiceSpec{ClusterRef: &v1alpha1.ClusterReference{Name: "shared"}}},
		&v1alpha1.ClusterService{},
		&appsv1.ControllerRevision{ObjectMeta: owned},
	}
	want := []string{"u", "n1", "", "", "u", "demo", "", "shared", "", "u"}
	var got []string
	for _, obj := range objects {
		for _, field := range index.Fields() {
			if kind(field.Kind) == kind(obj) {
				got = append(got, strings.Join(field.Value(obj), ","))
			}
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("indexed by %q, want %q", got, want)
	}
}

func kind(obj client.Object) string { return reflect.TypeOf(obj).String() }
