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
	view
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
func follow(v view) followed {
	v.record = v.record.clone()
	d := &draft{view: v, decision: decision{finalizer: hasFinalizer(v.service)}}
	d.followSpec()
	return followed{view: d.view, decision: d.decision}
}

// followSpec chooses the course of a service by its spec, and notes what begins with it.
func (d *draft) followSpec() {
	labels := trafficOf(d.service, d.seen)
	if d.service.DeletionTimestamp == nil && ownsClusters(d.service) {
		d.record.adoptClusters(d.seen.Clusters, labels, d.now)
	}
	if areListedYet(d.seen.Clusters, labels) {
		d.wakeIn(prompt)
	}
	if d.service.DeletionTimestamp != nil {
		d.deleteService()
		return
	}
	d.target, d.obstacle = chooseTarget(d.view)
	switch {
	case d.obstacle != nil && (d.record.Active.Revision == "" || d.record.Suspended):
		d.course = courseWait
	case d.obstacle != nil:
		d.target, d.held = d.find(d.record.Active.Revision), true
		d.noteAnswers()
	case ptr.Deref(d.service.Spec.Suspend, false):
		d.suspendService()
	default:
		d.finalizer = true
		d.record.resume(d.now)
		d.followTarget()
		d.noteAnswers()
	}
}

// areListedYet reports whether an EndpointSlice lists a pod that gets no requests any more: as long as one does, the time
// that the last ones have is yet to begin.
func areListedYet(clusters map[int]*Cluster, t traffic) bool {
	for _, cluster := range clusters {
		if slices.ContainsFunc(cluster.Pods, func(pod *corev1.Pod) bool { return t.isAttended(pod) && !t.isOpened(pod) }) {
			return true
		}
	}
	return false
}

// noteAnswers notes what became of what was asked for: pods that were replaced, configurations that heads took, and how
// much capacity the active version has.
func (d *draft) noteAnswers() {
	active := d.stateOf(d.record.Active)
	d.record.Active.noteReplacement(active.cluster, wantedOf(d.view, active))
	d.noteTaken(&d.record.Active)
	if candidate := d.record.Candidate; candidate != nil {
		d.record.Whole = d.record.countWhole(active.cluster, d.find(candidate.Revision).Config)
		d.noteTaken(candidate)
	} else {
		d.record.Whole = nil
	}
}

// noteTaken notes that the head of a version has taken what is asked of it.
func (d *draft) noteTaken(version *Version) {
	state := d.stateOf(*version)
	cluster, revision := state.cluster, state.configured
	if cluster == nil || cluster.Head == nil {
		return
	}
	head, digest := string(cluster.Head.UID), state.digest()
	if !cluster.Heard || cluster.Answer.Taken != digest || version.Taken == digest && version.Took == revision.ID && version.Head == head {
		return
	}
	version.Taken, version.Took, version.Head = digest, revision.ID, head
	if !ownsClusters(d.service) {
		d.record.Applications = nil
		d.record.noteApplications(revision)
	}
}

// adoptClusters notes clusters of the service's own that nobody knows of among those that go. One that has
// requests keeps the time for them.
func (r *Record) adoptClusters(clusters map[int]*Cluster, t traffic, now time.Time) {
	for number, cluster := range clusters {
		known := number == r.Active.Cluster || number == r.candidateNumber() ||
			slices.ContainsFunc(r.Retiring, func(retired Retired) bool { return retired.Cluster == number })
		switch {
		case known:
		case slices.ContainsFunc(cluster.Pods, t.hasRequests):
			r.retireCluster(number, now, now)
		default:
			r.retireCluster(number, time.Time{}, now)
		}
	}
	slices.SortFunc(r.Retiring, func(a, b Retired) int { return a.Cluster - b.Cluster })
}

// candidateNumber returns the number of the candidate's cluster, 0 if there is none.
func (r *Record) candidateNumber() int {
	if r.Candidate == nil {
		return 0
	}
	return r.Candidate.Cluster
}

// recordEnd notes how a change ended.
func (d *draft) recordEnd(result v1beta1.UpgradeResult, fault *Fault) {
	record := &d.record
	from, to := record.Active.Good, record.Active.Revision
	if record.Candidate != nil {
		from, to = record.Active.Revision, record.Candidate.Revision
	}
	old, latter := d.find(from).numberText(), d.find(to).numberText()
	record.Last = &Last{From: d.find(from).Number, To: d.find(to).Number, Result: result, Fault: fault, Began: record.Began, Ended: d.now.Unix()}
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
