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
	*state
	assessment
	routing
}

// route chooses which pods get which requests. It is pure.
func route(s *state, course course, versions assessment) routing {
	r := &router{state: s, assessment: versions}
	switch course {
	case courseServe:
		r.choosePods()
	case courseWait: // nothing runs
	default:
		r.openPods(nil)
		r.leadPods(nil, nil)
	}
	r.route, r.weight = wantedRoute(s, r.strand), candidateWeight(s, r.strand)
	r.behind = isGatewayBehind(s, r.strand)
	r.describeGateway()
	if s.service.DeletionTimestamp == nil {
		r.address = desired.ServeService(s.service, s.proxyPorts())
		r.chooseVersionServices()
	}
	return r.routing
}

// chooseVersionServices chooses the Services that the route names. That of a cluster that goes stays as long as the
// cluster, because the gateway may take a while to lead nowhere else.
func (r *router) chooseVersionServices() {
	r.kept = map[string]bool{}
	if gatewayOf(r.service) == nil {
		return
	}
	for _, side := range r.listVersions() {
		if side.Cluster == 0 {
			continue
		}
		made := desired.ServeVersion(r.service, r.clusterName(side), r.proxyPorts())
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
	mine, theirs := r.fitPods(r.isOpened)
	r.leadPods(r.fitPods(r.isLed))
	a, c := upgrade.Endpoints(r.record.Shift.Traffic, len(mine), len(theirs))
	if r.record.Candidate == nil {
		a, c = len(mine), 0
	}
	chosen := append(r.preferOpened(mine, a), r.preferOpened(theirs, c)...)
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
	active, candidate := &r.record.Active, r.record.Candidate
	if active.Good != "" {
		mine = r.fitOf(r.findCluster(active), r.active, has)
	}
	if candidate != nil {
		theirs = r.fitOf(r.findCluster(candidate), r.candidate, has)
	}
	return mine, theirs
}

// fitOf returns those of a version's pods that answer. Where none does, those that have requests keep
// them: to take all away helps nobody.
func (r *router) fitOf(cluster *Cluster, h Health, has func(*corev1.Pod) bool) []*corev1.Pod {
	if cluster == nil {
		return nil
	}
	var fit []*corev1.Pod
	for _, pod := range h.Open {
		reply, known := cluster.Answer.Probes[probeOf(r.state, cluster, pod)]
		if known && reply.OK || has(pod) && (!known || reply.Times < failing) {
			fit = append(fit, pod)
		}
	}
	if len(fit) == 0 {
		return stillHaving(r.state, cluster, has)
	}
	return fit
}

// preferOpened returns so many of some pods, those first that have requests already.
func (r *router) preferOpened(pods []*corev1.Pod, n int) []*corev1.Pod {
	ordered := slices.Clone(pods)
	slices.SortStableFunc(ordered, func(a, b *corev1.Pod) int {
		switch {
		case r.isOpened(a) == r.isOpened(b):
			return 0
		case r.isOpened(a):
			return -1
		default:
			return 1
		}
	})
	return ordered[:min(n, len(ordered))]
}

// openPods gives requests to some pods and takes them from all others.
func (r *router) openPods(pods []*corev1.Pod) {
	for _, pod := range pods {
		if !r.isOpened(pod) {
			r.open = append(r.open, pod)
		}
	}
	for _, cluster := range r.seen.Clusters {
		for _, pod := range cluster.Pods {
			if r.isOpened(pod) && pod.DeletionTimestamp == nil && !slices.Contains(pods, pod) {
				r.close = append(r.close, pod)
			}
		}
	}
	for _, pod := range r.seen.Labelled {
		cluster := pod.Labels[v1beta1.LabelCluster]
		if cluster != r.clusterName(&r.record.Active) && (r.record.Candidate == nil || cluster != r.clusterName(r.record.Candidate)) {
			r.close = append(r.close, pod) // of a cluster that is none of ours any more, not one that is not seen yet
		}
	}
	slices.SortFunc(r.open, byName)
	slices.SortFunc(r.close, byName)
}

// leadPods has a gateway lead requests to some pods of both versions, whatever share they have, and
// to no others. Those of clusters that go keep what they have, because the gateway may take a
// while to lead nowhere else.
func (r *router) leadPods(mine, theirs []*corev1.Pod) {
	pods := slices.Concat(mine, theirs)
	if gatewayOf(r.service) == nil {
		pods = nil
	} else {
		for _, retired := range r.record.Retiring {
			pods = append(pods, stillHaving(r.state, r.seen.Clusters[retired.Cluster], r.isLed)...)
		}
	}
	for _, pod := range pods {
		if !r.isLed(pod) {
			r.lead = append(r.lead, pod)
		}
	}
	for _, cluster := range r.seen.Clusters {
		for _, pod := range cluster.Pods {
			if r.isLed(pod) && pod.DeletionTimestamp == nil && !slices.Contains(pods, pod) {
				r.strand = append(r.strand, pod)
			}
		}
	}
	slices.SortFunc(r.lead, byName)
	slices.SortFunc(r.strand, byName)
}
