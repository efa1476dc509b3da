package service

import (
	"fmt"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// reportUpgrade says how far the way to another version is. That of type None, or of what is
// waited for before it begins, was said before.
func (r *reporter) reportUpgrade(a, c int) {
	record := &r.record
	var finding reason.Finding
	switch {
	case record.Candidate != nil:
		finding = r.describeShift(a, c)
	case record.Active.Renewing != "":
		finding = r.describeReplacement()
	case record.Active.Good == "" || record.Active.Revision == record.Active.Good:
		return
	default:
		finding = r.describeChange()
	}
	switch {
	case record.Candidate != nil && record.Shift.Back, record.Candidate == nil && record.Active.Revision == record.Active.Good:
		r.plan.Phase = v1beta1.PhaseRollingBack
	case r.plan.Phase == v1beta1.PhaseReady:
		r.plan.Phase = v1beta1.PhaseUpgrading
	}
	r.plan.Upgrading = &finding
	if r.plan.Serving && finding.Severity() >= r.plan.Finding.Severity() {
		r.plan.Finding = finding
	}
}

// describeChange says how far another configuration on pods that run is.
func (r *reporter) describeChange() reason.Finding {
	active := r.states.active
	name := active.revision.numberText()
	if active.Healthy > 0 {
		return reason.UpgradeBaking.Of(name, reconcile.Stamp(reconcile.Moment(active.Healthy+int64(retireAfterOf(r.service).Seconds())).Time))
	}
	return reason.ConfigChanging.Of(name, active.clusterName, waitsFor(r.active.Finding))
}

// describeShift says how far the way to another cluster is.
func (r *reporter) describeShift(a, c int) reason.Finding {
	record, shift, candidate := &r.record, r.record.Shift, r.states.candidate
	to := candidate.revision.numberText()
	switch {
	case shift.Back:
		why := "the spec says so"
		if record.Fault != nil {
			why = record.Fault.Text
		}
		return reason.UpgradeReturning.Of(r.find(record.Active.Good).numberText(), why)
	case r.candidate.Ready > 0 && shift.Proven && r.behind:
		return reason.UpgradeRouting.Of(to, fmt.Sprintf("%d %%", shift.Traffic), r.explainDelay())
	case shift.Traffic == 100 && r.candidate.Ready > 0:
		return reason.UpgradeBaking.Of(to, reconcile.Stamp(shift.At.Add(max(drainOf(r.service), retireAfterOf(r.service)))))
	case shift.Traffic == 0 && warns(r.candidate.Finding):
		return r.candidate.Finding
	case shift.Traffic == 0:
		return reason.UpgradePreparing.Of(to, candidate.clusterName, waitsFor(r.candidate.Finding))
	default:
		share := fmt.Sprintf("%d of %d endpoints", c, a+c)
		if isRouteTaken(r.service, r.seen) {
			share = fmt.Sprintf("%d %% of the requests", r.weight)
		}
		return reason.UpgradeShifting.Of(to, candidate.clusterName, share)
	}
}

// describeReplacement says how far pods that are replaced where they are have come.
func (r *reporter) describeReplacement() reason.Finding {
	active := r.states.active
	version, name, cluster := active.revision.numberText(), active.clusterName, active.cluster
	if cluster == nil {
		return reason.UpgradeRecreating.Of(name, version, "it is being made")
	}
	now := cluster.ComputeCluster
	for _, change := range r.change {
		if change.Seen == now {
			now = change.Wanted
		}
	}
	hindrance := waitsFor(hindranceOf(active, r.active.Finding))
	if isRecreated(now) {
		return reason.UpgradeRecreating.Of(name, version, hindrance)
	}
	return reason.UpgradeInPlace.Of(name, version, hindrance)
}

// waitsFor returns what a finding waits for, for people.
func waitsFor(finding reason.Finding) string {
	if finding.Text == "" {
		return "all is up"
	}
	return finding.Text
}

// explainDelay says in words what a gateway that is behind is waited for.
func (r *reporter) explainDelay() string {
	if r.programmed {
		return "its Service has yet to answer"
	}
	return r.gateway.Text
}
