package cluster

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/store"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
)

// planner is a plan in the making, with what it is made from.
type planner struct {
	Plan
	*situation
	// head is the pod that is, or was, the head of the plan's epoch.
	head *Pod
	// keepsSession reports that the session goes on with a new head.
	keepsSession bool
}

// basis returns what the plan stands on now. An epoch that begins changes it.
func (p *planner) basis() basis {
	return basis{situation: p.situation, Incarnation: p.Incarnation, head: p.head, Failures: p.Failures, suspended: p.Suspended, records: p.Record != nil}
}

// Decide chooses what to do about a cluster. It is pure and total: the same arguments
// give the same plan, and every input gives one.
func Decide(cluster *v1beta1.ComputeCluster, seen Seen, site desired.Site, now time.Time) Plan {
	p := &planner{situation: &situation{cluster: cluster, seen: seen, site: site, now: now, intents: intentsOf(cluster)}}
	p.Given = site.Sizes
	if p.Stalled = findStall(p); p.Stalled != nil {
		p.Wake = reconcile.Recheck
		yieldQuota(p)
		return p.Plan
	}
	p.Incarnation, p.Failures = seen.Record.recordedIncarnation(), seen.Record.Failures
	p.head = headOf(seen.Pods, p.Epoch)
	reclaimPods(p)
	measureGroups(p)
	seePolicy(p)
	if !suspendCluster(p) && !deleteIdleCluster(p) && settleEpoch(p) {
		withdrawHead(p)
		makeMissing(p)
		planRecord(p)
		removeLeftovers(p)
		resizeWorkers(p)
		wakeForPods(p)
		orderScaler(p)
	}
	noteStoreKeys(p)
	recordFacts(p)
	if p.Store == nil && p.hasStore() {
		p.Store = storeOf(p.basis()).Assess()
	}
	p.EncryptsStore = isStoreEncrypted(p.basis())
	return p.Plan
}

// reclaimPods takes pods back that have lost their owner reference.
func reclaimPods(p *planner) {
	for _, pod := range p.seen.Pods {
		if pod.stray && !pod.isTerminating() {
			p.Reclaim = append(p.Reclaim, pod)
		}
	}
}

// What a pod waits for may become visible without a change of the pod: in events, or
// because a state that is normal at first lasts. So those that start are looked at again.
const (
	waitingLook = 5 * time.Second
	stuckLook   = 30 * time.Second
	// stuckAfter is when a pod is no longer expected to become ready within seconds.
	stuckAfter = 2 * time.Minute
)

// wakeForPods wakes the cluster for pods that are not ready.
func wakeForPods(p *planner) {
	if store.IsManaged(p.cluster) && storeOf(p.basis()).HasNoPod() && !p.Suspended {
		p.wakeIn(storeLook) // no watch tells why
	}
	for _, pod := range p.seen.Pods {
		due, eventful := diagnose.EventsDue(pod.Pod)
		if eventful {
			p.wakeIn(due.Sub(p.now))
		}
		switch {
		case !pod.isStaying() && !pod.isTerminating() || pod.isReady():
		case p.now.Sub(pod.CreationTimestamp.Time) < stuckAfter:
			p.wakeIn(waitingLook)
		default:
			p.wakeIn(stuckLook)
		}
	}
}

// makeMissing plans what is missing.
func makeMissing(p *planner) {
	if p.seen.hasTerminating() {
		p.wakeIn(goingRetry) // the garbage collector is at it, and no watch tells of a Secret
		return
	}
	planFixtures(p)
	planGang(p)
	planToken(p)
	planAuthority(p)
	planStoreClaim(p)
	planHead(p)
	planGroups(p)
}

func grace(seconds int64) *int64 { return &seconds }
