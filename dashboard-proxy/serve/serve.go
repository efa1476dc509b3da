// Package serve finds the pods that take requests for a ClusterService, and connects to them.
//
// In: a service, its clusters and their pods from a cache; a pod as it is now. Out: the pods that are ready and have the
// service's label, or why there is none, which says what helps; connections to them, on the port that the service's spec
// gives its proxies.
//
// It must never take an address from a Service, an EndpointSlice, a status of ours or an annotation, take a pod that no
// cluster of the service owns by UID, or dial one that it has not just read: where the API server is silent, not lately read.
// It never sends a token.
package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// defaultPort is Serve's own, where a service names none.
const defaultPort = 8000

// retryAfter is after how long a service without a pod may have one.
const retryAfter = 5 * time.Second

// Reader reads what pods are found by. Its objects are not changed.
type Reader interface {
	FindService(namespace, name string) (*v1beta1.ClusterService, bool)
	// ClustersOf returns the clusters that were made for a service, and the one that it refers to, from a cache.
	ClustersOf(namespace, service string) []*v1beta1.ComputeCluster
	// PodsOf returns the pods of a namespace whose owner is a cluster, from a cache.
	PodsOf(cluster types.UID) []*corev1.Pod
	// Pod reads a pod as it is now. Errors are those of the API server.
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
}

// Errors of Find.
var (
	// ErrMissing is that there is no such service.
	ErrMissing = errors.New("there is no such ClusterService")
	// ErrHTTPS is that the proxies of a service speak HTTPS, by a certificate that nobody here can judge.
	ErrHTTPS = errors.New("the proxies of the ClusterService speak HTTPS, which is not passed on: " +
		"terminate HTTPS at the Gateway, and leave ssl_certfile out of http_options")
)

// errOther is that a pod is not, or no longer, one that was found.
var errOther = errors.New("the pod is not there any more, or takes no requests")

// Services are all ClusterServices. They may be used by many goroutines.
type Services struct {
	reader  Reader
	connect headclient.Connect
	reads   *reads
}

// New returns the services that a reader knows. Connect makes connections; nil is to anywhere.
func New(reader Reader, connect headclient.Connect, now clock.PassiveClock) *Services {
	if connect == nil {
		connect = headclient.ConnectAnywhere
	}
	return &Services{reader: reader, connect: connect, reads: newReads(now)}
}

// Endpoint is a pod that takes requests for a service.
type Endpoint struct {
	Namespace, Service, Pod string
	// UID is the pod's, and Cluster that of its owner.
	UID, Cluster types.UID
	port         int32
}

// Find returns the pods that take requests for a service, in the order of their names: ErrMissing, ErrHTTPS, or a
// *heads.Unavailable where there is none.
func (s *Services) Find(namespace, name string) ([]Endpoint, error) {
	service, found := s.reader.FindService(namespace, name)
	if !found {
		return nil, ErrMissing
	}
	if owner := service.Spec.ManagedBy; owner != "" && owner != v1beta1.ManagedByOperator {
		return nil, &heads.Unavailable{Code: "ManagedElsewhere",
			Message: fmt.Sprintf("ClusterService %s is managed by %s, and not here", name, owner),
			Remedy:  "Ask where that controller works"}
	}
	port, err := portOf(service)
	if err != nil {
		return nil, err
	}
	var all []Endpoint
	for _, cluster := range s.reader.ClustersOf(namespace, name) {
		if !isOf(cluster, service) {
			continue
		}
		for _, pod := range s.reader.PodsOf(cluster.UID) {
			if takes(pod, cluster, name) {
				all = append(all, Endpoint{Namespace: namespace, Service: name, Pod: pod.Name, UID: pod.UID,
					Cluster: cluster.UID, port: port})
			}
		}
	}
	if len(all) == 0 {
		return nil, absent(service)
	}
	slices.SortFunc(all, func(a, b Endpoint) int { return strings.Compare(a.Pod, b.Pod) })
	return all, nil
}

// Connect reads the pod of an endpoint, and connects to it. Where the pod is not what it was, nothing is dialled. Where the API
// server does not answer, a pod counts as it was read lately, unless the cache says something else of it.
func (s *Services) Connect(ctx context.Context, to Endpoint) (net.Conn, error) {
	ip, err := s.findIP(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("connect to pod %s/%s: %w", to.Namespace, to.Pod, err)
	}
	return s.connect(ctx, net.JoinHostPort(ip.String(), strconv.Itoa(int(to.port))))
}

