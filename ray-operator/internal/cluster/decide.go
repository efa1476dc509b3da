package cluster

import (
	"cmp"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/store"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// planner is a plan in the making, with what it is made from.
type planner struct {
	Plan
	situation
	// head is the pod that is, or was, the head of the plan's epoch.
	head *Pod
	// keepsSession reports that the session goes on with a new head.
	keepsSession bool
	// unmountable says why no pod could start with a shared volume as it is, nil for no reason.
	unmountable *reason.Finding
}

// basis returns what the plan stands on now. An epoch that begins changes it.
func (p *planner) basis() basis {
	return basis{situation: p.situation, Incarnation: p.Incarnation, head: p.head, Failures: p.Failures, suspended: p.Suspended, records: p.Record != nil}
}

// Decide chooses what to do about a cluster. It is pure and total: the same arguments
// give the same plan, and every input gives one.
func Decide(cluster *v1beta1.ComputeCluster, seen Seen, site desired.Site, now time.Time) Plan {
	p := &planner{situation: situation{cluster: cluster, seen: &seen, site: site, now: now, intents: intentsOf(cluster)}}
	p.Given = site.Installed
	rules := checkRules(p.basis())
	p.Refused, p.Accepted = cmp.Or(rules.refused, refuseKeepFor(p.situation)), rules.accepted
	p.History = judgeHistory(p.situation)
	if p.Stalled = findStall(p.basis(), rules); p.Stalled != nil {
		p.Wake = reconcile.Recheck
		if p.Queue, _ = planQueue(p.basis(), p.Sizes, false); p.Queue.Held { // what runs is kept while it is admitted
			p.Delete = removeAll(p.seen.Pods, "the queue does not admit the cluster")
		}
		return p.Plan
	}
	p.Incarnation, p.Failures = seen.Record.recordedIncarnation(), seen.Record.Failures
	p.head = headOf(seen.Pods, p.Epoch)
	p.Reclaim = strayPods(p.seen.Pods)
	measureGroups(p)
	p.VolumeChanges = volumeChanges(p.situation)
	p.Policy = policyOf(p.basis())
	if !suspendCluster(p) && !deleteIdleCluster(p) {
		keepPods(p)
	}
	p.Note = needsNote(p.basis()) && !p.ForgetStore && p.End == nil
	p.recordFacts(p.seen.Record)
	if p.Store == nil && p.hasStore() {
		p.Store = storeOf(p.basis()).Assess()
	}
	p.EncryptsStore = isStoreEncrypted(p.basis())
	p.wakeIn(untilHistoryIsLate(p.situation))
	return p.Plan
}

// keepPods plans for a cluster that is to have pods.
func keepPods(p *planner) {
	judgeVolumes(p)
	if !settleEpoch(p) {
		return
	}
	if away := withdrawHead(p.basis()); away != nil {
		p.Delete = append(p.Delete, *away)
	}
	makeMissing(p)
	if p.head != nil && (p.seen.RecordMissing || p.seen.Record.HeadUID == "" || p.Record != nil) {
		p.NoteHead = !isRecordSpared(p.basis(), &p.Plan)
	}
	removeLeftovers(p)
	p.takeResizes(resizeWorkers(p.basis()))
	p.wakeIn(untilPodsChange(p.basis()))
	p.Snapshot = snapshotFor(p.basis(), p.Sizes)
	p.wakeIn(untilScalerIsMissed(p.basis()))
}

// strayPods returns those that have lost their owner reference, and get it back.
func strayPods(pods []Pod) (strays []Pod) {
	for _, stray := range pods {
		if stray.stray && !stray.isTerminating() {
			strays = append(strays, stray)
		}
	}
	return strays
}

// What a pod waits for may become visible without a change of the pod: in events, or
// because a state that is normal at first lasts. So those that start are looked at again.
const (
	waitingLook = 5 * time.Second
	stuckLook   = 30 * time.Second
	// stuckAfter is when a pod is no longer expected to become ready within seconds.
	stuckAfter = 2 * time.Minute
)

// untilPodsChange returns how soon to look again at pods that are not ready, 0 where all are.
func untilPodsChange(b basis) (wake time.Duration) {
	if store.IsManaged(b.cluster) && storeOf(b).HasNoPod() && !b.suspended {
		wake = storeLook // no watch tells why
	}
	for _, pod := range b.seen.Pods {
		due, eventful := diagnose.EventsDue(pod.Pod)
		if eventful {
			wake = reconcile.Soonest(wake, due.Sub(b.now))
		}
		switch {
		case !pod.isStaying() && !pod.isTerminating() || pod.isReady():
		case b.now.Sub(pod.CreationTimestamp.Time) < stuckAfter:
			wake = reconcile.Soonest(wake, waitingLook)
		default:
			wake = reconcile.Soonest(wake, stuckLook)
		}
	}
	return wake
}

// makeMissing plans what is missing.
func makeMissing(p *planner) {
	if p.seen.hasTerminating() {
		p.wakeIn(goingRetry) // the garbage collector is at it, and no watch tells of a Secret
		return
	}
	planFixtures(p)
	planGang(p)
	token := planToken(p.basis(), p.Held != nil)
	p.Token = token.isMade
	p.takeSecret(token)
	authority := planAuthority(p.basis())
	p.Authority = authority.isMade
	p.takeSecret(authority)
	planStoreClaim(p)
	planVolumes(p)
	planHead(p)
	planGroups(p)
}

// secretPlan is what to do about a Secret of a fixed name.
type secretPlan struct {
	isMade bool
	// missing is why no pods are made without it, nil for no reason.
	missing *reason.Finding
	// wake is after how long to look again, 0 for never.
	wake time.Duration
}

// takeSecret plans what follows where a Secret is missing.
func (p *Plan) takeSecret(plan secretPlan) {
	p.wakeIn(plan.wake)
	if plan.missing != nil {
		p.Held = plan.missing
		p.wakeIn(reconcile.Recheck)
	}
}

// collectorGrace in seconds is what a pod with a collector has at least: Ray ends in about 4 s, and the collector is told after it.
const collectorGrace = int64(15)

// shortGrace returns the grace of a pod that has nothing left to hand over, as long as its collector needs.
func shortGrace(p Pod) *int64 {
	seconds := lostGrace
	if pod.HasCollector(p.Pod) {
		seconds = max(seconds, collectorGrace)
	}
	return &seconds
}
