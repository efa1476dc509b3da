package testkit

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Service is a valid service on the cluster demo with one application of its name.
func Service(name string) *v1beta1.ClusterService {
	return &v1beta1.ClusterService{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: serviceKind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, UID: types.UID(name + "-uid"), Generation: 1},
		Spec: v1beta1.ClusterServiceSpec{
			ClusterRef: &v1beta1.ClusterReference{Name: "demo"}, ServeConfig: ServeConfig(name, "app:v1"),
		},
	}
}

// OwnService is a valid service with a cluster of its own with the given groups.
func OwnService(name string, groups ...v1beta1.WorkerGroup) *v1beta1.ClusterService {
	service := Service(name)
	service.Spec.ClusterRef = nil
	service.Spec.ClusterTemplate = &v1beta1.ClusterTemplate{Spec: Cluster("any", groups...).Spec}
	return service
}

// ServeConfig asks for one application. Keys are in order, as a patch leaves them.
func ServeConfig(name, importPath string) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"applications":[{"import_path":%q,"name":%q,"route_prefix":"/%s"}]}`, importPath, name, name)}
}

// ScaledConfig is ServeConfig with a deployment that Serve scales between bounds.
func ScaledConfig(name, importPath string, least, most int) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"applications":[{"deployments":[{"autoscaling_config":{"max_replicas":%d,"min_replicas":%d},"name":"Model"}],`+
		`"import_path":%q,"name":%q,"route_prefix":"/%s"}]}`, most, least, importPath, name, name)}
}

// Service reads a service.
func (w *World) Service(name string) *v1beta1.ClusterService {
	w.Helper()
	var found v1beta1.ClusterService
	w.Must(w.Client.Get(w.Ctx, types.NamespacedName{Namespace: Namespace, Name: name}, &found))
	return &found
}

// EditService changes a service's spec or metadata, as a user does.
func (w *World) EditService(name string, edit func(*v1beta1.ClusterService)) {
	w.Helper()
	found := w.Service(name)
	edit(found)
	w.Must(w.Client.Update(w.Ctx, found))
}

// HasService reports whether there is a service.
func (w *World) HasService(name string) bool {
	return w.server.latest.find(key{serviceKind, types.NamespacedName{Namespace: Namespace, Name: name}}) != nil
}

// ServiceClusters are the names of the clusters that there are of a service's own.
func (w *World) ServiceClusters(service string) []string {
	w.Helper()
	var all []string
	for _, obj := range w.all() {
		owner := metav1.GetControllerOf(obj)
		if cluster, ok := obj.(*v1beta1.ComputeCluster); ok && owner != nil && owner.Kind == serviceKind && owner.Name == service {
			all = append(all, cluster.Name)
		}
	}
	return all
}

// ExpectService asserts a service's phase and its conditions, given as "Type=Status Reason".
func (w *World) ExpectService(name, phase string, wanted ...string) {
	w.Helper()
	found := w.Service(name)
	if found.Status.Phase != phase {
		w.Fatalf("service %s is %s, want %s; %s", name, found.Status.Phase, phase, toldOf(found))
	}
	for _, want := range wanted {
		kind, _, _ := strings.Cut(want, "=")
		have := kind + "=absent"
		if condition := meta.FindStatusCondition(found.Status.Conditions, kind); condition != nil {
			have = fmt.Sprintf("%s=%s %s", kind, condition.Status, condition.Reason)
		}
		if w.trouble.forgets && have == "Suspended=absent" {
			have = "Suspended=False" // only the former status told that it was
		}
		if have != want && !strings.HasPrefix(have, want+" ") {
			w.Fatalf("service %s: %s, want %s; %s", name, have, want, toldOf(found))
		}
	}
}

// toldOf is all that a service's status tells, for a failed test.
func toldOf(service *v1beta1.ClusterService) string {
	var text strings.Builder
	for i := range service.Status.Conditions {
		condition := &service.Status.Conditions[i]
		fmt.Fprintf(&text, "\n%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	fmt.Fprintf(&text, "\n%+v\nrecord %s", service.Status.Summary, service.Annotations[v1beta1.AnnotationRecord])
	return text.String()
}
