package service

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Seen is what there is of a service.
type Seen struct {
	Record      Record
	RecordError error
	// Target is what the spec asks for, TargetError why that cannot be said.
	Target      Revision
	TargetError error
	// Revisions are those that are kept, by ID.
	Revisions map[string]Revision
	// Clusters are the service's own by their numbers, or the one that it refers to under 0.
	Clusters map[int]*Cluster
	// Standing are the objects of fixed names, by kind.
	Standing map[string]reconcile.Fixture
	// Elders are services on the same cluster that are older.
	Elders []Elder
	// Versions are the Services of the service's versions, by their names.
	Versions map[string]*corev1.Service
	// RouteUnknown: the API server knows no HTTPRoutes. RouteRefused is why it does not show
	// the service's, if it does not.
	RouteUnknown bool
	RouteRefused error
	// Labelled are pods of other clusters that still get requests for the service.
	Labelled []*corev1.Pod
	// Listed are the pods, by UID, that EndpointSlices of the service's address list as ready: nodes may
	// send them requests yet.
	Listed map[types.UID]bool
}

// Cluster is a cluster with its pods, and what its head said last.
type Cluster struct {
	*v1beta1.ComputeCluster
	Pods []*corev1.Pod
	// Head is the live one, nil if there is none.
	Head   *corev1.Pod
	Answer services.Answer
	Heard  bool
	// Stranded are those of the pods that nothing may wait for any more, on lost nodes; StrandsIn
	// is after how long there may be another, 0 for never.
	Stranded  []*corev1.Pod
	StrandsIn time.Duration
}

// Elder is an older service on the same cluster, with what it asks for.
type Elder struct {
	Service     *v1beta1.ClusterService
	Target      Revision
	TargetError error
}

// Kinds of objects of a fixed name.
const (
	kindService = "Service"
	kindHead    = "Service of the head"
	kindPolicy  = "NetworkPolicy"
	kindBudget  = "PodDisruptionBudget"
	kindRoute   = "HTTPRoute"
)

// observe reads the world; it writes nothing.
func (r *Reconciler) observe(ctx context.Context, service *v1beta1.ClusterService) (Seen, error) {
	seen := Seen{
		Revisions: map[string]Revision{}, Clusters: map[int]*Cluster{}, Standing: map[string]reconcile.Fixture{}, Versions: map[string]*corev1.Service{},
	}
	seen.Target, seen.TargetError = revisionOf(service)
	for _, read := range []func(context.Context, *v1beta1.ClusterService, *Seen) error{
		r.seeRevisions, r.seeClusters, r.seePods, r.seeListed, r.seeStanding, r.seeVersions, r.seeElders,
	} {
		if err := read(ctx, service, &seen); err != nil {
			return seen, err
		}
	}
	seen.Record, seen.RecordError = recall(service, &seen, r.Clock.Now())
	err := r.seeRoute(ctx, service, &seen)
	return seen, err
}

func (r *Reconciler) seeRevisions(ctx context.Context, service *v1beta1.ClusterService, seen *Seen) error {
	var list appsv1.ControllerRevisionList
	owned := client.MatchingFields{index.Owner: string(service.UID)}
	err := r.Client.List(ctx, &list, client.InNamespace(service.Namespace), owned, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the service's revisions: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Labels[v1beta1.LabelService] != service.Name {
			continue
		}
		if revision, err := r.parsed.parseOnce(&list.Items[i]); err == nil { // what somebody else wrote there is none
			seen.Revisions[revision.ID] = revision
		}
	}
	return nil
}

// seeClusters finds the cluster that the service refers to, or all of its own.
func (r *Reconciler) seeClusters(ctx context.Context, service *v1beta1.ClusterService, seen *Seen) error {
	if ref := service.Spec.ClusterRef; ref != nil {
		var cluster v1beta1.ComputeCluster
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: service.Namespace, Name: ref.Name}, &cluster)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("read ComputeCluster %s: %w", ref.Name, err)
		default:
			seen.Clusters[0] = &Cluster{ComputeCluster: &cluster}
		}
		return nil
	}
	var list v1beta1.ComputeClusterList
	err := r.Client.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingFields{index.Owner: string(service.UID)})
	if err != nil {
		return fmt.Errorf("list the service's clusters: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Labels[v1beta1.LabelService] != service.Name {
			continue // somebody else put the service's reference there
		}
		number, err := strconv.Atoi(list.Items[i].Annotations[v1beta1.AnnotationRevisionCluster])
		if err == nil && number > 0 && list.Items[i].Name == naming.ServiceCluster(service.Name, service.UID, number) {
			seen.Clusters[number] = &Cluster{ComputeCluster: &list.Items[i]}
		}
	}
	return nil
}

