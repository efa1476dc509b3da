package cluster

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/store"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/sweep"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// storeLook is how soon to look again for what no watch tells of: a claim of the
	// user's, a node that answers again, a Secret that was changed.
	storeLook = 5 * time.Second
	// askCalm is how often a store that serves is asked, askBusy how often while its head is not
	// ready: a managed Redis that was started again does not know the head's user until it is asked.
	askCalm, askBusy = 5 * time.Second, time.Second
	// storeNodeAgain is how soon to look again at the node of a Redis that is not beside its head: no watch leads from that
	// node to the cluster.
	storeNodeAgain = time.Minute
)

// The kinds of what runs a managed Redis, and of its budget.
const (
	storeSetKind    = "StatefulSet of the store"
	storeBudgetKind = "PodDisruptionBudget of the store"
)

// storeSet returns what runs a managed Redis, nil where there is none.
func (s Seen) storeSet() *appsv1.StatefulSet {
	set, _ := s.Fixtures[storeSetKind].Object.(*appsv1.StatefulSet)
	return set
}

// storeOf returns the store of a cluster, and those who use it.
func storeOf(b basis) *store.Situation {
	of := &store.Situation{
		Cluster: b.cluster, Seen: b.seen.Store, Set: b.seen.storeSet(), IsHeadReady: b.hasReadyHead(), Epoch: b.Epoch, Session: b.Session,
		IsRecorded: b.Incarnation == b.seen.Record.recordedIncarnation(), Rewrites: b.records, RecordedVolume: b.seen.Record.Volume, Now: b.now,
	}
	if b.head != nil {
		of.Head = b.head.Pod
	}
	for _, old := range b.seen.Pods {
		if old.isHead() && old.At.Epoch != b.Epoch {
			node, known := b.seen.Nodes[old.Spec.NodeName]
			of.Former = append(of.Former, store.Head{
				Pod: old.Pod, HasFinished: old.hasFinished(), IsNodeKnown: known, IsNodeOff: node.Off, NodeLost: node.Lost,
			})
		}
	}
	return of
}

// needsNote reports whether it must be noted that the cluster has keys in a Redis of its user's, before that is asked for
// the first time: a Redis that admits a head is marked as the cluster's, though the head may never come.
func needsNote(b basis) bool {
	return b.hasStore() && b.cluster.Spec.ControlStore.Redis != nil && b.head == nil && !b.seen.Store.Noted
}

// planStoreClaim plans the claim of a store.
func planStoreClaim(p *planner) {
	if !p.hasStore() {
		return
	}
	plan := storeOf(p.basis()).PlanClaim()
	p.Volume = plan.Make
	if plan.Mend != nil {
		p.Fixtures = append(p.Fixtures, *plan.Mend)
	}
	if plan.Conflict != nil {
		p.Held = plan.Conflict
	}
	p.wakeIn(plan.Wake)
}

// storeBudgetOf returns the budget that keeps evictions from a managed Redis as long as they are kept from its head,
// which ends with it. It is lifted with the head's, and where the node of Redis must be free to go. It comes after the
// head's, because from then on the node is known.
func storeBudgetOf(b basis) client.Object {
	if !store.IsManaged(b.cluster) || budgetOf(b) == nil || !b.seen.hasBudgets() || isEvictableFrom(b, b.seen.Store.Node) {
		return nil
	}
	return desired.StoreBudget(b.cluster)
}

// untilStoreNodeIsSeen returns how soon to look again at the node of a managed Redis, 0 where a watch tells of it.
func untilStoreNodeIsSeen(b basis) time.Duration {
	if node := b.seen.Store.Node; node == "" || node == b.headNode() {
		return 0
	}
	return storeNodeAgain
}

// hasBudgets reports whether there is a budget of the head or of its Redis.
func (s Seen) hasBudgets() bool {
	return s.Fixtures[budgetKind].Presence != reconcile.Absent || s.Fixtures[storeBudgetKind].Presence != reconcile.Absent
}

// reportStore sets what the status says of the control store. Without a session there is nothing to say, and the schema
// asks for one: nobody knows it of a new cluster whose record is damaged.
func reportStore(t *statusDraft, suspended *reason.Finding) {
	if t.cluster.Spec.ControlStore == nil {
		return
	}
	if session := t.statusIncarnation().Session; session > 0 {
		t.status.ControlStore = store.Status(t.cluster, session)
	}
	point := t.plan.Store
	switch {
	case suspended != nil:
		meta.RemoveStatusCondition(&t.status.Conditions, v1beta1.ConditionControlStoreReady) // nobody asks it
	case point == nil || !point.Known: // as it was told before
	case point.Finding.Code == reason.StoreChecking.Code:
		if meta.FindStatusCondition(t.status.Conditions, v1beta1.ConditionControlStoreReady) != nil {
			return // nobody says otherwise yet
		}
		t.say.SetUnknown(v1beta1.ConditionControlStoreReady, point.Finding)
	default:
		t.say.Set(v1beta1.ConditionControlStoreReady, point.Serves, point.Finding)
	}
}