// judge returns the address of a pod, or why it is not the one of an endpoint.
func (s *Services) judge(pod *corev1.Pod, to Endpoint) (netip.Addr, error) {
	clusters := s.reader.ClustersOf(to.Namespace, to.Service)
	at := slices.IndexFunc(clusters, func(one *v1beta1.ComputeCluster) bool { return one.UID == to.Cluster })
	if at < 0 || pod.UID != to.UID || !takes(pod, clusters[at], to.Service) || pod.Spec.HostNetwork {
		return netip.Addr{}, errOther
	}
	return podIP(pod)
}

// isOf reports whether a cluster is one that a service uses: the one that its spec names, or one that it owns, with the
// name that follows from its number.
func isOf(cluster *v1beta1.ComputeCluster, service *v1beta1.ClusterService) bool {
	if cluster.Namespace != service.Namespace {
		return false
	}
	if ref := service.Spec.ClusterRef; ref != nil {
		return cluster.Name == ref.Name
	}
	number, err := strconv.Atoi(cluster.Annotations[v1beta1.AnnotationRevisionCluster])
	return err == nil && naming.IsOwned(cluster, service.UID) && cluster.Labels[v1beta1.LabelService] == service.Name &&
		cluster.Name == naming.ServiceCluster(service.Name, service.UID, number)
}

// takes reports whether a pod is one of a cluster's that takes requests for a service. Every author of pods can set
// labels, so the owner counts, and the name that follows from cluster and place.
func takes(pod *corev1.Pod, cluster *v1beta1.ComputeCluster, service string) bool {
	place, err := naming.ParsePlace(pod.Labels)
	if err != nil || pod.Name != naming.Pod(cluster.Name, cluster.UID, place) {
		return false
	}
	isOver := pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	return !isOver && pod.Namespace == cluster.Namespace && naming.IsOwned(pod, cluster.UID) &&
		pod.Labels[naming.ServeLabel(service)] == v1beta1.ServeOn && heads.IsReady(pod)
}

// podIP returns the address of a pod, unless it is one that is never a pod's.
func podIP(pod *corev1.Pod) (netip.Addr, error) {
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil || ip.Zone() != "" || ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() {
		return netip.Addr{}, fmt.Errorf("its address %q is not a pod's", pod.Status.PodIP)
	}
	return ip, nil
}

// portOf returns the port of a service's proxies. The operator lets no version have another one, and its Service leads
// there.
func portOf(service *v1beta1.ClusterService) (int32, error) {
	var config struct {
		Options struct {
			Port        *float64 `json:"port"`
			Certificate *string  `json:"ssl_certfile"`
		} `json:"http_options"`
	}
	if err := json.Unmarshal(service.Spec.ServeConfig.Raw, &config); err != nil {
		return 0, &heads.Unavailable{Code: reason.InvalidSpec.Code,
			Message: fmt.Sprintf("ClusterService %s has a serveConfig that cannot be read", service.Name),
			Remedy:  "Correct http_options in spec.serveConfig"}
	}
	if certificate := config.Options.Certificate; certificate != nil && *certificate != "" {
		return 0, ErrHTTPS
	}
	if port := config.Options.Port; port != nil && *port >= 1 && *port <= 65535 {
		return int32(*port), nil
	}
	return defaultPort, nil
}

// absent is why a service has no pod that takes requests.
func absent(service *v1beta1.ClusterService) *heads.Unavailable {
	if ptr.Deref(service.Spec.Suspend, false) {
		message := fmt.Sprintf("ClusterService %s is suspended by its spec", service.Name)
		since := meta.FindStatusCondition(service.Status.Conditions, v1beta1.ConditionSuspended)
		if since != nil && since.Status == metav1.ConditionTrue {
			message += ", since " + since.LastTransitionTime.UTC().Format(time.RFC3339)
		}
		return &heads.Unavailable{Code: reason.SuspendedBySpec.Code, Message: message,
			Remedy: fmt.Sprintf("Resume it with POST /v1/namespaces/%s/services/%s:resume, and call again", service.Namespace, service.Name)}
	}
	u := &heads.Unavailable{Code: "NoEndpoints", Temporary: true, RetryAfter: retryAfter,
		Message: fmt.Sprintf("ClusterService %s has no pod that takes requests now", service.Name)}
	ready := meta.FindStatusCondition(service.Status.Conditions, v1beta1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return u
	}
	if _, listed := reason.Lookup(ready.Reason); listed {
		message, remedy := reason.Split(ready.Reason, ready.Message)
		u.Code, u.Message, u.Remedy = ready.Reason, u.Message+": "+message, remedy
	}
	return u
}
