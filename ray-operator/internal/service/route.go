package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// routing says which pods get which requests, and which objects lead them there.
type routing struct {
	// open are pods that get requests from now on, close those that do not any more.
	open, close []*corev1.Pod
	// lead are pods that a gateway may lead requests to from now on, strand those that it may not any more.
	lead, strand []*corev1.Pod
	// route is the HTTPRoute, nil where there must be none; weight is the candidate's share there, in percent.
	route  *gatewayv1.HTTPRoute
	weight int32
	// address is the Service of the service's name, doors are those of its versions. kept names the doors that must not
	// go yet.
	address *corev1.Service
	doors   []*corev1.Service
	kept    map[string]bool
	// gateway says what became of the route, nil where no gateway is asked for. programmed: the gateway has taken it as
	// it is. behind: requests come that way, and are not divided yet as was decided.
	gateway            *reason.Finding
	programmed, behind bool
	timer
}

// router is a routing while it is made.
type router struct {
	advanced
	routing
}

// route chooses which pods get which requests. It is pure.
func route(a advanced) routed {
	r := &router{advanced: a}
	switch a.course {
	case courseServe:
		r.choosePods()
	case courseWait: // nothing runs
	default:
		r.openPods(nil)
		r.leadPods(nil, nil)
	}
	r.weight = candidateWeight(a.view, r.strand)
	r.route = wantedRoute(a.view, r.weight)
	r.behind = isGatewayBehind(a.view, r.route, r.weight)
	r.describeGateway()
	if a.service.DeletionTimestamp == nil {
		r.address = desired.ServeService(a.service, a.proxyPorts(a.record.Active))
		r.chooseVersionServices()
	}
	return routed{advanced: a, routing: r.routing}
}

// chooseVersionServices chooses the Services that the route names. That of a cluster that goes stays as long as the
// cluster, because the gateway may take a while to lead nowhere else.
func (r *router) chooseVersionServices() {
	r.kept = map[string]bool{}
	if gatewayOf(r.service) == nil {
		return
	}
	for _, version := range r.states.list() {
		if version.Cluster == 0 {
			continue
		}
		made := desired.ServeVersion(r.service, version.clusterName, r.proxyPorts(r.record.Active))
		r.doors, r.kept[made.Name] = append(r.doors, made), true
	}
	for _, retired := range r.record.Retiring {
		if cluster := r.seen.Clusters[retired.Cluster]; cluster != nil {
			r.kept[naming.ServeVersion(cluster.Name)] = true
		}
	}
}

// choosePods chooses which pods get requests.
func (r *router) choosePods() {
	mine, theirs := r.fitPods(r.proxies.isOpened)
	r.leadPods(r.fitPods(r.proxies.isLed))
	a, c := upgrade.Endpoints(r.record.Shift.Traffic, len(mine), len(theirs))
	if r.record.Candidate == nil {
		a, c = len(mine), 0
	}
	chosen := append(preferOpened(r.proxies.traffic, mine, a), preferOpened(r.proxies.traffic, theirs, c)...)
	if len(chosen) == 0 {
		// On the way back an operator that was just started has asked none of the active version's pods, and none of
		// them has requests: those that have them keep them until one is known to answer.
		return
	}
	r.openPods(chosen)
}

// fitPods returns the pods of both versions that may get requests by a way; has tells which have them
// that way.
func (r *router) fitPods(has func(*corev1.Pod) bool) (mine, theirs []*corev1.Pod) {
	if active := r.states.active; active.Good != "" {
		mine = fitOf(r.proxies, active.cluster, r.active.Open, has)
	}
	if candidate := r.states.candidate; candidate != nil {
		theirs = fitOf(r.proxies, candidate.cluster, r.candidate.Open, has)
	}
	return mine, theirs
}

// fitOf returns those of the eligible pods of a cluster that answer. Where none does, those that have requests keep
// them: to take all away helps nobody.
func fitOf(p proxies, cluster *Cluster, eligible []*corev1.Pod, has func(*corev1.Pod) bool) []*corev1.Pod {
	if cluster == nil {
		return nil
	}
	var fit []*corev1.Pod
	for _, pod := range eligible {
		reply, known := cluster.Answer.Probes[p.probeOf(cluster, pod)]
		if known && reply.OK || has(pod) && (!known || reply.Times < failing) {
			fit = append(fit, pod)
		}
	}
	if len(fit) == 0 {
		return p.stillHaving(cluster, has)
	}
	return fit
}

// preferOpened returns so many of some pods, those first that have requests already.
func preferOpened(t traffic, pods []*corev1.Pod, n int) []*corev1.Pod {
	ordered := slices.Clone(pods)
	slices.SortStableFunc(ordered, func(a, b *corev1.Pod) int {
		switch {
		case t.isOpened(a) == t.isOpened(b):
			return 0
		case t.isOpened(a):
			return -1
		default:
			return 1
		}
	})
	return ordered[:min(n, len(ordered))]
}

// openPods gives requests to some pods and takes them from all others.
func (r *router) openPods(pods []*corev1.Pod) {
	isOpened := r.proxies.isOpened
	for _, pod := range pods {
		if !isOpened(pod) {
			r.open = append(r.open, pod)
		}
	}
	for _, cluster := range r.seen.Clusters {
		for _, pod := range cluster.Pods {
			if isOpened(pod) && pod.DeletionTimestamp == nil && !slices.Contains(pods, pod) {
				r.close = append(r.close, pod)
			}
		}
	}
	for _, pod := range r.seen.Labelled {
		if !r.states.haveCluster(pod.Labels[v1beta1.LabelCluster]) {
			r.close = append(r.close, pod) // of a cluster that is none of ours any more, not one that is not seen yet
		}
	}
	slices.SortFunc(r.open, byName)
	slices.SortFunc(r.close, byName)
}

// haveCluster reports whether a version has the cluster of a name.
func (s versionStates) haveCluster(name string) bool {
	return slices.ContainsFunc(s.list(), func(version versionState) bool { return version.clusterName == name })
}

// leadPods has a gateway lead requests to some pods of both versions, whatever share they have, and
// to no others. Those of clusters that go keep what they have, because the gateway may take a
// while to lead nowhere else.
func (r *router) leadPods(mine, theirs []*corev1.Pod) {
	isLed, pods := r.proxies.isLed, slices.Concat(mine, theirs)
	if gatewayOf(r.service) == nil {
		pods = nil
	} else {
		for _, retired := range r.record.Retiring {
			pods = append(pods, r.proxies.stillHaving(r.seen.Clusters[retired.Cluster], isLed)...)
		}
	}
	for _, pod := range pods {
		if !isLed(pod) {
			r.lead = append(r.lead, pod)
		}
	}
	for _, cluster := range r.seen.Clusters {
		for _, pod := range cluster.Pods {
			if isLed(pod) && pod.DeletionTimestamp == nil && !slices.Contains(pods, pod) {
				r.strand = append(r.strand, pod)
			}
		}
	}
	slices.SortFunc(r.lead, byName)
	slices.SortFunc(r.strand, byName)
}
