package service

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// draft is the next record while it is written, with what is decided along with it. Only the files of advance assign
// fields of the record, besides its parser.
type draft struct {
	*state
	decision
}

// decision is what advance decided beside the record.
type decision struct {
	// course is what happens to the service in this pass.
	course course
	// since is when the requests stopped that must end before the service goes, zero where there are none; until is
	// when they have ended. gone: nothing is left of what the service runs on.
	since, until time.Time
	gone         bool
	// obstacle is why the spec cannot be followed, waiting is why an upgrade cannot begin; nil where it can.
	obstacle, waiting *reason.Finding
	// finalizer: the service must have the finalizer.
	finalizer bool
	// keep is a revision to keep, nil if there is none.
	keep *appsv1.ControllerRevision
	// reverted: the last good configuration was asked for again in this pass.
	reverted bool
	// baking: the candidate has all requests, and the active version is kept to go back to.
	baking bool
	events []telemetry.Event
	timer
}

// course is what happens to a service in a pass.
type course int

const (
	// courseServe: versions run, and pods get requests.
	courseServe course = iota
	// courseWait: the spec cannot be followed, and nothing runs yet.
	courseWait
	// courseDrain: no pod gets new requests, and those that there are may end.
	courseDrain
	// courseLeave: what the service runs on goes.
	courseLeave
	// courseEnd: the service is deleted, and nothing of it is left.
	courseEnd
)

// addEvent adds an event.
func (d *decision) addEvent(finding reason.Finding, action string) {
	d.events = append(d.events, eventOf(finding, action))
}

// follow brings the record to what the spec asks for, and to what heads say they took. What versions must be is known
// after it, and so what they can be judged by.
func (d *draft) follow() {
	d.adoptClusters()
	d.awaitSlices()
	switch {
	case d.service.DeletionTimestamp != nil:
		d.deleteService()
	case d.findObstacle():
		if d.record.Active.Revision == "" || d.record.Suspended {
			d.course = courseWait
			return
		}
		d.target, d.held = d.findRevision(d.record.Active.Revision), true
		d.noteAnswers()
	case ptr.Deref(d.service.Spec.Suspend, false):
		d.suspendService()
	default:
		d.finalizer = true
		d.resumeService()
		d.followTarget()
		d.noteAnswers()
	}
}

// awaitSlices looks again while an EndpointSlice lists a pod that gets no requests any more: as long as one does, the time
// that the last ones have is yet to begin.
func (d *draft) awaitSlices() {
	for _, cluster := range d.seen.Clusters {
		if slices.ContainsFunc(cluster.Pods, func(pod *corev1.Pod) bool { return d.isAttended(pod) && !d.isOpened(pod) }) {
			d.wakeIn(prompt)
		}
	}
}

// noteAnswers notes what became of what was asked for: pods that were replaced, configurations that heads took, and how
// much capacity the active version has.
func (d *draft) noteAnswers() {
	d.noteReplacement()
	d.noteTaken(&d.record.Active)
	d.record.Whole = countWhole(d.state)
	if d.record.Candidate != nil {
		d.noteTaken(d.record.Candidate)
	}
}

// noteTaken notes that the head of a version has taken what is asked of it.
func (d *draft) noteTaken(side *Side) {
	cluster, revision := d.findCluster(side), d.findRevision(d.configuredRevision(side))
	if cluster == nil || cluster.Head == nil {
		return
	}
	head, digest := string(cluster.Head.UID), d.digestOf(side)
	if !cluster.Heard || cluster.Answer.Taken != digest || side.Taken == digest && side.Took == revision.ID && side.Head == head {
		return
	}
	side.Taken, side.Took, side.Head = digest, revision.ID, head
	if !d.ownsClusters() {
		d.record.Applications = nil
		d.record.noteApplications(revision)
	}
}

// adoptClusters notes clusters of the service's own that nobody knows of among those that go. One that has
// requests keeps the time for them.
func (d *draft) adoptClusters() {
	if d.service.DeletionTimestamp != nil || !d.ownsClusters() {
		return
	}
	for number, cluster := range d.seen.Clusters {
		known := number == d.record.Active.Cluster || number == d.candidateNumber() ||
			slices.ContainsFunc(d.record.Retiring, func(r Retired) bool { return r.Cluster == number })
		switch {
		case known:
		case slices.ContainsFunc(cluster.Pods, d.hasRequests):
			d.record.retireCluster(number, d.now, d.now)
		default:
			d.record.retireCluster(number, time.Time{}, d.now)
		}
	}
	slices.SortFunc(d.record.Retiring, func(a, b Retired) int { return a.Cluster - b.Cluster })
}

// recordEnd notes how a change ended.
func (d *draft) recordEnd(result v1beta1.UpgradeResult, fault *Fault) {
	record := &d.record
	from, to := record.Active.Good, record.Active.Revision
	if record.Candidate != nil {
		from, to = record.Active.Revision, record.Candidate.Revision
	}
	old, latter := d.findRevision(from).numberText(), d.findRevision(to).numberText()
	record.Last = &Last{From: d.findRevision(from).Number, To: d.findRevision(to).Number, Result: result, Fault: fault, Began: record.Began, Ended: d.now.Unix()}
	switch {
	case result == v1beta1.UpgradeSucceeded:
		d.addEvent(reason.UpgradeDone.Of(latter, old), "Upgrade")
	case fault != nil:
		d.addEvent(reason.UpgradeRolledBack.Of(latter, old, fault.Text), "RollBack")
	default:
		d.addEvent(reason.UpgradeWithdrawn.Of(latter, old), "RollBack")
	}
}

// endWithFormer ends an upgrade with the former version.
func (d *draft) endWithFormer(fault *Fault) {
	result := v1beta1.UpgradeSuperseded
	if fault != nil {
		result = v1beta1.UpgradeRolledBack
	}
	d.recordEnd(result, fault)
	d.record.retireCluster(d.record.Candidate.Cluster, d.record.Shift.At, d.now)
	d.record.Candidate, d.record.Shift = nil, upgrade.Shift{}
}

// retireCluster has a cluster go that has had no requests since a moment, zero if it never had any.
func (r *Record) retireCluster(number int, since, now time.Time) {
	if number > 0 {
		unused := since.IsZero()
		if unused {
			since = now
		}
		r.Retiring = append(r.Retiring, Retired{Cluster: number, At: since.Unix(), Unused: unused})
	}
}
