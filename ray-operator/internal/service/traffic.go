package service

import (
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/headwatch/serving"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
)

// carry manages the versions that there are: how they are, how far the way from one to the
// other is, what runs where, and who gets the requests.
func (p *planner) carry() {
	record := &p.record
	p.advance()
	p.active = p.lookAt(&record.Active, record.Active.Good != "")
	p.count()
	if record.Candidate != nil {
		p.candidate = p.lookAt(record.Candidate, record.Shift.Proven)
		p.candidate = p.assumed(p.candidate, p.cluster(record.Candidate), record.Shift.Proven)
	}
	p.active = p.assumed(p.active, p.cluster(&record.Active), record.Active.Good != "")
	if record.Active.Renewing == renewed && p.active.Well {
		record.Active.Renewing = ""
	}
	if record.Candidate == nil {
		p.settle()
	}
	p.move()
	if record.Candidate == nil {
		record.Routing = false
	}
	p.share()
	p.part()
	p.provide()
}

// lookAt judges a side, and notes whether its head has taken what is asked of it.
func (p *planner) lookAt(side *Side, proven bool) Health {
	cluster, revision := p.cluster(side), p.revision(p.configured(side))
	taken := false
	if cluster != nil && cluster.Head != nil {
		head, digest := string(cluster.Head.UID), p.digest(side)
		if cluster.Heard && cluster.Answer.Taken == digest && (side.Taken != digest || side.Took != revision.ID || side.Head != head) {
			side.Taken, side.Took, side.Head = digest, revision.ID, head
			if !p.own() {
				p.record.Applications = nil
				for _, name := range revision.names() {
					p.record.note(name)
				}
			}
		}
		taken = side.Took == revision.ID && side.Head == head
	}
	return p.healthOf(cluster, revision, p.requires(side), taken, proven)
}

// assumed is a version that was well and of which nothing is known now: no data is not zero. While
// its head says nothing it is as its proxies say, which answer without a head.
func (p *planner) assumed(h Health, cluster *Cluster, proven bool) Health {
	if !proven || h.Failed || h.Told && !h.Silent || len(h.Open) == 0 {
		return h
	}
	if answering, failed, _ := p.asked(cluster, h.Open); answering > 0 || failed == 0 {
		h.Ready, h.Assumed = 100, true
	}
	return h
}

// share chooses which pods get requests.
func (p *planner) share() {
	mine, theirs := p.fit(p.opened)
	p.lead(p.fit(p.led))
	a, c := upgrade.Endpoints(p.record.Shift.Traffic, len(mine), len(theirs))
	if p.record.Candidate == nil {
		a, c = len(mine), 0
	}
	chosen := append(p.chosen(mine, a), p.chosen(theirs, c)...)
	if len(chosen) == 0 {
		// On the way back an operator that was just started has asked none of the active version's pods, and none of them
		// has requests: those that have them keep them until one is known to answer.
		return
	}
	p.open(chosen)
}

// fit are the pods of both versions that may get requests by a way; has tells which have them
// that way.
func (p *planner) fit(has func(*corev1.Pod) bool) (mine, theirs []*corev1.Pod) {
	active, candidate := &p.record.Active, p.record.Candidate
	if active.Good != "" {
		mine = p.fitOf(p.cluster(active), p.active, has)
	}
	if candidate != nil {
		theirs = p.fitOf(p.cluster(candidate), p.candidate, has)
	}
	return mine, theirs
}

// fitOf are those of a version's pods that answer. Where none does, those that have requests keep
// them: to take all away helps nobody.
func (p *planner) fitOf(cluster *Cluster, h Health, has func(*corev1.Pod) bool) []*corev1.Pod {
	if cluster == nil {
		return nil
	}
	var fit []*corev1.Pod
	for _, pod := range h.Open {
		reply, known := cluster.Answer.Probes[p.probe(cluster, pod)]
		if known && reply.OK || has(pod) && (!known || reply.Times < failing) {
			fit = append(fit, pod)
		}
	}
	if len(fit) == 0 {
		return p.still(cluster, has)
	}
	return fit
}

// chosen are so many of some pods, those first that have requests already.
func (p *planner) chosen(pods []*corev1.Pod, n int) []*corev1.Pod {
	ordered := slices.Clone(pods)
	slices.SortStableFunc(ordered, func(a, b *corev1.Pod) int {
		switch {
		case p.opened(a) == p.opened(b):
			return 0
		case p.opened(a):
			return -1
		default:
			return 1
		}
	})
	return ordered[:min(n, len(ordered))]
}

// open gives requests to some pods and takes them from all others.
func (p *planner) open(pods []*corev1.Pod) {
	for _, pod := range pods {
		if !p.opened(pod) {
			p.Open = append(p.Open, pod)
		}
	}
	for _, cluster := range p.seen.Clusters {
		for _, pod := range cluster.Pods {
			if p.opened(pod) && pod.DeletionTimestamp == nil && !slices.Contains(pods, pod) {
				p.Close = append(p.Close, pod)
			}
		}
	}
	for _, pod := range p.seen.Labelled {
		cluster := pod.Labels[v1alpha1.LabelCluster]
		if cluster != p.nameOf(&p.record.Active) && (p.record.Candidate == nil || cluster != p.nameOf(p.record.Candidate)) {
			p.Close = append(p.Close, pod) // of a cluster that is none of ours any more, not one that is not seen yet
		}
	}
	slices.SortFunc(p.Open, byName)
	slices.SortFunc(p.Close, byName)
}

// endpoints are how many pods of a cluster get requests once the plan is carried out.
func (p *planner) endpoints(cluster *Cluster) int {
	if cluster == nil {
		return 0
	}
	n := 0
	for _, pod := range cluster.Pods {
		open := p.opened(pod) && !slices.Contains(p.Close, pod) || slices.Contains(p.Open, pod)
		if open && pod.DeletionTimestamp == nil && pass.Ready(pod) {
			n++
		}
	}
	return n
}

// door is the question to the applications through the service's own address, if it has one that
// can be asked.
func (p *planner) door() (serving.Probe, bool) {
	found, _ := p.seen.Standing[kindService].Object.(*corev1.Service)
	return p.doorOf(found)
}

// doorOf is the question to the applications through a Service, nil where it is not there.
func (p *planner) doorOf(found *corev1.Service) (serving.Probe, bool) {
	if found == nil || found.Spec.ClusterIP == "" || found.Spec.ClusterIP == corev1.ClusterIPNone || len(found.Spec.Ports) == 0 {
		return serving.Probe{}, false
	}
	port := strconv.Itoa(int(found.Spec.Ports[0].Port))
	return serving.Probe{Address: net.JoinHostPort(found.Spec.ClusterIP, port), Path: p.healthPath(), TLS: p.speaksTLS(nil)}, true
}

// reached reports whether a service that was not ready answers through its own address: endpoints
// that were just given are known to nodes a moment later.
func (p *planner) reached() bool {
	door, there := p.door()
	if !there || p.wasReady() {
		return true
	}
	for _, cluster := range p.seen.Clusters {
		if cluster.Heard && cluster.Answer.Probes[door].OK {
			return true
		}
	}
	return false
}

// wasReady reports whether the service was told to be.
func (p *planner) wasReady() bool {
	return meta.IsStatusConditionTrue(p.service.Status.Conditions, v1alpha1.ConditionReady)
}