// seePods finds the pods of the clusters, and what their heads said.
func (r *Reconciler) seePods(ctx context.Context, service *v1beta1.ClusterService, seen *Seen) error {
	known := map[types.UID]bool{}
	for _, cluster := range seen.Clusters {
		var pods corev1.PodList
		err := r.Client.List(ctx, &pods, client.InNamespace(service.Namespace), client.MatchingFields{index.Owner: string(cluster.UID)}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("list the pods of ComputeCluster %s: %w", cluster.Name, err)
		}
		for i := range pods.Items {
			cluster.addPod(&pods.Items[i])
			known[pods.Items[i].UID] = true
		}
		if cluster.Stranded, cluster.StrandsIn, err = reconcile.Stranded(ctx, r.Nodes, cluster.Pods, r.Clock.Now()); err != nil {
			return err
		}
		if cluster.Head != nil {
			cluster.Answer, cluster.Heard = r.Heads.Last(client.ObjectKeyFromObject(cluster), client.ObjectKeyFromObject(service), cluster.Head.UID)
		}
	}
	var labelled corev1.PodList
	err := r.Client.List(ctx, &labelled, client.InNamespace(service.Namespace), client.MatchingFields{index.Serve: service.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the pods that serve: %w", err)
	}
	for i := range labelled.Items {
		if pod := &labelled.Items[i]; !known[pod.UID] && pod.Labels[v1beta1.LabelCluster] != "" && pod.DeletionTimestamp == nil {
			seen.Labelled = append(seen.Labelled, pod)
		}
	}
	return nil
}

// seeListed finds the pods that the EndpointSlices of the service's address list.
func (r *Reconciler) seeListed(ctx context.Context, service *v1beta1.ClusterService, seen *Seen) error {
	var list discoveryv1.EndpointSliceList
	err := r.Client.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingFields{index.Address: service.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the EndpointSlices of Service %s: %w", service.Name, err)
	}
	seen.Listed = map[types.UID]bool{}
	for i := range list.Items {
		for _, endpoint := range list.Items[i].Endpoints {
			if endpoint.TargetRef != nil && (endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready) {
				seen.Listed[endpoint.TargetRef.UID] = true
			}
		}
	}
	return nil
}

// addPod takes a pod of the cluster for what it is.
func (c *Cluster) addPod(pod *corev1.Pod) {
	c.Pods = append(c.Pods, pod)
	over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	if pod.Labels[v1beta1.LabelRole] != v1beta1.RoleHead || over || pod.DeletionTimestamp != nil {
		return
	}
	if c.Head == nil || reconcile.Epoch(pod) > reconcile.Epoch(c.Head) {
		c.Head = pod
	}
}

// seeStanding looks at the objects of fixed names.
func (r *Reconciler) seeStanding(ctx context.Context, service *v1beta1.ClusterService, seen *Seen) error {
	for kind, at := range map[string]struct {
		name  string
		empty client.Object
	}{
		kindService: {service.Name, &corev1.Service{}},
		kindHead:    {naming.HeadService(service.Name), &corev1.Service{}},
		kindPolicy:  {naming.ServePolicy(service.Name), &networkingv1.NetworkPolicy{}},
		kindBudget:  {service.Name, &policyv1.PodDisruptionBudget{}},
	} {
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: service.Namespace, Name: at.name}, at.empty)
		presence, err := reconcile.PresenceOf(err, at.empty, ownerOf(service))
		if err != nil {
			return fmt.Errorf("read %s %s: %w", kind, at.name, err)
		}
		if presence != reconcile.Absent {
			seen.Standing[kind] = reconcile.Fixture{Presence: presence, Object: at.empty}
		}
	}
	return nil
}

// ownerOf returns the reference that a service's objects have to it.
func ownerOf(service *v1beta1.ClusterService) *metav1.OwnerReference {
	return metav1.NewControllerRef(service, v1beta1.GroupVersion.WithKind(kindName))
}

// seeVersions finds the Services of versions: all of the service's but those of its name and of the active head.
func (r *Reconciler) seeVersions(ctx context.Context, service *v1beta1.ClusterService, seen *Seen) error {
	var list corev1.ServiceList
	err := r.Client.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingFields{index.Owner: string(service.UID)})
	if err != nil {
		return fmt.Errorf("list the Services of the service's versions: %w", err)
	}
	for i := range list.Items {
		if found := &list.Items[i]; found.Name != service.Name && found.Name != naming.HeadService(service.Name) {
			seen.Versions[found.Name] = found
		}
	}
	return nil
}

// seeRoute reads the service's HTTPRoute, where it has a gateway or had one. No cache holds it:
// the API server may come to know the kind later, or know it no more. A right that is missing
// keeps nothing from what else there is to do.
func (r *Reconciler) seeRoute(ctx context.Context, service *v1beta1.ClusterService, seen *Seen) error {
	if gatewayOf(service) == nil && !seen.Record.Routed {
		return nil
	}
	var route gatewayv1.HTTPRoute
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(service), &route)
	presence, failed := reconcile.PresenceOf(err, &route, ownerOf(service))
	switch {
	case meta.IsNoMatchError(err), apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) && apierrors.IsNotFound(err):
		seen.RouteUnknown = true
	case fault.Refused(err):
		seen.RouteRefused = err
	case failed != nil:
		return fmt.Errorf("read HTTPRoute %s: %w", service.Name, failed)
	case presence != reconcile.Absent:
		seen.Standing[kindRoute] = reconcile.Fixture{Presence: presence, Object: &route}
	}
	return nil
}

// seeElders finds older services on a cluster that is not the service's own.
func (r *Reconciler) seeElders(ctx context.Context, service *v1beta1.ClusterService, seen *Seen) error {
	if service.Spec.ClusterRef == nil {
		return nil
	}
	var list v1beta1.ClusterServiceList
	err := r.Client.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingFields{index.Cluster: service.Spec.ClusterRef.Name})
	if err != nil {
		return fmt.Errorf("list the services of ComputeCluster %s: %w", service.Spec.ClusterRef.Name, err)
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.UID != service.UID && older(other, service) && IsManaged(other) {
			seen.Elders = append(seen.Elders, readElder(other))
		}
	}
	return nil
}

// readElder reads what an older service asks for.
func readElder(service *v1beta1.ClusterService) Elder {
	target, err := revisionOf(service)
	return Elder{Service: service, Target: target, TargetError: err}
}

// older tells which of two services came first; of two that came in one second one is as good
// as the other, as long as both find the same.
func older(a, b *v1beta1.ClusterService) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
