package service

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Defaults of an upgrade, as the schema has them; a service on a cluster that is not its own
// goes by them too.
const (
	defaultSurge, defaultStep = 100, 20
	defaultInterval           = 10
	defaultDeadline           = 1800
	defaultDrain              = 60
	defaultRetire             = 60
	// provenAfter is how long a configuration on a cluster that is not the service's own has to
	// be healthy, in seconds: nothing is kept there to go back to but the former configuration.
	provenAfter = 30
)

// terms are those of the service's upgrades.
func (p *planner) terms() upgrade.Terms {
	terms := upgrade.Terms{
		Surge: defaultSurge, Step: defaultStep, Interval: defaultInterval * time.Second, Deadline: defaultDeadline * time.Second, AutoRollback: true,
	}
	given := p.service.Spec.Upgrade
	if given == nil {
		return terms
	}
	terms.Surge, terms.Step = int(or(given.MaxSurgePercent, defaultSurge)), int(or(given.StepPercent, defaultStep))
	terms.Interval = seconds(or(given.IntervalSeconds, defaultInterval))
	terms.Deadline = seconds(or(given.HealthyDeadlineSeconds, defaultDeadline))
	terms.AutoRollback = given.AutoRollback == nil || *given.AutoRollback
	return terms
}

// drain is how long requests may take that a cluster has when it gets no more, retire how long
// what was before is kept to go back to.
func (p *planner) drain() time.Duration {
	if given := p.service.Spec.Upgrade; given != nil {
		return seconds(or(given.DrainSeconds, defaultDrain))
	}
	return defaultDrain * time.Second
}

func (p *planner) retireAfter() time.Duration {
	if given := p.service.Spec.Upgrade; given != nil {
		return seconds(or(given.RetireAfterSeconds, defaultRetire))
	}
	if !p.own() {
		return provenAfter * time.Second
	}
	return defaultRetire * time.Second
}

