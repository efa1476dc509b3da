package service

import (
	"time"

	"k8s.io/utils/ptr"

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
	if d.hasServed() {
		since := max(deleted.Unix(), d.record.Drained)
		if since = lastRoutedAt(d.state, since, d.findCluster(&d.record.Active), d.findCluster(d.record.Candidate)); since > deleted.Unix() {
			d.record.Drained, deleted = since, time.Unix(since, 0)
		}
		d.since, d.until = deleted, deleted.Add(drainOf(d.service))
	}
	if d.isDraining() {
		return
	}
	d.leaveClusters()
	if left := d.until.Add(leaveFor).Sub(d.now); !d.gone && left > 0 {
		d.wakeIn(left)
		return
	}
	if !d.gone && !d.ownsClusters() {
		d.addEvent(reason.LeaveAbandoned.Of(d.service.Name, d.nameOf(d.findCluster(&d.record.Active)), "its head did not answer"), "Leave")
	}
	d.finalizer = false
}

// suspendService drains a service that must be suspended, and frees what it runs on.
func (d *draft) suspendService() {
	record := &d.record
	d.finalizer = d.finalizer && !d.ownsClusters()
	if record.Candidate != nil {
		d.endWithFormer(nil)
	}
	if record.Drained == 0 {
		record.Drained = d.now.Unix()
	}
	d.until = time.Unix(record.Drained, 0)
	if d.hasServed() {
		record.Drained = lastRoutedAt(d.state, record.Drained, d.findCluster(&record.Active))
		d.since = time.Unix(record.Drained, 0)
		d.until = d.since.Add(drainOf(d.service))
	}
	if d.isDraining() {
		return
	}
	if d.leaveClusters(); d.gone {
		record.Suspended = true
	}
}

// isDraining reports whether requests may yet end before the service leaves.
func (d *draft) isDraining() bool {
	left := d.until.Sub(d.now)
	if left <= 0 {
		return false
	}
	d.course = courseDrain
	d.wakeIn(left)
	return true
}

// leaveClusters has what the service runs on go, and notes whether nothing of it is left.
func (d *draft) leaveClusters() {
	d.course, d.gone = courseLeave, isGone(d.state)
	if d.gone && !d.ownsClusters() && isLeft(d.state) {
		d.record.Applications = nil
	}
}

// isGone reports whether nothing is left of what the service runs on.
func isGone(s *state) bool {
	if s.ownsClusters() {
		for _, cluster := range s.seen.Clusters {
			if hasRemains(cluster) {
				return false
			}
		}
		return true
	}
	cluster := s.findCluster(&s.record.Active)
	return len(s.record.Applications) == 0 || cluster == nil || ptr.Deref(cluster.Spec.Suspend, false) || isLeft(s) // what ran there went with it
}

// isLeft reports whether the head of a cluster that is not the service's own has taken that nothing is asked of it.
func isLeft(s *state) bool {
	cluster := s.findCluster(&s.record.Active)
	return len(s.record.Applications) > 0 && canBeAsked(cluster) && !ptr.Deref(cluster.Spec.Suspend, false) && cluster.Heard &&
		!cluster.Answer.At.IsZero() && cluster.Answer.Taken == leaveDigest(s.record.Applications)
}

// leaveDigest names that nothing is asked of a head, where some applications were.
func leaveDigest(applications []string) string {
	digest, _ := naming.ObjectHash([]any{"nothing", applications}) // it always marshals
	return digest
}

// hasRemains reports whether a cluster has pods that may yet end by themselves.
func hasRemains(cluster *Cluster) bool { return len(cluster.Pods) > len(cluster.Stranded) }

// resumeService begins again where the service was suspended: what runs then has yet to become healthy.
func (d *draft) resumeService() {
	record := &d.record
	if record.Drained == 0 {
		return
	}
	if record.Suspended {
		active := &record.Active
		active.Good, active.Healthy, active.At, active.Taken = "", 0, d.now.Unix(), ""
		record.Shift = upgrade.Shift{}
	}
	record.Drained, record.Suspended = 0, false
}
