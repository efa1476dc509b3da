package cluster_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// effects has, for each field of the spec, an edit that sets it to something else.
var effects = map[string]func(*v1alpha1.ComputeClusterSpec){
	"rayVersion":                  func(s *v1alpha1.ComputeClusterSpec) { s.RayVersion = "2.59.0" },
	"image":                       func(s *v1alpha1.ComputeClusterSpec) { s.Image = "mine" },
	"imagePullPolicy":             func(s *v1alpha1.ComputeClusterSpec) { s.ImagePullPolicy = corev1.PullAlways },
	"head.size":                   func(s *v1alpha1.ComputeClusterSpec) { s.Head.Size = testkit.Resources("cpu", "7") },
	"head.rayResources":           func(s *v1alpha1.ComputeClusterSpec) { s.Head.RayResources = one("GPU") },
	"head.rayStartParams":         func(s *v1alpha1.ComputeClusterSpec) { s.Head.RayStartParams = text("a") },
	"head.labels":                 func(s *v1alpha1.ComputeClusterSpec) { s.Head.Labels = text("a") },
	"head.template":               func(s *v1alpha1.ComputeClusterSpec) { s.Head.Template = nodeNamed() },
	"workerGroups.name":           func(s *v1alpha1.ComputeClusterSpec) { s.WorkerGroups[0].Name = "other" },
	"workerGroups.replicas":       func(s *v1alpha1.ComputeClusterSpec) { s.WorkerGroups[0].Replicas = new(int32) },
	"workerGroups.image":          func(s *v1alpha1.ComputeClusterSpec) { s.WorkerGroups[0].Image = "mine" },
	"workerGroups.size":           func(s *v1alpha1.ComputeClusterSpec) { s.WorkerGroups[0].Size = testkit.Resources("cpu", "7") },
	"workerGroups.rayResources":   func(s *v1alpha1.ComputeClusterSpec) { s.WorkerGroups[0].RayResources = one("GPU") },
	"workerGroups.rayStartParams": func(s *v1alpha1.ComputeClusterSpec) { s.WorkerGroups[0].RayStartParams = text("a") },
	"workerGroups.labels":         func(s *v1alpha1.ComputeClusterSpec) { s.WorkerGroups[0].Labels = text("a") },
	"workerGroups.template":       func(s *v1alpha1.ComputeClusterSpec) { s.WorkerGroups[0].Template = nodeNamed() },
}

func one(name string) map[string]resource.Quantity {
	return map[string]resource.Quantity{name: resource.MustParse("1")}
}

func text(name string) map[string]string { return map[string]string{name: "b"} }

func nodeNamed() *corev1.PodTemplateSpec {
	template := testkit.Template()
	template.Spec.NodeName = "here"
	return template
}

// TestEveryFieldHasAnEffect walks the schema: a field without a row fails, and so does
// one whose edit changes no object, beyond the intent's hash.
func TestEveryFieldHasAnEffect(t *testing.T) {
	fields := leaves(reflect.TypeFor[v1alpha1.ComputeClusterSpec](), "")
	for _, path := range fields {
		edit, ok := effects[path]
		if !ok {
			t.Errorf("field %s has no row", path)
			continue
		}
		of := demo()
		before := built(of)
		edit(&of.Spec)
		if reflect.DeepEqual(before, built(of)) {
			t.Errorf("field %s has no effect", path)
		}
	}
	for path := range effects {
		if !slices.Contains(fields, path) {
			t.Errorf("row %s is about no field", path)
		}
	}
}

// leaves are the paths of the fields that hold values, by their JSON names. Maps,
// quantities and pod templates are values.
func leaves(of reflect.Type, path string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[corev1.PodTemplateSpec]() || of == reflect.TypeFor[resource.Quantity]() {
		return []string{path}
	}
	var all []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		under := path
		if name != "" {
			under = strings.TrimPrefix(path+"."+name, ".")
		}
		all = append(all, leaves(of.Field(i).Type, under)...)
	}
	return all
}

// built is what a new cluster's first pass would make.
func built(of *v1alpha1.ComputeCluster) []*corev1.Pod {
	plan := cluster.Decide(of, cluster.Seen{Record: cluster.Record{Version: 1, Epoch: 1}}, now)
	pods := append([]*corev1.Pod{plan.Head}, plan.Create...)
	for _, pod := range pods {
		delete(pod.Annotations, v1alpha1.AnnotationIntent)
	}
	return pods
}