func or(given *int32, otherwise int32) int32 {
	if given == nil {
		return otherwise
	}
	return *given
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// revise brings what is asked for to what the spec says.
func (p *planner) revise() {
	record := &p.record
	p.forgive()
	switch active := &record.Active; {
	case record.Failed == p.target.ID:
	case active.Revision == "":
		p.keep()
		p.begin()
	case p.own() && p.target.Pods != active.Pods:
		p.another()
	default:
		if record.Candidate != nil {
			p.withdraw()
		}
		if active.Revision != p.target.ID {
			p.keep()
			p.ask(active, p.target.ID)
		}
	}
}

// begin begins the first version.
func (p *planner) begin() {
	side := Side{Pods: p.target.Pods, Revision: p.target.ID, At: p.now.Unix()}
	if p.own() {
		p.record.Clusters++
		side.Cluster = p.record.Clusters
	}
	p.record.Active, p.record.Began = side, p.now.Unix()
}

// ask asks for another revision on a cluster that runs.
func (p *planner) ask(side *Side, revision string) {
	if side == &p.record.Active && p.record.Candidate == nil {
		if side.Good != "" && side.Good != revision {
			p.tell(reason.UpgradeBegan.Of(p.target.label(), p.revision(side.Good).label()), "Upgrade")
		}
		p.record.Began = p.now.Unix()
	}
	side.Revision, side.At, side.Healthy = revision, p.now.Unix(), 0
}

// another is for a target that needs other pods than those of the version that serves.
func (p *planner) another() {
	record := &p.record
	switch strategy := p.strategy(); {
	case record.Candidate != nil: // it ends the way it began
		p.overtake()
	case record.Active.Good == "" && p.yields(strategy):
		if p.alone(record.Active.Cluster) {
			p.keep()
			p.away(record.Active.Cluster, time.Time{})
			p.begin()
		}
	case strategy == v1alpha1.UpgradeNone:
		held := reason.UpgradeHeld.Of()
		p.Upgrading = &held
	case strategy == v1alpha1.UpgradeInPlace:
		p.replace()
	case !p.alone(record.Active.Cluster):
	default:
		p.keep()
		p.prepare()
	}
}

// yields reports whether a version that has never served makes room for another at once: nothing is lost with it,
// so no strategy holds that up. Where its pods can be replaced where they are, and must be, they are.
func (p *planner) yields(strategy v1alpha1.UpgradeMode) bool {
	return strategy != v1alpha1.UpgradeInPlace || p.unfit() != ""
}

// strategy is how a change that needs other pods comes about.
func (p *planner) strategy() v1alpha1.UpgradeMode {
	if given := p.service.Spec.Upgrade; given != nil {
		return given.Strategy
	}
	return v1alpha1.UpgradeSurge
}

// overtake is for another target while a candidate is on its way.
func (p *planner) overtake() {
	record := &p.record
	switch candidate := record.Candidate; {
	case candidate.Pods == p.target.Pods:
		record.Shift.Back = false
		if candidate.Revision != p.target.ID {
			p.keep()
			p.ask(candidate, p.target.ID)
			record.Shift.Began, record.Shift.Proven = p.now, false
		}
	case record.Shift.Traffic == 0: // a third one: what nobody uses goes first
		p.ended(v1alpha1.UpgradeSuperseded, nil)
		p.away(candidate.Cluster, record.Shift.At)
		record.Candidate, record.Shift = nil, upgrade.Shift{}
	default:
		record.Shift.Back = true
	}
}

// prepare begins an upgrade to a second cluster.
func (p *planner) prepare() {
	p.record.Clusters++
	p.record.Candidate = &Side{Cluster: p.record.Clusters, Pods: p.target.Pods, Revision: p.target.ID, At: p.now.Unix()}
	p.record.Shift, p.record.Began = upgrade.Begin(p.terms(), p.now), p.now.Unix()
	p.tell(reason.UpgradeBegan.Of(p.target.label(), p.revision(p.record.Active.Revision).label()), "Upgrade")
}

// alone reports whether there is no cluster but the one: at most two are ever alive.
func (p *planner) alone(number int) bool {
	for other, cluster := range p.seen.Clusters {
		if other != number {
			waiting := reason.UpgradeWaiting.Of(cluster.Name)
			p.Upgrading = &waiting
			return false
		}
	}
	return true
}

// withdraw goes back because the spec does.
func (p *planner) withdraw() {
	if p.record.Shift.Traffic == 0 {
		p.back(nil)
		return
	}
	p.record.Shift.Back = true
}

// move goes the next step of an upgrade to another cluster.
func (p *planner) move() {
	record := &p.record
	candidate := record.Candidate
	if candidate == nil || p.unheard(candidate) || p.isUncounted() {
		return
	}
	lags, active := p.acknowledge(), upgrade.Version{Ready: p.measure(&record.Active, p.active, 100-record.Shift.Traffic)}
	move := upgrade.Advance(p.terms(), record.Shift, active, upgrade.Version{
		Ready: p.measure(candidate, p.candidate, record.Shift.Traffic), Failed: p.candidate.Failed, Lost: p.hasLostPods(candidate),
	}, p.now)
	if lags {
		move = move.Held(record.Shift, active)
	}
	record.Routing = (lags || move.Shift.Traffic != record.Shift.Traffic && p.taken()) && move.Shift.Traffic+record.Shift.Traffic > 0
	p.wakeIn(move.Wake)
	if move.Cause != "" && record.Failed == "" {
		p.condemn(candidate.Revision, p.fault(move.Cause, p.candidate.Finding))
	}
	switch former := record.Shift; move.Verdict {
	case upgrade.Returned:
		record.Shift = move.Shift
		p.back(record.Fault)
	case upgrade.Done:
		if move.Shift.Active < former.Active { // it keeps what it has while it may be gone back to
			move.Shift.Active = former.Active
		}
		record.Shift = move.Shift
		p.bake()
	default:
		record.Shift = move.Shift
	}
}

// unheard reports whether nothing is known yet of a version that was well: as after a restart of
// the operator. Nothing goes on, and nothing goes back, until its head answers or has not for a
// while.
func (p *planner) unheard(candidate *Side) bool {
	cluster := p.cluster(candidate)
	if !p.record.Shift.Proven || cluster == nil || cluster.Head == nil || p.candidate.Failed || p.candidate.Silent {
		return false
	}
	return p.candidate.Assumed || p.candidate.Ready == 0 && (!p.candidate.Told || !p.candidate.Asked && !warns(p.candidate.Finding))
}

// fault is why a version is taken back.
func (p *planner) fault(cause upgrade.Cause, finding reason.Finding) *Fault {
	if cause == upgrade.Late {
		finding = reason.ServeNotHealthyInTime.Of(p.terms().Deadline, finding.Text)
	}
	return &Fault{Reason: finding.Code, Text: cut(finding.Text)}
}

// bake keeps the former version while the new one has all requests, and lets it go then.
func (p *planner) bake() {
	record := &p.record
	keep := max(p.drain(), p.retireAfter())
	if left := record.Shift.At.Add(keep).Sub(p.now); left > 0 {
		p.wakeIn(left)
		p.closes(p.cluster(&record.Active), record.Shift.At)
		return
	}
	p.ended(v1alpha1.UpgradeSucceeded, nil)
	p.away(record.Active.Cluster, record.Shift.At)
	record.Active = *record.Candidate
	record.Active.Good, record.Active.Healthy = record.Active.Revision, p.now.Unix()
	record.Candidate, record.Shift = nil, upgrade.Shift{}
	p.active, p.candidate = p.candidate, Health{}
}

// back ends an upgrade with the former version.
func (p *planner) back(fault *Fault) {
	result := v1alpha1.UpgradeSuperseded
	if fault != nil {
		result = v1alpha1.UpgradeRolledBack
	}
	p.ended(result, fault)
	p.away(p.record.Candidate.Cluster, p.record.Shift.At)
	p.record.Candidate, p.record.Shift = nil, upgrade.Shift{}
	p.candidate = Health{}
}

// away lets a cluster go that has had no requests since a moment, zero if it never had any.
func (p *planner) away(number int, since time.Time) {
	if number > 0 {
		unused := since.IsZero()
		if unused {
			since = p.now
		}
		p.record.Retiring = append(p.record.Retiring, Retired{Cluster: number, At: since.Unix(), Unused: unused})
	}
}

// ended notes how a change ended.
func (p *planner) ended(result v1alpha1.UpgradeResult, fault *Fault) {
	record := &p.record
	from, to := record.Active.Good, record.Active.Revision
	if record.Candidate != nil {
		from, to = record.Active.Revision, record.Candidate.Revision
	}
	old, latter := p.revision(from).label(), p.revision(to).label()
	record.Last = &Last{From: old, To: latter, Result: result, Fault: fault, Began: record.Began, Ended: p.now.Unix()}
	p.Ended = result
	switch {
	case result == v1alpha1.UpgradeSucceeded:
		p.tell(reason.UpgradeDone.Of(latter, old), "Upgrade")
	case fault != nil:
		p.tell(reason.UpgradeRolledBack.Of(latter, old, fault.Text), "RollBack")
	default:
		p.tell(reason.UpgradeWithdrawn.Of(latter, old), "RollBack")
	}
}

// settle judges a configuration that was given to pods that run: it has to be healthy for a
// while before it counts, and is taken back if it is not.
func (p *planner) settle() {
	active := &p.record.Active
	if active.Revision == "" || active.Revision == active.Good {
		return
	}
	well := p.active.Well && active.Renewing == ""
	if well && active.Healthy == 0 {
		active.Healthy = p.now.Unix()
	}
	first, left := active.Good == "", p.retireAfter()-since(active.Healthy, p.now)
	switch {
	case !well:
		p.doubt(first)
	case first:
		active.Good = active.Revision
	case left <= 0:
		p.ended(v1alpha1.UpgradeSucceeded, nil)
		active.Good = active.Revision
	default:
		p.wakeIn(left)
	}
}

// doubt takes a configuration back that is not well, once it is clear that it will not be or was
// given time enough. The first one has nothing to go back to.
func (p *planner) doubt(first bool) {
	active, terms := &p.record.Active, p.terms()
	left := terms.Deadline - since(active.At, p.now)
	sick := active.Healthy > 0 && p.active.Told && p.active.Ready == 0 &&
		(p.active.Asked || warns(p.active.Finding)) // not where proxies have yet to be asked
	switch {
	case first || !terms.AutoRollback || !p.known(active.Good):
	case p.active.Failed:
		p.revert(p.fault(upgrade.Failed, p.active.Finding))
	case sick && p.hasLostPods(active): // it begins again on those that come in their place
		active.At, active.Healthy = p.now.Unix(), 0
		p.wakeIn(terms.Deadline)
	case sick:
		p.revert(p.fault(upgrade.Sick, p.active.Finding))
	case left <= 0:
		p.revert(p.fault(upgrade.Late, p.hindrance()))
	default:
		p.wakeIn(left)
	}
}

// revert goes back to the last good configuration, and to its pods.
func (p *planner) revert(fault *Fault) {
	active := &p.record.Active
	p.ended(v1alpha1.UpgradeRolledBack, fault)
	p.condemn(active.Revision, fault)
	active.Revision, active.At, active.Healthy = active.Good, p.now.Unix(), 0
	p.reverted = true
	p.renew(active, p.revision(active.Good).Pods)
}
