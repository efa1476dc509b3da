package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/headwatch/serving"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/stranded"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// leaveFor is how long it is tried to take applications from a cluster that is not the
// service's own.
const leaveFor = 2 * time.Minute

// going manages a service that is being deleted: it gets no more requests, those that it
// has may end, and then what it runs on goes.
func (p *planner) going() bool {
	if p.service.DeletionTimestamp == nil {
		return false
	}
	p.open(nil)
	p.lead(nil, nil)
	if !p.Finalizer {
		return true
	}
	deleted := p.service.DeletionTimestamp.Time
	until := deleted
	if p.serving() {
		since := max(deleted.Unix(), p.record.Drained)
		if since = p.unled(since, p.cluster(&p.record.Active), p.cluster(p.record.Candidate)); since > deleted.Unix() {
			p.record.Drained, deleted = since, time.Unix(since, 0)
		}
		until = deleted.Add(p.drain())
		p.closes(p.cluster(&p.record.Active), deleted)
		p.closes(p.cluster(p.record.Candidate), deleted)
	}
	p.Active = p.service.Status.Active
	if left := until.Sub(p.now); left > 0 {
		p.say(v1alpha1.PhaseDeleting, reason.ServiceDraining.Of(pass.Stamp(until)))
		p.provideLast()
		p.wakeIn(left)
		return true
	}
	p.say(v1alpha1.PhaseDeleting, reason.ServiceLeaving.Of(p.clusterName(p.cluster(&p.record.Active))))
	gone := p.gone()
	if left := until.Add(leaveFor).Sub(p.now); !gone && left > 0 {
		p.wakeIn(left)
		return true
	}
	if !gone && !p.own() {
		p.tell(reason.LeaveAbandoned.Of(p.service.Name, p.clusterName(p.cluster(&p.record.Active)), "its head did not answer"), "Leave")
	}
	p.Finalizer = false
	return true
}

// serving reports whether the service ever had requests that may not have ended.
func (p *planner) serving() bool { return p.record.Active.Good != "" && !p.record.Suspended }

// provideLast keeps on asking the heads for what was asked of them, while requests end.
func (p *planner) provideLast() {
	for _, side := range []*Side{&p.record.Active, p.record.Candidate} {
		p.askLast(p.cluster(side))
	}
}

// askLast keeps on asking a head that gets no more requests.
func (p *planner) askLast(cluster *Cluster) {
	if cluster != nil && cluster.Head != nil && cluster.Head.Status.PodIP != "" {
		p.inquire(cluster, nil)
	}
}

// prompt is how long after it was noted that nobody is led to a cluster any more that may still be
// to be done.
const prompt = 2 * time.Second

// attended reports whether anybody is led to a pod of a cluster by the service's own address. A gateway
// that still knows the pods has no weight for them.
func (p *planner) attended(cluster *Cluster) bool {
	return cluster != nil && slices.ContainsFunc(cluster.Pods, func(pod *corev1.Pod) bool { return p.opened(pod) && pod.DeletionTimestamp == nil })
}

// unled is since when nobody is led to some clusters, in Unix seconds: what was noted, or now where
// somebody still is. It is noted before it is done, and an operator may have been away in between;
// who was led there meanwhile has all the time to end.
func (p *planner) unled(noted int64, clusters ...*Cluster) int64 {
	if since(noted, p.now) > prompt && slices.ContainsFunc(clusters, p.attended) {
		return p.now.Unix()
	}
	return noted
}

// closeFor is how long it may take to have kept connections closed, beyond the drain.
const closeFor = 20 * time.Second

// lastAnswers is how long a cluster stays at least once its connections must be closed, but no longer than half the
// drain: each is closed with its next answer, and one that has not had it breaks under a request when the pods go.
const lastAnswers = 10 * time.Second

// hardStop is how long HAProxy finishes what it has begun once its connections must be closed:
// RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S of Serve 2.60 by default.
const hardStop = 120 * time.Second

// closes has a cluster of the service's own, which has had no requests since a moment, end the
// connections that clients keep, in the second half of the drain: until then most have come to
// their end. In a long drain it is later, so that HAProxy cuts no request before the drain is over. It
// returns until when the cluster must stay for it.
func (p *planner) closes(cluster *Cluster, since time.Time) time.Time {
	drained := since.Add(p.drain())
	if !p.own() || cluster == nil || cluster.Head == nil {
		return drained
	}
	left := since.Add(max(p.drain()/2, p.drain()-hardStop)).Sub(p.now)
	switch {
	case left > 0:
		p.wakeIn(left)
	case p.attended(cluster): // a connection that is opened after it would be kept
	case p.close(cluster, since) == cluster.Answer.Closed && cluster.Heard:
		if answered := cluster.Answer.ClosedAt.Add(min(p.drain()/2, lastAnswers)); answered.After(drained) {
			return answered
		}
		return drained
	}
	return drained.Add(closeFor)
}

