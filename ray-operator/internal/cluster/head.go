package cluster

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// planHead makes the head of the epoch, once its store will have it and no other head can
// harm what is in there.
func planHead(p *planner) {
	b := p.basis()
	of := storeOf(b)
	former := of.Writer()
	p.ForgetStore = p.ForgetStore || of.IsFreshSession() && former != nil // who still writes would spoil what is begun
	if p.head != nil || p.Held != nil {
		return
	}
	if held := of.Obstacle(); held != nil {
		p.Held = held
		p.wakeIn(storeLook)
		if former != nil {
			wait, _ := of.Patience(*former)
			p.wakeIn(wait)
		}
		return
	}
	p.Head, p.NoteHead = joinGang(p.situation, p.Sizes, p.site.HeadPod(p.cluster, p.Epoch)), !isRecordSpared(b, &p.Plan)
	if isStoreEncrypted(p.basis()) {
		pod.EncryptStore(p.Head, p.cluster)
	}
}

// withdrawHead returns the removal of a head that ended because its Redis is away, nil for none: the kubelet's back-off
// would keep it from coming back when the Redis does. Workers stay. One that runs again is left alone: it waits for its
// Redis for a minute by itself.
func withdrawHead(b basis) *Removal {
	if b.head == nil || b.head.isTerminating() || !b.head.isHalted() {
		return nil
	}
	verdict, known := storeOf(b).Verdict()
	if !known || verdict.Admitted || verdict.Finding.Code == reason.StoreSlow.Code {
		return nil
	}
	event := telemetry.Event{Finding: reason.HeadWithdrawn.Of(b.head.Name, verdict.Finding.Code), Action: "Recover", Warning: true}
	return &Removal{Pod: *b.head, GraceSeconds: shortGrace(*b.head), Why: "its control store is away", Event: &event}
}

// isRecordSpared reports whether a cluster that has no record needs none: in its first epoch, with nothing to be kept
// that neither the status nor the pods tell. The status has the UID of the first head, and before there is one,
// workers tell that there was a head. An annotation that is wrong is not spared, as the status that contradicts it may
// go.
func isRecordSpared(b basis, p *Plan) bool {
	_, annotated := b.cluster.Annotations[v1beta1.AnnotationRecord]
	if !b.seen.RecordMissing || annotated || p.Record != nil || p.Epoch > 1 || p.Failures > 0 {
		return false
	}
	if b.hasStore() || isAutoscaled(b.cluster) || len(p.Scaled) > 0 || len(p.Accepted) > 0 || p.Roll != (Roll{}) || p.Policy != (SeenPolicy{}) {
		return false
	}
	witnesses := func(group v1beta1.WorkerGroup) bool { return p.wantedReplicas(&group) > 0 }
	return slices.ContainsFunc(b.cluster.Spec.WorkerGroups, witnesses)
}

// hasReadyHead reports whether there is a head that can be asked for something.
func (b basis) hasReadyHead() bool { return b.head != nil && b.head.isReady() }

// readySince returns since when the head is ready, zero if it is not.
func (b basis) readySince() time.Time {
	if b.head == nil {
		return time.Time{}
	}
	return b.head.readySince()
}

// hasBudget reports whether the head's budget is there.
func (s situation) hasBudget() bool { return s.seen.Fixtures[budgetKind].Presence == reconcile.Ours }

// isHeadGone reports whether what ran under the head is over: without a store it ends with the head.
func (b basis) isHeadGone() bool {
	return !b.hasStore() && (b.head == nil || b.head.hasFinished())
}

// budgetAfter is how long a head must have been ready to get a budget: a cluster for a
// short job goes without.
const budgetAfter = time.Minute

// budgetOf returns the budget that keeps consolidation from moving a head that has been at work for a while. It is
// lifted where the head's node is going, so that it never holds up a drain for ever.
func budgetOf(b basis) client.Object {
	since, there := b.readySince(), b.hasBudget()
	switch {
	case b.suspended, since.IsZero() && !there, isHeadEvictable(b):
		return nil
	case !there && since.Add(budgetAfter).After(b.now):
		return nil
	default:
		return desired.HeadBudget(b.cluster)
	}
}

// untilBudgetChanges returns after how long the head gets its budget or loses it, 0 where that is not known.
func untilBudgetChanges(b basis) time.Duration {
	since, there := b.readySince(), b.hasBudget()
	if b.suspended || since.IsZero() && !there || isHeadEvictable(b) {
		return 0
	}
	wait, _ := untilEvictable(b, b.headNode())
	if there {
		return wait
	}
	return reconcile.Soonest(wait, since.Add(budgetAfter).Sub(b.now))
}

// eventOfBudget returns the event for when the budget goes because its head must be free to go.
func eventOfBudget(b basis, kind string) *telemetry.Event {
	if kind != budgetKind || b.suspended || !isHeadEvictable(b) {
		return nil
	}
	node := b.head.Spec.NodeName
	return &telemetry.Event{Finding: reason.BudgetLifted.Of(b.head.Name, node), Action: "Drain", Warning: true}
}

// headDrain is how long a head may stay on a node that was cordoned, before its budget
// is lifted: as long as a worker has by default.
const headDrain = pod.DefaultDrain * time.Second

// isHeadEvictable reports whether an eviction of the head must not be refused any longer.
func isHeadEvictable(b basis) bool { return isEvictableFrom(b, b.headNode()) }

// isEvictableFrom reports whether an eviction from a node must not be refused any longer.
func isEvictableFrom(b basis, node string) bool {
	wait, goes := untilEvictable(b, node)
	return goes && wait <= 0
}

// headNode returns the name of the head's node, empty where it has none.
func (b basis) headNode() string {
	if b.head == nil {
		return ""
	}
	return b.head.Spec.NodeName
}

// untilEvictable returns for how long an eviction from a node may still be refused, false where the node stays.
func untilEvictable(b basis, name string) (time.Duration, bool) {
	switch node := b.seen.Nodes[name]; {
	case node.Going != "":
		return 0, true
	case node.Cordoned.IsZero():
		return 0, false
	default:
		return node.Cordoned.Add(headDrain).Sub(b.now), true
	}
}

const (
	// goingRetry is how soon to look again at what is on its way out.
	goingRetry = time.Second
	// fillAgain is how soon the next workers are built where one pass did not build all. What was made wakes sooner.
	fillAgain = time.Second
	// lostGrace in seconds is for workers whose session has ended: there is nothing
	// left that they could hand over.
	lostGrace = int64(5)
)
