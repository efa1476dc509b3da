package service

import (
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// step is a draft whose versions were judged: the second half of advance.
type step struct {
	*draft
	assessment
}

// advance brings the record on by how its versions are. The versions have changed their places after it where an
// upgrade ended: it returns them as the record names them.
func (d *draft) advance(versions assessment) assessment {
	t := &step{draft: d, assessment: versions}
	if d.course == courseServe {
		t.moveVersions()
	}
	t.updateRetiring()
	if d.service.DeletionTimestamp == nil {
		d.record.Routed = gatewayOf(d.service) != nil || d.seen.RouteRefused != nil || seenRoute(d.state) != nil
	}
	return t.assessment
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
	if mustBeginAgain(t.state) {
		t.beginVersion()
	}
	t.noteAsked()
}

// mustBeginAgain reports whether the cluster of the only version is gone or going, and cannot be made again: while the
// former one is still there, or where what it was built from is not known. What the spec asks for takes its place then.
func mustBeginAgain(s *state) bool {
	active := &s.record.Active
	switch {
	case !s.ownsClusters() || s.held || s.record.Candidate != nil || s.findCluster(active) != nil:
		return false
	case active.Pods == s.target.Pods:
		return s.seen.Clusters[active.Cluster] != nil
	default:
		return templateOf(s, active) == nil
	}
}

// noteAsked notes the applications that are asked of a cluster that is not the service's own.
func (t *step) noteAsked() {
	active := &t.record.Active
	if revision := t.findRevision(t.configuredRevision(active)); !t.ownsClusters() && revision.ID != "" && canBeAsked(t.findCluster(active)) {
		t.record.noteApplications(revision)
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
	active, terms := &t.record.Active, termsOf(t.service)
	left := terms.Deadline - since(active.At, t.now)
	sick := active.Healthy > 0 && t.active.Told && t.active.Ready == 0 &&
		(t.active.Asked || warns(t.active.Finding)) // not where proxies have yet to be asked
	switch {
	case first || !terms.AutoRollback || !isKnown(t.state, active.Good):
	case t.active.Failed:
		t.revertConfiguration(faultOf(t.service, upgrade.Failed, t.active.Finding))
	case sick && hasLostPods(t.state, active): // it begins again on those that come in their place
		active.At, active.Healthy = t.now.Unix(), 0
		t.wakeIn(terms.Deadline)
	case sick:
		t.revertConfiguration(faultOf(t.service, upgrade.Sick, t.active.Finding))
	case left <= 0:
		t.revertConfiguration(faultOf(t.service, upgrade.Late, hindranceOf(t.state, t.active)))
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
	active.replacePods(t.findRevision(active.Good).Pods, t.findCluster(active))
}

// moveUpgrade takes the next step of an upgrade to another cluster.
func (t *step) moveUpgrade() {
	record := &t.record
	candidate := record.Candidate
	if candidate == nil || isUnheard(t.state, candidate, t.candidate) || isUncounted(t.state, t.active) {
		return
	}
	lags := t.acknowledgeStep()
	active := upgrade.Version{Ready: measureCapacity(t.state, &record.Active, t.active, 100-record.Shift.Traffic)}
	move := upgrade.Advance(termsOf(t.service), record.Shift, active, upgrade.Version{
		Ready:  measureCapacity(t.state, candidate, t.candidate, record.Shift.Traffic),
		Failed: t.candidate.Failed, Lost: hasLostPods(t.state, candidate),
	}, t.now)
	if lags {
		move = move.Held(record.Shift, active)
	}
	changes := lags || move.Shift.Traffic != record.Shift.Traffic && isRouteTaken(t.state)
	record.Routing = changes && move.Shift.Traffic+record.Shift.Traffic > 0
	t.wakeIn(move.Wake)
	if move.Cause != "" && record.Failed == "" {
		record.noteFailure(candidate.Revision, circumstances(t.service), faultOf(t.service, move.Cause, t.candidate.Finding))
	}
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

// acknowledgeStep reports whether the gateway lags. The time of a step counts from when it is done.
func (t *step) acknowledgeStep() (lags bool) {
	lags = isGatewayBehind(t.state, nil)
	if shift := &t.record.Shift; t.record.Routing && !lags && !shift.Back && !shift.At.IsZero() {
		shift.At = t.now
	}
	if lags {
		t.wakeIn(routeWait)
	}
	return lags
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

// holdRetiring keeps clusters until the gateway leads no requests there any more; the time for those
// that they have counts from then.
func (t *step) holdRetiring() {
	lags := isGatewayBehind(t.state, nil)
	for i := range t.record.Retiring {
		switch retired := &t.record.Retiring[i]; {
		case retired.Unused:
		case lags:
			retired.Held = true
			t.wakeIn(routeWait)
		case retired.Held:
			retired.Held, retired.At = false, t.now.Unix()
		}
	}
}

// updateRetiring forgets clusters that are gone, and notes since when the others have no requests.
func (t *step) updateRetiring() {
	if !t.ownsClusters() {
		return
	}
	t.holdRetiring()
	record := &t.record
	for i := range record.Retiring {
		retired := &record.Retiring[i]
		cluster := t.seen.Clusters[retired.Cluster]
		retired.At, retired.Unused = lastRoutedAt(t.state, retired.At, cluster), retired.Unused && !hasOpenPods(t.state, cluster)
	}
	record.Retiring = slices.DeleteFunc(record.Retiring, func(retired Retired) bool { return t.seen.Clusters[retired.Cluster] == nil })
}
