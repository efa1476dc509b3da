package desired

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// ServeVersion is the Service of the version that runs on a cluster, for a gateway that divides
// requests between versions. It selects pods by a label that the operator gives and takes, and
// by their cluster.
func ServeVersion(service *v1beta1.ClusterService, cluster string, ports Ports) *corev1.Service {
	made := &corev1.Service{
		ObjectMeta: OfService(service, naming.ServeVersion(cluster)),
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{
			naming.RouteLabel(service.Name): v1beta1.ServeOn, v1beta1.LabelCluster: cluster,
		}},
	}
	made.Spec.Ports = append(made.Spec.Ports, servePort(frontOf(service), PortHTTP, 8000, ports.HTTP))
	return made
}

// Backend is a version's Service with its share of the requests, in percent.
type Backend struct {
	Service string
	Weight  int32
}

// mostMatches is how many matches a rule of an HTTPRoute may have.
const mostMatches = 64

// routable is what a path may be that an HTTPRoute matches by its prefix, beside "/".
var routable = regexp.MustCompile(`^(/[-A-Za-z0-9._~!$&'()*+,;=:@]+)+$`)

// matchesOf are the requests below some paths. Where a gateway cannot tell one of them, it is all requests.
func matchesOf(paths []string) []gatewayv1.HTTPRouteMatch {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	unfit := func(path string) bool {
		return !routable.MatchString(path) || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../")
	}
	if len(paths) == 0 || len(paths) > mostMatches || slices.ContainsFunc(paths, unfit) {
		paths = []string{"/"}
	}
	prefix := gatewayv1.PathMatchPathPrefix
	var matches []gatewayv1.HTTPRouteMatch
	for i := range paths {
		matches = append(matches, gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &prefix, Value: &paths[i]}})
	}
	return matches
}

// ServeRoute attaches a service to its gateway and divides the requests below its paths between versions. All that
// the API server would fill in is said, so that what is there can be compared with it.
func ServeRoute(service *v1beta1.ClusterService, gateway *v1beta1.ServiceGateway, paths []string, backends ...Backend) *gatewayv1.HTTPRoute {
	rule := gatewayv1.HTTPRouteRule{Matches: matchesOf(paths)}
	port := servePort(frontOf(service), PortHTTP, 8000, 0).Port
	for _, backend := range backends {
		group, kind := gatewayv1.Group(""), gatewayv1.Kind("Service")
		rule.BackendRefs = append(rule.BackendRefs, gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Group: &group, Kind: &kind, Name: gatewayv1.ObjectName(backend.Service), Port: &port},
			Weight:                 &backend.Weight,
		}})
	}
	made := &gatewayv1.HTTPRoute{
		ObjectMeta: OfService(service, service.Name),
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{GatewayParent(service, gateway)}},
			Rules:           []gatewayv1.HTTPRouteRule{rule},
		},
	}
	for _, name := range gateway.Hostnames {
		made.Spec.Hostnames = append(made.Spec.Hostnames, gatewayv1.Hostname(name))
	}
	return made
}

// GatewayParent names the gateway of a service as a route does.
func GatewayParent(service *v1beta1.ClusterService, gateway *v1beta1.ServiceGateway) gatewayv1.ParentReference {
	group, kind := gatewayv1.Group(gatewayv1.GroupName), gatewayv1.Kind("Gateway")
	namespace := gatewayv1.Namespace(cmp.Or(gateway.ParentRef.Namespace, service.Namespace))
	parent := gatewayv1.ParentReference{Group: &group, Kind: &kind, Namespace: &namespace, Name: gatewayv1.ObjectName(gateway.ParentRef.Name)}
	if section := gatewayv1.SectionName(gateway.ParentRef.SectionName); section != "" {
		parent.SectionName = &section
	}
	return parent
}