// close has a job end the connections that clients keep to a cluster, once for each moment that it
// is named by, and gives its name.
func (p *planner) close(cluster *Cluster, since time.Time) string {
	id := fmt.Sprintf("heliostat-close-%d", since.Unix())
	if p.closing == nil {
		p.closing = map[string]string{}
	}
	p.closing[cluster.Name] = id
	return id
}

// parting is how long after a pod had the last requests the connections are closed that clients keep
// to it: later than that is known to all nodes, and earlier than Serve ends its proxy, which is 30 s
// after there is no replica beside it.
const parting = 8 * time.Second

// part has the connections closed that clients keep to pods that leave a cluster which stays: those of
// workers that are replaced or given up. Each proxy of the cluster closes those that it has then, with
// their next answer; for those that stay that costs a client one connection and no request, so on a cluster of several
// services any of them may ask for it.
func (p *planner) part() {
	for _, side := range []*Side{&p.record.Active, p.record.Candidate} {
		if side == nil || p.cluster(side) == nil {
			continue
		}
		cluster := p.cluster(side)
		if _, all := p.closing[cluster.Name]; all {
			continue
		}
		if latest := p.parted(cluster); !latest.IsZero() {
			p.close(cluster, latest)
		}
	}
}

// parted is since when the last of the pods that leave a cluster, and whose connections must be
// closed, has no requests; zero where there is none.
func (p *planner) parted(cluster *Cluster) (latest time.Time) {
	for _, pod := range cluster.Pods {
		since, err := time.Parse(time.RFC3339, pod.Annotations[v1alpha1.AnnotationClosed])
		if err != nil || p.serves(pod) || !reachable(pod) || !p.leaves(cluster, pod) {
			continue
		}
		if left := since.Add(parting).Sub(p.now); left > 0 {
			p.wakeIn(left)
		} else if since.After(latest) {
			latest = since
		}
	}
	return latest
}

// leaves reports whether the proxy of a pod ends soon: the pod goes, or Serve has no more use for it.
func (p *planner) leaves(cluster *Cluster, pod *corev1.Pod) bool {
	if pod.Annotations[v1alpha1.AnnotationDrain] != "" {
		return true
	}
	return cluster.Heard && cluster.Answer.Serving.Running && !cluster.lists(pod)
}

// gone takes what the service runs away, and reports whether nothing of it is left.
func (p *planner) gone() bool {
	if p.own() {
		for _, number := range []int{p.record.Active.Cluster, p.candidateCluster()} {
			if cluster := p.seen.Clusters[number]; cluster != nil {
				p.free(cluster)
			}
		}
		return p.empty()
	}
	if len(p.record.Applications) == 0 {
		return true
	}
	cluster := p.cluster(&p.record.Active)
	if cluster == nil || cluster.Spec.Suspend {
		return true // what ran there went with it
	}
	if cluster.Head == nil || cluster.Head.Status.PodIP == "" {
		return false
	}
	if !cluster.Heard || cluster.Answer.At.IsZero() { // the head knows the names of what was asked of it
		p.inquire(cluster, nil)
		return false
	}
	digest, _ := naming.ObjectHash([]any{"nothing", p.record.Applications}) // it always marshals
	if cluster.Answer.Taken == digest {
		p.record.Applications = nil
		return true
	}
	p.inquire(cluster, &serving.Config{
		Digest: digest, Applications: map[string]json.RawMessage{}, Drop: p.askedNames(), Options: p.revision(p.record.Active.Revision).Config.Options,
	})
	return false
}

func (p *planner) candidateCluster() int {
	if p.record.Candidate == nil {
		return 0
	}
	return p.record.Candidate.Cluster
}

// free suspends a cluster: its pods go with a short grace, which the garbage collector would
// not give them.
func (p *planner) free(cluster *Cluster) {
	if cluster.Spec.Suspend || cluster.DeletionTimestamp != nil {
		return
	}
	wanted := cluster.DeepCopy()
	wanted.Spec.Suspend = true
	p.Change = append(p.Change, Change{Seen: cluster.ComputeCluster, Wanted: wanted})
}

// empty reports whether no cluster of the service has pods.
func (p *planner) empty() bool {
	for _, cluster := range p.seen.Clusters {
		if p.remains(cluster) {
			return false
		}
	}
	return true
}

