package service

import (
	"slices"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// step is a draft whose versions were judged: the second half of advance.
type step struct {
	draft
	assessment
}

// advance brings the record on by how its versions are. The versions have changed their places after it where an
// upgrade ended: it returns them as the record names them.
func advance(a assessed) advanced {
	t := &step{draft: draft{view: a.view, decision: a.decision}, assessment: a.assessment}
	t.record = a.record.clone()
	if t.course == courseServe {
		t.moveVersions()
	}
	if ownsClusters(t.service) {
		lags := isGatewayLagging(t.view)
		t.record.holdRetiring(lags, t.now)
		if lags && slices.ContainsFunc(t.record.Retiring, func(retired Retired) bool { return !retired.Unused }) {
			t.wakeIn(routeWait)
		}
		t.record.updateRetiring(t.seen.Clusters, trafficOf(t.service, t.seen), t.now)
	}
	if t.service.DeletionTimestamp == nil {
		t.record.Routed = gatewayOf(t.service) != nil || t.seen.RouteRefused != nil || seenRoute(t.seen) != nil
	}
	return newAdvanced(t.view, t.decision, t.assessment)
}

func newAdvanced(v view, d decision, versions assessment) advanced {
	states := v.states()
	return advanced{view: v, decision: d, assessment: versions, states: states, proxies: proxiesOf(v, states)}
}

// moveVersions takes the next step with the versions that there are.
func (t *step) moveVersions() {
	record := &t.record
	t.wakeIn(t.active.Wake)
	t.wakeIn(t.candidate.Wake)
	if record.Active.Renewing == renewed && t.active.Well {
		record.Active.Renewing = ""
	}
	if record.Candidate == nil {
		t.settleConfiguration()
	}
	t.moveUpgrade()
	if record.Candidate == nil {
		record.Routing = false
	}
	if mustBeginAgain(t.view) {
		t.beginVersion()
	}
	active := t.stateOf(record.Active)
	if !ownsClusters(t.service) && active.configured.ID != "" && canBeAsked(active.cluster) {
		record.noteApplications(active.configured) // they are asked of a cluster that is not the service's own
	}
}

// mustBeginAgain reports whether the cluster of the only version is gone or going, and cannot be made again: while the
// former one is still there, or where what it was built from is not known. What the spec asks for takes its place then.
func mustBeginAgain(v view) bool {
	active := v.stateOf(v.record.Active)
	switch {
	case !ownsClusters(v.service) || v.held || v.record.Candidate != nil || active.cluster != nil:
		return false
	case active.Pods == v.target.Pods:
		return v.seen.Clusters[active.Cluster] != nil
	default:
		return templateOf(v.service, v.revisions, active) == nil
	}
}

// settleConfiguration judges a configuration that was given to pods that run: it has to be healthy for a
// while before it counts, and is taken back if it is not.
func (t *step) settleConfiguration() {
	active := &t.record.Active
	if active.Revision == "" || active.Revision == active.Good {
		return
	}
	well := t.active.Well && active.Renewing == ""
	if well && active.Healthy == 0 {
		active.Healthy = t.now.Unix()
	}
	first, left := active.Good == "", retireAfterOf(t.service)-since(active.Healthy, t.now)
	switch {
	case !well:
		t.doubtConfiguration(first)
	case first:
		active.Good = active.Revision
	case left <= 0:
		t.recordEnd(v1beta1.UpgradeSucceeded, nil)
		active.Good = active.Revision
	default:
		t.wakeIn(left)
	}
}

// doubtConfiguration takes a configuration back that is not well, once it is clear that it will not be or was
// given time enough. The first one has nothing to go back to.
func (t *step) doubtConfiguration(first bool) {
	active, state, terms := &t.record.Active, t.stateOf(t.record.Active), termsOf(t.service)
	left := terms.Deadline - since(active.At, t.now)
	sick := active.Healthy > 0 && t.active.Told && t.active.Ready == 0 &&
		(t.active.Asked || warns(t.active.Finding)) // not where proxies have yet to be asked
	switch {
	case first || !terms.AutoRollback || !isKnown(t.find(active.Good), active.Pods):
	case t.active.Failed:
		t.revertConfiguration(faultOf(t.service, upgrade.Failed, t.active.Finding))
	case sick && hasLostPods(trafficOf(t.service, t.seen), state): // it begins again on those that come in their place
		active.At, active.Healthy = t.now.Unix(), 0
		t.wakeIn(terms.Deadline)
	case sick:
		t.revertConfiguration(faultOf(t.service, upgrade.Sick, t.active.Finding))
	case left <= 0:
		t.revertConfiguration(faultOf(t.service, upgrade.Late, hindranceOf(state, t.active.Finding)))
	default:
		t.wakeIn(left)
	}
}

// revertConfiguration asks for the last good configuration again, and for its pods.
func (t *step) revertConfiguration(fault *Fault) {
	active := &t.record.Active
	t.recordEnd(v1beta1.UpgradeRolledBack, fault)
	t.record.noteFailure(active.Revision, circumstances(t.service), fault)
	active.Revision, active.At, active.Healthy = active.Good, t.now.Unix(), 0
	t.reverted = true
	active.replacePods(t.find(active.Good).Pods, t.seen.findCluster(active.Cluster))
}

// moveUpgrade takes the next step of an upgrade to another cluster.
func (t *step) moveUpgrade() {
	record := &t.record
	states := t.states()
	candidate := states.candidate
	if candidate == nil || record.Shift.Proven && isUnheard(candidate.cluster, t.candidate) || isUncounted(t.view, t.active) {
		return
	}
	lags := isGatewayLagging(t.view)
	if lags {
		t.wakeIn(routeWait)
	} else {
		record.acknowledgeStep(t.now)
	}
	active := upgrade.Version{Ready: measureCapacity(states.active, t.active, 100-record.Shift.Traffic)}
	move := upgrade.Advance(termsOf(t.service), record.Shift, active, upgrade.Version{
		Ready:  measureCapacity(*candidate, t.candidate, record.Shift.Traffic),
		Failed: t.candidate.Failed, Lost: hasLostPods(trafficOf(t.service, t.seen), *candidate),
	}, t.now)
	if lags {
		move = move.Held(record.Shift, active)
	}
	changes := lags || move.Shift.Traffic != record.Shift.Traffic && isRouteTaken(t.service, t.seen)
	record.Routing = changes && move.Shift.Traffic+record.Shift.Traffic > 0
	t.wakeIn(move.Wake)
	if move.Cause != "" && record.Failed == "" {
		record.noteFailure(candidate.Revision, circumstances(t.service), faultOf(t.service, move.Cause, t.candidate.Finding))
	}
	t.takeMove(move)
}

// takeMove notes how far an upgrade is after a move, and ends it where it is over.
func (t *step) takeMove(move upgrade.Move) {
	record := &t.record
	switch former := record.Shift; move.Verdict {
	case upgrade.Returned:
		record.Shift = move.Shift
		t.endWithFormer(record.Fault)
		t.candidate = Health{}
	case upgrade.Done:
		if move.Shift.Active < former.Active { // it keeps what it has while it may be gone back to
			move.Shift.Active = former.Active
		}
		record.Shift = move.Shift
		t.finishUpgrade()
	default:
		record.Shift = move.Shift
	}
}

// acknowledgeStep has the time of a step count from when the gateway has done it, which is now.
func (r *Record) acknowledgeStep(now time.Time) {
	if shift := &r.Shift; r.Routing && !shift.Back && !shift.At.IsZero() {
		shift.At = now
	}
}

// finishUpgrade keeps the former version while the new one has all requests, and lets it go then.
func (t *step) finishUpgrade() {
	record := &t.record
	keep := max(drainOf(t.service), retireAfterOf(t.service))
	if left := record.Shift.At.Add(keep).Sub(t.now); left > 0 {
		t.wakeIn(left)
		t.baking = true
		return
	}
	t.recordEnd(v1beta1.UpgradeSucceeded, nil)
	record.retireCluster(record.Active.Cluster, record.Shift.At, t.now)
	record.Active = *record.Candidate
	record.Active.Good, record.Active.Healthy = record.Active.Revision, t.now.Unix()
	record.Candidate, record.Shift = nil, upgrade.Shift{}
	t.active, t.candidate = t.candidate, Health{}
}

// faultOf returns why a version is taken back.
func faultOf(service *v1beta1.ClusterService, cause upgrade.Cause, finding reason.Finding) *Fault {
	said, _ := reason.Split(finding.Code, finding.Text) // the rollback has a remedy of its own
	if cause == upgrade.Late {
		finding = reason.ServeNotHealthyInTime.Of(termsOf(service).Deadline, said)
		said = finding.Text // with its own remedy, as the version may be good and slow
	}
	return &Fault{Reason: finding.Code, Text: cut(said)}
}

// holdRetiring keeps clusters until the gateway leads no requests there any more, while it lags; the time for those
// that they have counts from then.
func (r *Record) holdRetiring(lags bool, now time.Time) {
	for i := range r.Retiring {
		switch retired := &r.Retiring[i]; {
		case retired.Unused:
		case lags:
			retired.Held = true
		case retired.Held:
			retired.Held, retired.At = false, now.Unix()
		}
	}
}

// updateRetiring forgets clusters that are gone, and notes since when the others have no requests.
func (r *Record) updateRetiring(clusters map[int]*Cluster, t traffic, now time.Time) {
	for i := range r.Retiring {
		retired := &r.Retiring[i]
		cluster := clusters[retired.Cluster]
		retired.At, retired.Unused = t.lastRoutedAt(retired.At, now, cluster), retired.Unused && !t.hasOpenPods(cluster)
	}
	r.Retiring = slices.DeleteFunc(r.Retiring, func(retired Retired) bool { return clusters[retired.Cluster] == nil })
}
