package service

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// leaveFor is how long it is tried to take applications from a cluster that is not the
// service's own.
const leaveFor = 2 * time.Minute

// deleteService manages a service that is being deleted: it gets no more requests, those that it
// has may end, and then what it runs on goes.
func (d *draft) deleteService() {
	if !d.finalizer {
		d.course = courseEnd
		return
	}
	deleted := d.service.DeletionTimestamp.Time
	d.until = deleted
	if d.record.hasServed() {
		clusters := []*Cluster{d.seen.findCluster(d.record.Active.Cluster), d.seen.findCandidate(d.record.Candidate)}
		since := trafficOf(d.service, d.seen).lastRoutedAt(max(deleted.Unix(), d.record.Drained), d.now, clusters...)
		if since > deleted.Unix() {
			d.record.Drained, deleted = since, time.Unix(since, 0)
		}
		d.since, d.until = deleted, deleted.Add(drainOf(d.service))
	}
	if left := d.until.Sub(d.now); left > 0 {
		d.drain(left)
		return
	}
	d.leaveClusters()
	if left := d.until.Add(leaveFor).Sub(d.now); !d.gone && left > 0 {
		d.wakeIn(left)
		return
	}
	if !d.gone && !ownsClusters(d.service) {
		name := clusterName(d.service, d.record.Active.Cluster)
		d.addEvent(reason.LeaveAbandoned.Of(d.service.Name, name, "its head did not answer"), "Leave")
	}
	d.finalizer = false
}

// suspendService drains a service that must be suspended, and frees what it runs on.
func (d *draft) suspendService() {
	record := &d.record
	d.finalizer = d.finalizer && !ownsClusters(d.service)
	if record.Candidate != nil {
		d.endWithFormer(nil)
	}
	if record.Drained == 0 {
		record.Drained = d.now.Unix()
	}
	d.until = time.Unix(record.Drained, 0)
	if record.hasServed() {
		record.Drained = trafficOf(d.service, d.seen).lastRoutedAt(record.Drained, d.now, d.seen.findCluster(record.Active.Cluster))
		d.since = time.Unix(record.Drained, 0)
		d.until = d.since.Add(drainOf(d.service))
	}
	if left := d.until.Sub(d.now); left > 0 {
		d.drain(left)
		return
	}
	if d.leaveClusters(); d.gone {
		record.Suspended = true
	}
}

// drain lets requests end for a while, before the service leaves.
func (d *draft) drain(left time.Duration) {
	d.course = courseDrain
	d.wakeIn(left)
}

// leaveClusters has what the service runs on go, and notes whether nothing of it is left.
func (d *draft) leaveClusters() {
	d.course, d.gone = courseLeave, isGone(d.service, d.seen, d.record)
	if !ownsClusters(d.service) && isLeft(d.seen.findCluster(d.record.Active.Cluster), d.record.Applications) {
		d.record.Applications = nil
	}
}

// hasServed reports whether the service ever had requests that may not have ended.
func (r *Record) hasServed() bool { return r.Active.Good != "" && !r.Suspended }

// isGone reports whether nothing is left of what the service runs on.
func isGone(service *v1beta1.ClusterService, seen *Seen, record Record) bool {
	if ownsClusters(service) {
		for _, cluster := range seen.Clusters {
			if hasRemains(cluster) {
				return false
			}
		}
		return true
	}
	cluster := seen.findCluster(record.Active.Cluster)
	if len(record.Applications) == 0 || cluster == nil || ptr.Deref(cluster.Spec.Suspend, false) { // what ran there went with it
		return true
	}
	return isLeft(cluster, record.Applications)
}

// isLeft reports whether the head of a cluster that is not the service's own has taken that nothing is asked of it, where
// applications were.
func isLeft(cluster *Cluster, applications []string) bool {
	return len(applications) > 0 && canBeAsked(cluster) && !ptr.Deref(cluster.Spec.Suspend, false) && cluster.Heard &&
		!cluster.Answer.At.IsZero() && cluster.Answer.Taken == leaveDigest(applications)
}

// leaveDigest names that nothing is asked of a head, where some applications were.
func leaveDigest(applications []string) string {
	digest, _ := naming.ObjectHash([]any{"nothing", applications}) // it always marshals
	return digest
}

// hasRemains reports whether a cluster has pods that may yet end by themselves.
func hasRemains(cluster *Cluster) bool { return len(cluster.Pods) > len(cluster.Stranded) }

// resume begins again where the service was suspended: what runs then has yet to become healthy.
func (r *Record) resume(now time.Time) {
	if r.Drained == 0 {
		return
	}
	if r.Suspended {
		active := &r.Active
		active.Good, active.Healthy, active.At, active.Taken = "", 0, now.Unix(), ""
		r.Shift = upgrade.Shift{}
	}
	r.Drained, r.Suspended = 0, false
}
