package service

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/headwatch/serving"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// kindVersion names the Services of versions for people.
const kindVersion = "Service of a version"

// isRoute reports whether a fixing is of an HTTPRoute.
func (f Fixing) isRoute() bool {
	_, wanted := f.Wanted.(*gatewayv1.HTTPRoute)
	_, seen := f.Seen.(*gatewayv1.HTTPRoute)
	return wanted || seen
}

// route is the HTTPRoute as it must be, nil where there must be none. A candidate is named
// there before it gets requests, so that the gateway knows its Service by then.
func (p *planner) route() *gatewayv1.HTTPRoute {
	gateway := gatewayOf(p.service)
	if gateway == nil || p.record.Active.Cluster == 0 {
		return nil
	}
	weight := p.weight()
	shares := []int32{100 - weight, weight}
	var backends []desired.Backend
	for i, side := range p.sides() {
		backends = append(backends, desired.Backend{Service: naming.ServeVersion(p.nameOf(side)), Weight: shares[i]})
	}
	return desired.ServeRoute(p.service, gateway, p.paths(), backends...)
}

// paths are where the versions that there are answer, all of them where that cannot be said.
func (p *planner) paths() []string {
	var paths []string
	for _, side := range p.sides() {
		for _, id := range []string{side.Revision, side.Good} {
			config := p.revision(id).Config
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

// weight is the candidate's share of the requests in percent, as the route is to have it. No
// side has any that has no pod to lead to, as far as the other one has; and the candidate has none
// before it was seen to answer through its Service: from then on gateways know its endpoints.
func (p *planner) weight() int32 {
	candidate, traffic := p.record.Candidate, p.record.Shift.Traffic
	if candidate == nil || traffic == 0 {
		return 0
	}
	mine, theirs := p.leadable(&p.record.Active), p.leadable(candidate)
	switch {
	case mine && !theirs, !p.entered(candidate):
		return 0
	case theirs && !mine:
		return 100
	default:
		return int32(traffic)
	}
}

// leadable reports whether a side was seen to have a pod that a gateway may lead to and that keeps
// it.
func (p *planner) leadable(side *Side) bool {
	cluster := p.cluster(side)
	return cluster != nil && slices.ContainsFunc(cluster.Pods, func(pod *corev1.Pod) bool {
		return p.led(pod) && pod.DeletionTimestamp == nil && pass.Ready(pod) && !slices.Contains(p.Strand, pod)
	})
}

// entered reports whether a candidate was seen to answer through its Service, or has requests
// that way.
func (p *planner) entered(candidate *Side) bool {
	if p.given(naming.ServeVersion(p.nameOf(candidate))) > 0 {
		return true
	}
	cluster := p.cluster(candidate)
	door, there := p.entrance(cluster)
	return there && cluster.Heard && cluster.Answer.Probes[door].OK
}

// entrance is the question to the candidate through its Service, if it is its cluster and there
// is one to ask.
func (p *planner) entrance(cluster *Cluster) (serving.Probe, bool) {
	if cluster == nil || p.record.Candidate == nil || cluster.Name != p.nameOf(p.record.Candidate) {
		return serving.Probe{}, false
	}
	return p.doorOf(p.seen.Versions[naming.ServeVersion(cluster.Name)])
}

// stands is the service's own HTTPRoute as it was seen, nil if there is none.
func (p *planner) stands() *gatewayv1.HTTPRoute {
	standing := p.seen.Standing[kindRoute]
	if route, ok := standing.Object.(*gatewayv1.HTTPRoute); ok && !standing.Foreign {
		return route
	}
	return nil
}

// given is the share that a Service has in the route as it was seen, 0 where it is not in it.
func (p *planner) given(service string) int32 {
	if ref := p.named(service); ref != nil && ref.Weight != nil {
		return *ref.Weight
	}
	return 0
}

// named is what the route as it was seen says of a Service, nil where it does not name it.
func (p *planner) named(service string) *gatewayv1.HTTPBackendRef {
	route := p.stands()
	if route == nil {
		return nil
	}
	for i := range route.Spec.Rules {
		for j := range route.Spec.Rules[i].BackendRefs {
			if ref := &route.Spec.Rules[i].BackendRefs[j]; string(ref.Name) == service {
				return ref
			}
		}
	}
	return nil
}

// holdsRoute reports whether a route is as it is wanted, both being there. Other than of other
// objects all of its spec is compared: what somebody adds there takes requests away.
func holdsRoute(seen, wanted client.Object) bool {
	is, _ := seen.(*gatewayv1.HTTPRoute)
	shall, _ := wanted.(*gatewayv1.HTTPRoute)
	return is != nil && shall != nil && equality.Semantic.DeepEqual(is.Spec.ParentRefs, shall.Spec.ParentRefs) &&
		equality.Semantic.DeepEqual(is.Spec.Hostnames, shall.Spec.Hostnames) && equality.Semantic.DeepEqual(is.Spec.Rules, shall.Spec.Rules)
}

// lead has a gateway lead requests to some pods of both versions, whatever share they have, and
// to no others. Those of clusters that go keep what they have, because the gateway may take a
// while to lead nowhere else.
func (p *planner) lead(mine, theirs []*corev1.Pod) {
	pods := slices.Concat(mine, theirs)
	if gatewayOf(p.service) == nil {
		pods = nil
	} else {
		for _, retired := range p.record.Retiring {
			pods = append(pods, p.still(p.seen.Clusters[retired.Cluster], p.led)...)
		}
	}
	for _, pod := range pods {
		if !p.led(pod) {
			p.Lead = append(p.Lead, pod)
		}
	}
	for _, cluster := range p.seen.Clusters {
		for _, pod := range cluster.Pods {
			if p.led(pod) && pod.DeletionTimestamp == nil && !slices.Contains(pods, pod) {
				p.Strand = append(p.Strand, pod)
			}
		}
	}
	slices.SortFunc(p.Lead, byName)
	slices.SortFunc(p.Strand, byName)
}

// routes sees to the route and the Services that it names, which are there before it names them
// and go after it did so last.
func (p *planner) routes() {
	p.record.Routed = gatewayOf(p.service) != nil || p.seen.RouteRefused != nil || p.stands() != nil
	kept := p.versionServices()
	p.fixRoute()
	for _, name := range slices.Sorted(maps.Keys(p.seen.Versions)) {
		switch {
		case kept[name]:
		case p.named(name) != nil && gatewayOf(p.service) != nil:
			p.wakeIn(routeWait)
		default:
			p.Fixtures = append(p.Fixtures, Fixing{Seen: p.seen.Versions[name]})
		}
	}
}

// versionServices ensures that each version has its Service, and names those to keep: that of
// a cluster that goes stays as long, because the gateway may take a while to lead nowhere else.
func (p *planner) versionServices() (kept map[string]bool) {
	kept = map[string]bool{}
	if gatewayOf(p.service) == nil {
		return kept
	}
	for _, side := range p.sides() {
		if side.Cluster == 0 {
			continue
		}
		made := desired.ServeVersion(p.service, p.nameOf(side), p.ports())
		kept[made.Name] = true
		var standing Standing
		if found := p.seen.Versions[made.Name]; found != nil {
			standing.Object = found
		}
		p.fixTo(kindVersion, standing, made, pass.Holds)
	}
	for _, retired := range p.record.Retiring {
		if cluster := p.seen.Clusters[retired.Cluster]; cluster != nil {
			kept[naming.ServeVersion(cluster.Name)] = true
		}
	}
	return kept
}

// fixRoute chooses what to do about the route, if there are such things.
func (p *planner) fixRoute() {
	if p.seen.RouteUnknown || p.seen.RouteRefused != nil {
		return
	}
	if route := p.route(); route != nil {
		p.fixTo(kindRoute, p.seen.Standing[kindRoute], route, holdsRoute)
		return
	}
	p.fix(kindRoute, nil)
	if p.stands() != nil {
		p.wakeIn(routeWait)
	}
}
