package service

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// routeWait is how soon to look again at a route that something waits for: no watch tells of it.
const routeWait = time.Second

// promptly is for how long a new route is looked at so often whether anything waits or not: most
// gateways take it at once.
const promptly = time.Minute

// describeGateway says what became of the route, if a gateway is asked for, and when to look at it again.
func (r *router) describeGateway() {
	if gatewayOf(r.service) == nil {
		return
	}
	finding, programmed := judgeGateway(r.service, r.seen, r.route)
	r.gateway, r.programmed = &finding, programmed
	if r.service.DeletionTimestamp != nil {
		return
	}
	r.wakeIn(reconcile.Recheck) // nobody tells of routes, nor of kinds that come and go
	if seen := seenRoute(r.seen); !programmed && finding.Code == reason.GatewayPending.Code && (seen == nil || r.now.Sub(seen.CreationTimestamp.Time) < promptly) {
		r.wakeIn(routeWait)
	}
}

// judgeGateway says what became of the route, and whether the gateway has taken it as it must be.
func judgeGateway(service *v1beta1.ClusterService, seen *Seen, wanted *gatewayv1.HTTPRoute) (reason.Finding, bool) {
	switch {
	case seen.RouteUnknown:
		return reason.GatewayAPIMissing.Of(), false
	case seen.RouteRefused != nil:
		return diagnose.Refusal(kindRoute+" "+service.Name, seen.RouteRefused), false
	case seen.Standing[kindRoute].Presence == reconcile.Foreign:
		return reason.NameConflict.Of(kindRoute + " " + service.Name), false
	}
	route := seenRoute(seen)
	_, amiss := judgeRoute(service, route)
	switch {
	case amiss != nil:
		return *amiss, false
	case wanted == nil || !holdsRoute(route, wanted):
		return reason.GatewayPending.Of(gatewayName(service), service.Name), false
	default:
		return reason.GatewayProgrammed.Of(gatewayName(service), service.Name), true
	}
}

// wantedRoute returns the HTTPRoute as it must be, with the candidate's share of the requests in percent; nil where there
// must be none. A candidate is named there before it gets requests, so that the gateway knows its Service by then.
func wantedRoute(v view, weight int32) *gatewayv1.HTTPRoute {
	gateway := gatewayOf(v.service)
	if gateway == nil || v.record.Active.Cluster == 0 {
		return nil
	}
	shares := []int32{100 - weight, weight}
	var backends []desired.Backend
	for i, version := range v.record.listVersions() {
		backends = append(backends, desired.Backend{Service: naming.ServeVersion(clusterName(v.service, version.Cluster)), Weight: shares[i]})
	}
	return desired.ServeRoute(v.service, gateway, routePaths(v.record, v.revisions), backends...)
}

// routePaths returns where the versions that there are answer, all of them where that cannot be said.
func routePaths(record Record, known revisions) []string {
	var paths []string
	for _, version := range record.listVersions() {
		for _, id := range []string{version.Revision, version.Good} {
			config := known.find(id).Config
			if config.RootPath != "" { // below which Serve answers too, or not, by its release
				return nil
			}
			for i := range config.Applications {
				if config.Applications[i].HasRoute {
					paths = append(paths, config.Applications[i].RoutePrefix)
				}
			}
		}
	}
	return paths
}

// candidateWeight returns the candidate's share of the requests in percent, as the route is to have it. No
// version has any that has no pod to lead to, as far as the other one has; and the candidate has none
// before it was seen to answer through its Service: from then on gateways know its endpoints.
func candidateWeight(v view, strand []*corev1.Pod) int32 {
	traffic := v.record.Shift.Traffic
	if v.record.Candidate == nil || traffic == 0 {
		return 0
	}
	states := v.states()
	labels := trafficOf(v.service, v.seen)
	mine, theirs := isLeadable(labels, states.active.cluster, strand), isLeadable(labels, states.candidate.cluster, strand)
	switch {
	case mine && !theirs, !hasEntered(proxiesOf(v, states).probes, seenRoute(v.seen), *states.candidate):
		return 0
	case theirs && !mine:
		return 100
	default:
		return int32(traffic)
	}
}

// isLeadable reports whether a cluster was seen to have a pod that a gateway may lead to and that keeps
// it.
func isLeadable(t traffic, cluster *Cluster, strand []*corev1.Pod) bool {
	return cluster != nil && slices.ContainsFunc(cluster.Pods, func(pod *corev1.Pod) bool {
		return t.isLed(pod) && pod.DeletionTimestamp == nil && reconcile.Ready(pod) && !slices.Contains(strand, pod)
	})
}

// hasEntered reports whether a candidate was seen to answer through its Service, or has requests
// that way.
func hasEntered(p probes, route *gatewayv1.HTTPRoute, candidate versionState) bool {
	if seenWeight(route, naming.ServeVersion(candidate.clusterName)) > 0 {
		return true
	}
	door, there := p.candidateDoor(candidate.cluster)
	return there && candidate.cluster.Heard && candidate.cluster.Answer.Probes[door].OK
}

// holdsRoute reports whether a route is as it is wanted, both being there. Other than of other
// objects all of its spec is compared: what somebody adds there takes requests away.
func holdsRoute(seen, wanted client.Object) bool {
	is, _ := seen.(*gatewayv1.HTTPRoute)
	want, _ := wanted.(*gatewayv1.HTTPRoute)
	return is != nil && want != nil && equality.Semantic.DeepEqual(is.Spec.ParentRefs, want.Spec.ParentRefs) &&
		equality.Semantic.DeepEqual(is.Spec.Hostnames, want.Spec.Hostnames) && equality.Semantic.DeepEqual(is.Spec.Rules, want.Spec.Rules)
}
