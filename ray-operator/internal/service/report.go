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
	*state
	versions  assessment
	decision  decision
	routing   routing
	provision provision
	plan      Plan
	timer
}

// report puts together what was decided, and says how the service is. It is pure.
func report(s *state, d decision, versions assessment, routing routing, provision provision) Plan {
	r := &reporter{state: s, versions: versions, decision: d, routing: routing, provision: provision, plan: Plan{
		Keep: d.keep, Drop: provision.drop, Finalizer: d.finalizer, Fixtures: provision.fixtures,
		Make: provision.make, Change: provision.change, Discard: provision.discard,
		Open: routing.open, Close: routing.close, Lead: routing.lead, Strand: routing.strand, Wants: provision.wants,
		Upgrading: d.waiting, Conflict: provision.conflict, Gateway: routing.gateway, Programmed: routing.programmed,
		Events: slices.Concat(d.events, provision.events),
	}}
	switch {
	case s.service.DeletionTimestamp != nil:
		r.reportDeletion()
	case d.course == courseWait:
	case d.course == courseServe:
		r.reportVersions()
	default:
		r.reportSuspension()
	}
	if d.obstacle != nil {
		r.plan.Finding, r.plan.Stalled = *d.obstacle, true
		if d.course == courseWait {
			r.plan.Phase = v1beta1.PhasePending
		}
	}
	if unreachable := provision.unreachable; unreachable != nil {
		r.plan.Finding, r.plan.Stalled, r.plan.Serving = *unreachable, true, false
	}
	for _, stage := range []timer{d.timer, routing.timer, provision.timer} {
		r.wakeIn(stage.wake)
	}
	r.plan.Wake = r.wake
	return r.plan
}

// setPhase sets what the service is at.
func (r *reporter) setPhase(phase string, finding reason.Finding) {
	r.plan.Phase, r.plan.Finding = phase, finding
}

// reportDeletion says how far the deletion is.
func (r *reporter) reportDeletion() {
	switch r.decision.course {
	case courseDrain:
		r.setPhase(v1beta1.PhaseDeleting, reason.ServiceDraining.Of(reconcile.Stamp(r.decision.until)))
	case courseLeave:
		r.setPhase(v1beta1.PhaseDeleting, reason.ServiceLeaving.Of(r.nameOf(r.findCluster(&r.record.Active))))
	default:
		return
	}
	r.plan.Active = r.service.Status.Active
}