// remains reports whether a cluster has pods that may yet end by themselves.
func (p *planner) remains(cluster *Cluster) bool {
	p.wakeIn(cluster.StrandsIn)
	return len(cluster.Pods) > len(cluster.Stranded)
}

// leaveBehind tells of pods of a cluster that are not waited for any more.
func (p *planner) leaveBehind(cluster *Cluster) {
	for _, pod := range cluster.Stranded {
		command := reason.Command(stranded.OffCommand(pod.Spec.NodeName))
		p.tell(reason.PodStranded.Of(pod.Name, cluster.Name, pod.Spec.NodeName, command), "LeaveBehind")
	}
}

// suspended drains a service that must be suspended, and frees what it runs on.
func (p *planner) suspended() bool {
	if !p.service.Spec.Suspend {
		return false
	}
	record := &p.record
	p.Finalizer = p.Finalizer && !p.own()
	if record.Candidate != nil {
		p.back(nil)
	}
	p.open(nil)
	p.lead(nil, nil)
	if record.Drained == 0 {
		record.Drained = p.now.Unix()
	}
	wait := p.drain()
	if p.serving() {
		record.Drained = p.unled(record.Drained, p.cluster(&record.Active))
		p.closes(p.cluster(&record.Active), time.Unix(record.Drained, 0))
	} else {
		wait = 0
	}
	if left := time.Unix(record.Drained, 0).Add(wait).Sub(p.now); left > 0 {
		p.halted(v1alpha1.PhaseSuspending, reason.ServiceDraining.Of(pass.Stamp(time.Unix(record.Drained, 0).Add(wait))))
		p.provideLast()
		p.wakeIn(left)
		return true
	}
	if !p.gone() {
		p.halted(v1alpha1.PhaseSuspending, reason.ServiceLeaving.Of(p.clusterName(p.cluster(&record.Active))))
		return true
	}
	record.Suspended = true
	p.halted(v1alpha1.PhaseSuspended, reason.ServiceSuspended.Of())
	return true
}

// halted says how far the suspension is.
func (p *planner) halted(phase string, finding reason.Finding) {
	p.say(phase, finding)
	p.Suspended = &finding
	if active := p.record.Active; active.Revision != "" {
		p.Active = p.version(&active, Health{}, 0)
	}
}

// resume begins again where the service was suspended: what runs then has yet to become healthy.
func (p *planner) resume() {
	record := &p.record
	if record.Drained == 0 {
		return
	}
	if record.Suspended {
		active := &record.Active
		active.Good, active.Healthy, active.At, active.Taken = "", 0, p.now.Unix(), ""
		record.Shift = upgrade.Shift{}
	}
	record.Drained, record.Suspended = 0, false
}

// retire lets clusters go that have no requests any more, once those that they had may have
// ended.
func (p *planner) retire() {
	if !p.own() {
		return
	}
	p.hold()
	record := &p.record
	for i := range record.Retiring {
		retired := &record.Retiring[i]
		cluster := p.seen.Clusters[retired.Cluster]
		retired.At, retired.Unused = p.unled(retired.At, cluster), retired.Unused && !p.attended(cluster)
	}
	p.record.Retiring = slices.DeleteFunc(record.Retiring, func(retired Retired) bool {
		cluster := p.seen.Clusters[retired.Cluster]
		if cluster == nil {
			return true
		}
		if retired.Held {
			p.askLast(cluster)
			return false
		}
		since := time.Unix(retired.At, 0)
		var left time.Duration
		if !retired.Unused {
			left = p.closes(cluster, since).Sub(p.now)
		}
		switch {
		case cluster.DeletionTimestamp != nil:
		case left > 0:
			p.wakeIn(left)
			p.askLast(cluster)
		case p.remains(cluster):
			p.free(cluster)
		default:
			p.leaveBehind(cluster)
			p.Discard = append(p.Discard, cluster.ComputeCluster)
		}
		return false
	})
}

// adopt notes clusters of the service's own that nobody knows of among those that go. One that has
// requests keeps the time for them.
func (p *planner) adopt() {
	if p.service.DeletionTimestamp != nil || !p.own() {
		return
	}
	for number, cluster := range p.seen.Clusters {
		known := number == p.record.Active.Cluster || number == p.candidateCluster() ||
			slices.ContainsFunc(p.record.Retiring, func(r Retired) bool { return r.Cluster == number })
		switch {
		case known:
		case slices.ContainsFunc(cluster.Pods, p.serves):
			p.away(number, p.now)
		default:
			p.away(number, time.Time{})
		}
	}
	slices.SortFunc(p.record.Retiring, func(a, b Retired) int { return a.Cluster - b.Cluster })
}
