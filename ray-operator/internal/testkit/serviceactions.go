package testkit

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
)

// Service is a valid service on the cluster demo with one application of its name.
func Service(name string) *v1alpha1.ClusterService {
	return &v1alpha1.ClusterService{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: serviceKind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, UID: types.UID(name + "-uid"), Generation: 1},
		Spec: v1alpha1.ClusterServiceSpec{
			ClusterRef: &v1alpha1.ClusterReference{Name: "demo"}, ServeConfig: ServeConfig(name, "app:v1"),
		},
	}
}

// OwnService is a valid service with a cluster of its own with the given groups.
func OwnService(name string, groups ...v1alpha1.WorkerGroup) *v1alpha1.ClusterService {
	service := Service(name)
	service.Spec.ClusterRef = nil
	service.Spec.ClusterTemplate = &v1alpha1.ClusterTemplate{Spec: Cluster("any", groups...).Spec}
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
func (w *World) Service(name string) *v1alpha1.ClusterService {
	w.Helper()
	var found v1alpha1.ClusterService
	w.Must(w.Client.Get(w.Ctx, types.NamespacedName{Namespace: Namespace, Name: name}, &found))
	return &found
}

// EditService changes a service's spec or metadata, as a user does.
func (w *World) EditService(name string, edit func(*v1alpha1.ClusterService)) {
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
		if cluster, ok := obj.(*v1alpha1.ComputeCluster); ok && owner != nil && owner.Kind == serviceKind && owner.Name == service {
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
func toldOf(service *v1alpha1.ClusterService) string {
	var text strings.Builder
	for i := range service.Status.Conditions {
		condition := &service.Status.Conditions[i]
		fmt.Fprintf(&text, "\n%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	fmt.Fprintf(&text, "\n%+v\nrecord %s", service.Status.Summary, service.Annotations[v1alpha1.AnnotationRecord])
	return text.String()
}

// servicesOf are the services to look at after an event, as the operator's watches say.
func (w *World) servicesOf(event Event) []types.NamespacedName {
	switch obj := event.Object.(type) {
	case *v1alpha1.ClusterService:
		return append(w.beside(event, obj), client.ObjectKeyFromObject(obj))
	case *v1alpha1.ComputeCluster:
		return w.servedBy(client.ObjectKeyFromObject(obj), obj.OwnerReferences)
	case *corev1.Pod:
		name := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Labels[v1alpha1.LabelCluster]}
		var cluster v1alpha1.ComputeCluster
		w.Must(client.IgnoreNotFound(w.view.Get(w.Ctx, name, &cluster)))
		return w.servedBy(name, cluster.OwnerReferences)
	case *corev1.Service, *networkingv1.NetworkPolicy, *policyv1.PodDisruptionBudget, *appsv1.ControllerRevision:
		return ownedBy(obj.GetNamespace(), obj.GetOwnerReferences())
	default:
		return nil
	}
}

func ownedBy(namespace string, owners []metav1.OwnerReference) []types.NamespacedName {
	var names []types.NamespacedName
	for _, owner := range owners {
		if owner.Kind == serviceKind {
			names = append(names, types.NamespacedName{Namespace: namespace, Name: owner.Name})
		}
	}
	return names
}

// servedBy are the service that a cluster was made for, and those that refer to it.
func (w *World) servedBy(cluster types.NamespacedName, owners []metav1.OwnerReference) []types.NamespacedName {
	names := ownedBy(cluster.Namespace, owners)
	var list v1alpha1.ClusterServiceList
	w.Must(w.view.List(w.Ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Cluster: cluster.Name}))
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return names
}

// beside are the services on the cluster of one that comes, goes or is edited.
func (w *World) beside(event Event, changed *v1alpha1.ClusterService) []types.NamespacedName {
	before, was := event.Was.(*v1alpha1.ClusterService)
	if changed.Spec.ClusterRef == nil || was && event.Type != watch.Deleted && before.Generation == changed.Generation {
		return nil
	}
	return w.servedBy(types.NamespacedName{Namespace: changed.Namespace, Name: changed.Spec.ClusterRef.Name}, nil)
}