// reportSuspension says how far the suspension is.
func (r *reporter) reportSuspension() {
	switch {
	case r.decision.course == courseDrain:
		r.setPhase(v1beta1.PhaseSuspending, reason.ServiceDraining.Of(reconcile.Stamp(r.decision.until)))
	case r.decision.gone:
		r.setPhase(v1beta1.PhaseSuspended, reason.ServiceSuspended.Of())
	default:
		r.setPhase(v1beta1.PhaseSuspending, reason.ServiceLeaving.Of(r.nameOf(r.findCluster(&r.record.Active))))
	}
	suspended := r.plan.Finding
	r.plan.Suspended = &suspended
	if active := &r.record.Active; active.Revision != "" {
		r.plan.Active = r.describeVersion(active, Health{}, 0)
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
	a, c := r.countEndpoints(r.findCluster(&record.Active)), r.countEndpoints(r.findCluster(record.Candidate))
	r.describeVersions(a, c)
	r.plan.Serving = record.Active.Good != "" && a+c > 0 && r.isUsable(c)
	switch {
	case r.plan.Serving && !isReached(r.state):
		r.plan.Serving = false
		r.setPhase(v1beta1.PhaseStarting, reason.ServeProving.Of(r.clusterName(&record.Active)))
		r.wakeIn(reconcile.Recheck)
	case record.Active.Good == "":
		r.setPhase(v1beta1.PhaseStarting, r.versions.active.Finding)
		r.reportDeadline()
	case !r.plan.Serving:
		r.setPhase(r.explainBroken(a + c))
	case warns(r.versions.active.Finding): // it serves, and somebody should look
		r.setPhase(v1beta1.PhaseReady, r.versions.active.Finding)
	default:
		r.setPhase(v1beta1.PhaseReady, reason.ServiceServes.Of(r.findRevision(record.Active.Revision).numberText(), r.clusterName(&record.Active)))
	}
	r.reportUpgrade(a, c)
	r.reportRollback()
}

// explainBroken says why nothing serves, with so many pods that get requests: because somebody should
// look, or because all pods are just being replaced.
func (r *reporter) explainBroken(endpoints int) (string, reason.Finding) {
	finding := r.versions.active.Finding
	switch {
	case endpoints == 0 && r.record.Active.Renewing != "" && (!warns(finding) || finding.Code == reason.NoEndpoints.Code):
		return v1beta1.PhaseUpgrading, r.describeReplacement()
	case endpoints == 0 && !warns(finding):
		return v1beta1.PhaseDegraded, reason.NoEndpoints.Of(r.clusterName(&r.record.Active), r.explainNoEndpoints())
	default:
		return v1beta1.PhaseDegraded, finding
	}
}

// isUsable reports whether the version that has the requests is not known to be broken, or the
// candidate takes some and is not. One proxy that fails among others takes none. While a
// configuration is on its way to pods that run, or was just taken back, the replicas of the former
// one count, which Serve keeps until others run.
func (r *reporter) isUsable(candidates int) bool {
	changing := r.decision.reverted || r.record.Active.Revision != r.record.Active.Good
	spared := changing || r.versions.active.Finding.Code == reason.ProxyFailing.Code
	if !r.versions.active.Told || !warns(r.versions.active.Finding) || spared && r.versions.active.Answers {
		return true
	}
	return candidates > 0 && r.versions.candidate.Ready > 0
}

// describeVersions tells of both, with the share of the requests that so many endpoints come to.
func (r *reporter) describeVersions(a, c int) {
	record := &r.record
	r.plan.Active = r.describeVersion(&record.Active, r.versions.active, a)
	if a+c > 0 {
		r.plan.Active.TrafficPercent = 100
	}
	if record.Candidate == nil {
		return
	}
	r.plan.Candidate = r.describeVersion(record.Candidate, r.versions.candidate, c)
	if a+c > 0 {
		r.plan.Candidate.TrafficPercent = int32(100 * c / (a + c))
		if isRouteTaken(r.state) {
			r.plan.Candidate.TrafficPercent = r.routing.weight
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
	rolled := reason.UpgradeRolledBack.Of(r.target.numberText(), r.findRevision(record.Active.Revision).numberText(), record.Fault.Text)
	r.plan.RolledBack = &rolled
	if r.plan.Serving && record.Candidate == nil {
		r.plan.Finding = rolled
	}
}

// explainNoEndpoints returns what keeps pods from getting requests.
func (r *reporter) explainNoEndpoints() string {
	if r.versions.active.Finding.Text != "" {
		return r.versions.active.Finding.Text
	}
	return "none is ready"
}

// describeVersion returns a side as the status tells of it.
func (r *reporter) describeVersion(side *Side, h Health, endpoints int) *v1beta1.ServiceVersion {
	var good int64
	if side.Good != "" {
		good = r.findRevision(side.Good).Number
	}
	return &v1beta1.ServiceVersion{
		ClusterName: r.clusterName(side), Revision: r.findRevision(side.Revision).Number, GoodRevision: good, CapacityPercent: int32(r.capacityOf(side)),
		ReadyEndpoints: int32(endpoints), Healthy: h.Well, Applications: h.Applications,
	}
}

// countEndpoints returns how many pods of a cluster get requests once the plan is carried out.
func (r *reporter) countEndpoints(cluster *Cluster) int {
	if cluster == nil {
		return 0
	}
	n := 0
	for _, pod := range cluster.Pods {
		open := r.isOpened(pod) && !slices.Contains(r.routing.close, pod) || slices.Contains(r.routing.open, pod)
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
