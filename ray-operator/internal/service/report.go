package service

import (
	"fmt"
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// report says how the service is: of the version that has the requests first, and then of the
// one on its way.
func (p *planner) report() {
	record := &p.record
	a, c := p.endpoints(p.cluster(&record.Active)), p.endpoints(p.cluster(record.Candidate))
	p.versions(a, c)
	p.Serving = record.Active.Good != "" && a+c > 0 && p.usable(c)
	switch {
	case p.Serving && !p.reached():
		p.Serving = false
		p.say(v1alpha1.PhaseStarting, reason.ServeProving.Of(p.nameOf(&record.Active)))
		p.lookAgain()
	case record.Active.Good == "":
		p.say(v1alpha1.PhaseStarting, p.active.Finding)
		p.hurry()
	case !p.Serving:
		p.say(p.broken(a + c))
	case warns(p.active.Finding): // it serves, and somebody should look
		p.say(v1alpha1.PhaseReady, p.active.Finding)
	default:
		p.say(v1alpha1.PhaseReady, reason.ServiceServes.Of(p.revision(record.Active.Revision).label(), p.nameOf(&record.Active)))
	}
	p.upgrading(a, c)
	p.rolledBack()
}

// broken says why nothing serves, with so many pods that get requests: because somebody should
// look, or because all pods are just being replaced.
func (p *planner) broken(endpoints int) (string, reason.Finding) {
	finding := p.active.Finding
	switch {
	case endpoints == 0 && p.record.Active.Renewing != "" && (!warns(finding) || finding.Code == reason.NoEndpoints.Code):
		return v1alpha1.PhaseUpgrading, p.renewing()
	case endpoints == 0 && !warns(finding):
		return v1alpha1.PhaseDegraded, reason.NoEndpoints.Of(p.nameOf(&p.record.Active), p.waitsFor())
	default:
		return v1alpha1.PhaseDegraded, finding
	}
}

// usable reports whether the version that has the requests is not known to be broken, or the
// candidate takes some and is not. One proxy that fails among others takes none. While a
// configuration is on its way to pods that run, or was just taken back, the replicas of the former
// one count, which Serve keeps until others run.
func (p *planner) usable(candidates int) bool {
	changing := p.reverted || p.record.Active.Revision != p.record.Active.Good
	spared := changing || p.active.Finding.Code == reason.ProxyFailing.Code
	return !p.active.Told || !warns(p.active.Finding) || spared && p.active.Answers || candidates > 0 && p.candidate.Ready > 0
}

// versions tells of both, with the share of the requests that so many endpoints come to.
func (p *planner) versions(a, c int) {
	record := &p.record
	p.Active = p.version(&record.Active, p.active, a)
	if a+c > 0 {
		p.Active.TrafficPercent = 100
	}
	if record.Candidate == nil {
		return
	}
	p.Candidate = p.version(record.Candidate, p.candidate, c)
	if a+c > 0 {
		p.Candidate.TrafficPercent = int32(100 * c / (a + c))
		if p.taken() {
			p.Candidate.TrafficPercent = p.weight()
		}
		p.Active.TrafficPercent -= p.Candidate.TrafficPercent
	}
}

// rolledBack says that what the spec asks for was taken back, or is being.
func (p *planner) rolledBack() {
	record := &p.record
	if record.Failed == "" || record.Failed != p.target.ID || record.Fault == nil {
		return
	}
	rolled := reason.UpgradeRolledBack.Of(p.target.label(), p.revision(record.Active.Revision).label(), record.Fault.Text)
	p.RolledBack = &rolled
	if p.Serving && record.Candidate == nil {
		p.Finding = rolled
	}
}

// waitsFor is what keeps pods from getting requests.
func (p *planner) waitsFor() string {
	if p.active.Finding.Text != "" {
		return p.active.Finding.Text
	}
	return "none is ready"
}

// version is a side as the status tells of it.
func (p *planner) version(side *Side, h Health, endpoints int) *v1alpha1.ServiceVersion {
	good := ""
	if side.Good != "" {
		good = p.revision(side.Good).label()
	}
	return &v1alpha1.ServiceVersion{
		ClusterName: p.nameOf(side), Revision: p.revision(side.Revision).label(), GoodRevision: good, CapacityPercent: int32(p.capacity(side)),
		ReadyEndpoints: int32(endpoints), Healthy: h.Well, Applications: h.Applications,
	}
}

// upgrading says how far the way to another version is. That of strategy None, or of what is
// waited for before it begins, was said before.
func (p *planner) upgrading(a, c int) {
	record := &p.record
	var finding reason.Finding
	switch {
	case record.Candidate != nil:
		finding = p.shifting(a, c)
	case record.Active.Renewing != "":
		finding = p.renewing()
	case record.Active.Good == "" || record.Active.Revision == record.Active.Good:
		return
	default:
		finding = p.changing()
	}
	switch {
	case record.Candidate != nil && record.Shift.Back, record.Candidate == nil && record.Active.Revision == record.Active.Good:
		p.Phase = v1alpha1.PhaseRollingBack
	case p.Phase == v1alpha1.PhaseReady:
		p.Phase = v1alpha1.PhaseUpgrading
	}
	p.Upgrading = &finding
	if p.Serving && finding.Severity() >= p.Finding.Severity() {
		p.Finding = finding
	}
}

// changing says how far another configuration on pods that run is.
func (p *planner) changing() reason.Finding {
	active := &p.record.Active
	name := p.revision(active.Revision).label()
	if active.Healthy > 0 {
		return reason.UpgradeBaking.Of(name, pass.Stamp(pass.Moment(active.Healthy+int64(p.retireAfter().Seconds())).Time))
	}
	return reason.ConfigChanging.Of(name, p.nameOf(active), waits(p.active.Finding))
}

// shifting says how far the way to another cluster is.
func (p *planner) shifting(a, c int) reason.Finding {
	record, shift := &p.record, p.record.Shift
	to := p.revision(record.Candidate.Revision).label()
	switch {
	case shift.Back:
		why := "the spec says so"
		if record.Fault != nil {
			why = record.Fault.Text
		}
		return reason.UpgradeReturning.Of(p.revision(record.Active.Good).label(), why)
	case p.candidate.Ready > 0 && shift.Proven && p.lags():
		return reason.UpgradeRouting.Of(to, fmt.Sprintf("%d %%", shift.Traffic), p.behind())
	case shift.Traffic == 100 && p.candidate.Ready > 0:
		return reason.UpgradeBaking.Of(to, pass.Stamp(shift.At.Add(max(p.drain(), p.retireAfter()))))
	case shift.Traffic == 0 && warns(p.candidate.Finding):
		return p.candidate.Finding
	case shift.Traffic == 0:
		return reason.UpgradePreparing.Of(to, p.nameOf(record.Candidate), waits(p.candidate.Finding))
	default:
		share := fmt.Sprintf("%d of %d endpoints", c, a+c)
		if p.taken() {
			share = fmt.Sprintf("%d %% of the requests", p.weight())
		}
		return reason.UpgradeShifting.Of(to, p.nameOf(record.Candidate), share)
	}
}

func waits(finding reason.Finding) string {
	if finding.Text == "" {
		return "all is up"
	}
	return finding.Text
}

// summaryOf holds the strings for columns.
func summaryOf(active, candidate *v1alpha1.ServiceVersion) v1alpha1.ServiceSummary {
	var s v1alpha1.ServiceSummary
	if active == nil {
		return s
	}
	s.Version, s.Traffic = active.Revision, fmt.Sprintf("%d%%", active.TrafficPercent)
	shown := active
	if candidate != nil {
		s.Version += " → " + candidate.Revision
		s.Traffic += fmt.Sprintf(" → %d%%", candidate.TrafficPercent)
		if candidate.TrafficPercent == 100 {
			shown = candidate
		}
	}
	if len(shown.Applications) > 0 {
		up := slices.DeleteFunc(slices.Clone(shown.Applications), func(a v1alpha1.ApplicationStatus) bool { return a.State != "RUNNING" })
		s.Applications = fmt.Sprintf("%d/%d", len(up), len(shown.Applications))
	}
	return s
}