// seeStore recalls what a Redis said last, and looks at the objects of a store.
func (o observer) seeStore(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	if cluster.Spec.ControlStore == nil || seen.RecordError != nil {
		return nil
	}
	if store.InRedis(cluster) {
		claim := claimOf(cluster, seen.Record, seen.Pods)
		seen.Store.Verdict, seen.Store.Known = o.stores.Last(client.ObjectKeyFromObject(cluster), claim)
	}
	if given := cluster.Spec.ControlStore.Redis; given != nil {
		var err error
		if seen.Store.Noted, err = o.notes.Kept(ctx, sweep.Of(cluster, given)); err != nil {
			return err
		}
	}
	if pod.StoreClaim(cluster) == "" {
		return nil
	}
	head := headOf(seen.Pods, seen.Record.Epoch)
	users := store.Users{
		Set: seen.storeSet(), HasReadyHead: head != nil && head.isReady(), RecordedVolume: seen.Record.Volume, HasBudgets: seen.hasBudgets(),
	}
	if err := o.storeReader().ReadObjects(ctx, cluster, users, &seen.Store); err != nil {
		return err
	}
	return o.seeNode(ctx, seen.Store.Node, seen)
}

// storeReader returns what reads the objects of stores.
func (o observer) storeReader() store.Reader {
	reader := store.Reader{Client: o.client, Live: o.live, Nodes: o.storeNodes, Now: o.clock.Now()}
	reader.Owns = func(object client.Object, cluster *v1beta1.ComputeCluster) reconcile.Presence {
		found, _ := presence(nil, object, cluster) // it was read
		return found
	}
	reader.Events = func(ctx context.Context, set *appsv1.StatefulSet) ([]corev1.Event, error) {
		events, _, err := o.podEvents.Of(set, reader.Now, listEvents(ctx, o.live, set))
		return events, err
	}
	if o.watchNodes {
		reader.IsLost = func(node *corev1.Node) bool { return !nodeOf(node).Lost.IsZero() }
	}
	return reader
}

// claimOf returns what a cluster wants of a Redis for the incarnation of a record.
func claimOf(cluster *v1beta1.ComputeCluster, record Record, pods []Pod) controlstore.Claim {
	of := record.recordedIncarnation()
	return controlstore.Claim{
		Owner: cluster.UID, Cluster: cluster.Namespace + "/" + cluster.Name, Namespace: pod.StoreNamespace(cluster),
		Session: of.Session, Epoch: of.Epoch, Own: store.IsManaged(cluster),
		Begun: of.Session < of.Epoch || record.HeadUID != "" || headOf(pods, of.Epoch) != nil,
	}
}

// askStore sets what is asked of a Redis in the background.
func (r *Reconciler) askStore(cluster *v1beta1.ComputeCluster, seen Seen, plan Plan, outcome Outcome) {
	name := client.ObjectKeyFromObject(cluster)
	switch {
	case !store.InRedis(cluster) || plan.Stalled != nil:
		return
	case plan.ForgetStore, plan.Note && !outcome.Noted:
		r.Stores.Forget(name)
		return
	}
	record := seen.Record
	if plan.Record != nil {
		record = *plan.Record
	}
	every, set := askCalm, seen.storeSet()
	if head := headOf(seen.Pods, plan.Epoch); head == nil || !head.isReady() || set != nil && set.Status.ReadyReplicas == 0 {
		every = askBusy
	}
	servers := store.Servers{Live: r.Live, Credentials: r.Credentials, Trust: r.trustStore}
	r.Stores.Want(name, controlstore.Target{
		Claim: claimOf(cluster, record, seen.Pods), Every: every, Generation: cluster.Generation, Server: servers.Of(cluster, plan.EncryptsStore),
	})
}

// makeVolume makes a store's claim. One that nobody owns and that just appeared is looked at
// in the next pass.
func (a applier) makeVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	_, err := a.writer.Create(ctx, claim)
	if _, conflict := fault.Finding(err); conflict && metav1.GetControllerOf(claim) == nil {
		return &fault.Wait{For: "the cache to show claim " + claim.Name}
	}
	return err
}

// makeStoreSecret makes the Secret of a managed Redis; one that is there stays.
func (a applier) makeStoreSecret(ctx context.Context, cluster *v1beta1.ComputeCluster) error {
	_, err := a.writer.Create(ctx, desired.StoreSecret(cluster, newToken(), newToken()))
	return err
}
