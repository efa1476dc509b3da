package service

import (
	"slices"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// reporter is a plan while it is told of.
type reporter struct {
	provisioned
	plan Plan
	timer
}

// report puts together what was decided, and says how the service is. It is pure.
func report(p provisioned) Plan {
	r := &reporter{provisioned: p, plan: Plan{
		Keep: p.keep, Drop: p.drop, Finalizer: p.finalizer, Fixtures: p.fixtures,
		Make: p.make, Change: p.change, Discard: p.discard,
		Open: p.open, Close: p.close, Lead: p.lead, Strand: p.strand, Wants: p.wants,
		Upgrading: p.waiting, Conflict: p.conflict, Gateway: p.gateway, Programmed: p.programmed,
		Events: slices.Concat(p.decision.events, p.provision.events),
	}}
	switch {
	case p.service.DeletionTimestamp != nil:
		r.reportDeletion()
	case p.course == courseWait:
	case p.course == courseServe:
		r.reportVersions()
	default:
		r.reportSuspension()
	}
	if p.obstacle != nil {
		r.plan.Finding, r.plan.Stalled = *p.obstacle, true
		if p.course == courseWait {
			r.plan.Phase = v1beta1.PhasePending
		}
	}
	if unreachable := p.unreachable; unreachable != nil {
		r.plan.Finding, r.plan.Stalled, r.plan.Serving = *unreachable, true, false
	}
	for _, stage := range []timer{p.decision.timer, p.routing.timer, p.provision.timer} {
		r.wakeIn(stage.wake)
	}
	r.plan.Wake = r.wake
	return r.plan
}

// setPhase sets the phase of the service.
func (r *reporter) setPhase(phase string, finding reason.Finding) {
	r.plan.Phase, r.plan.Finding = phase, finding
}

// reportDeletion says how far the deletion is.
func (r *reporter) reportDeletion() {
	switch r.course {
	case courseDrain:
		r.setPhase(v1beta1.PhaseDeleting, reason.ServiceDraining.Of(reconcile.Stamp(r.decision.until)))
	case courseLeave:
		r.setPhase(v1beta1.PhaseDeleting, reason.ServiceLeaving.Of(r.states.active.clusterName))
	default:
		return
	}
	r.plan.Active = r.service.Status.Active
}

// reportSuspension says how far the suspension is.
func (r *reporter) reportSuspension() {
	switch {
	case r.course == courseDrain:
		r.setPhase(v1beta1.PhaseSuspending, reason.ServiceDraining.Of(reconcile.Stamp(r.decision.until)))
	case r.gone:
		r.setPhase(v1beta1.PhaseSuspended, reason.ServiceSuspended.Of())
	default:
		r.setPhase(v1beta1.PhaseSuspending, reason.ServiceLeaving.Of(r.states.active.clusterName))
	}
	suspended := r.plan.Finding
	r.plan.Suspended = &suspended
	if active := r.states.active; active.Revision != "" {
		r.plan.Active = describeVersion(active, r.find(active.Good), Health{}, 0)
	}
}

// judgeDeadline says what to tell of a version that has not become healthy for a while, and waits for something: what
// it waits for, where that asks for a person, or else that its time is over. It is false before the deadline, with what
// is left of it; no deadline is 0.
func judgeDeadline(waited, deadline time.Duration, waits reason.Finding) (told reason.Finding, left time.Duration, over bool) {
	switch {
	case deadline <= 0:
		return waits, 0, false
	case waited < deadline:
		return waits, deadline - waited, false
	case warns(waits):
		return waits, 0, true
	default:
		return reason.ServeNotHealthyInTime.Of(deadline, waits.Text), 0, true
	}
}

// reportVersions says how the service is: of the version that has the requests first, and then of the
// one on its way.
func (r *reporter) reportVersions() {
	record := &r.record
	a, c := r.countEndpoints(r.states.active.cluster), r.countEndpoints(r.seen.findCandidate(record.Candidate))
	r.describeVersions(a, c)
	r.plan.Serving = record.Active.Good != "" && a+c > 0 && r.isUsable(c)
	switch {
	case r.plan.Serving && !isReached(r.service, r.seen.Clusters, r.proxies.probes):
		r.plan.Serving = false
		r.setPhase(v1beta1.PhaseStarting, reason.ServeProving.Of(r.states.active.clusterName))
		r.wakeIn(reconcile.Recheck)
	case record.Active.Good == "":
		r.setPhase(v1beta1.PhaseStarting, r.active.Finding)
		r.reportDeadline()
	case !r.plan.Serving:
		r.setPhase(r.explainBroken(a + c))
	case warns(r.active.Finding): // it serves, and somebody should look
		r.setPhase(v1beta1.PhaseReady, r.active.Finding)
	default:
		r.setPhase(v1beta1.PhaseReady, reason.ServiceServes.Of(r.states.active.revision.numberText(), r.states.active.clusterName))
	}
	r.reportUpgrade(a, c)
	r.reportRollback()
}

// explainBroken says why nothing serves, with so many pods that get requests: because somebody should
// look, or because all pods are just being replaced.
func (r *reporter) explainBroken(endpoints int) (string, reason.Finding) {
	finding := r.active.Finding
	switch {
	case endpoints == 0 && r.record.Active.Renewing != "" && (!warns(finding) || finding.Code == reason.NoEndpoints.Code):
		return v1beta1.PhaseUpgrading, r.describeReplacement()
	case endpoints == 0 && !warns(finding):
		return v1beta1.PhaseDegraded, reason.NoEndpoints.Of(r.states.active.clusterName, r.explainNoEndpoints())
	default:
		return v1beta1.PhaseDegraded, finding
	}
}

// isUsable reports whether the version that has the requests is not known to be broken, or the
// candidate takes some and is not. One proxy that fails among others takes none. While a
// configuration is on its way to pods that run, or was just taken back, the replicas of the former
// one count, which Serve keeps until others run.
func (r *reporter) isUsable(candidates int) bool {
	changing := r.reverted || r.record.Active.Revision != r.record.Active.Good
	spared := changing || r.active.Finding.Code == reason.ProxyFailing.Code
	if !r.active.Told || !warns(r.active.Finding) || spared && r.active.Answers {
		return true
	}
	return candidates > 0 && r.candidate.Ready > 0
}

// describeVersions tells of both, with the share of the requests that so many endpoints come to.
func (r *reporter) describeVersions(a, c int) {
	active, candidate := r.states.active, r.states.candidate
	r.plan.Active = describeVersion(active, r.find(active.Good), r.active, a)
	if a+c > 0 {
		r.plan.Active.TrafficPercent = 100
	}
	if candidate == nil {
		return
	}
	r.plan.Candidate = describeVersion(*candidate, r.find(candidate.Good), r.candidate, c)
	if a+c > 0 {
		r.plan.Candidate.TrafficPercent = int32(100 * c / (a + c))
		if isRouteTaken(r.service, r.seen) {
			r.plan.Candidate.TrafficPercent = r.weight
		}
		r.plan.Active.TrafficPercent -= r.plan.Candidate.TrafficPercent
	}
}

// reportRollback says that what the spec asks for was taken back, or is being.
func (r *reporter) reportRollback() {
	record := &r.record
	if record.Failed == "" || record.Failed != r.target.ID || record.Fault == nil {
		return
	}
	rolled := reason.UpgradeRolledBack.Of(r.target.numberText(), r.states.active.revision.numberText(), record.Fault.Text)
	r.plan.RolledBack = &rolled
	if r.plan.Serving && record.Candidate == nil {
		r.plan.Finding = rolled
	}
}

// explainNoEndpoints returns what keeps pods from getting requests.
func (r *reporter) explainNoEndpoints() string {
	if r.active.Finding.Text != "" {
		return r.active.Finding.Text
	}
	return "none is ready"
}

// describeVersion returns a version as the status tells of it, with the revision of it that was healthy last.
func describeVersion(version versionState, good Revision, h Health, endpoints int) *v1beta1.ServiceVersion {
	told := &v1beta1.ServiceVersion{
		ClusterName: version.clusterName, Revision: version.revision.Number, CapacityPercent: int32(version.capacity),
		ReadyEndpoints: int32(endpoints), Healthy: h.Well, Applications: h.Applications,
	}
	if version.Good != "" {
		told.GoodRevision = good.Number
	}
	return told
}

// countEndpoints returns how many pods of a cluster get requests once the plan is carried out.
func (r *reporter) countEndpoints(cluster *Cluster) int {
	if cluster == nil {
		return 0
	}
	labels, n := trafficOf(r.service, r.seen), 0
	for _, pod := range cluster.Pods {
		open := labels.isOpened(pod) && !slices.Contains(r.close, pod) || slices.Contains(r.open, pod)
		if open && pod.DeletionTimestamp == nil && reconcile.Ready(pod) {
			n++
		}
	}
	return n
}

// reportDeadline has a first version be stalled once its time is over. There is nothing to go back to, so it is not
// taken back, and serves as soon as it is healthy.
func (r *reporter) reportDeadline() {
	told, left, over := judgeDeadline(since(r.record.Active.At, r.now), termsOf(r.service).Deadline, r.plan.Finding)
	r.wakeIn(left)
	r.plan.Finding, r.plan.Stalled = told, r.plan.Stalled || over
}
