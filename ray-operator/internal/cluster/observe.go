package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/archives"
	scaleclient "github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/scaler"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/store"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/queue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/volume"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Seen is all that a pass knows of the world. Pods are the cluster's own, by owner
// UID, in the order of their names.
type Seen struct {
	Pods []Pod
	// Fixtures are the objects of fixed names, by their kind.
	Fixtures map[string]reconcile.Fixture
	// Gang is the object by which the cluster's scheduler knows its gang.
	Gang GangSeen
	// Queue is the cluster's place in a queue of Kueue.
	Queue kueue.Seen
	// Token is the Secret with the cluster's token, Authority that with its certificate authority.
	Token     Token
	Authority reconcile.Presence
	// Store is what is known of the control store.
	Store store.Seen
	// Claims are the claims of workers' slots, by name.
	Claims map[string]*corev1.PersistentVolumeClaim
	// Volumes are the shared volumes, with what is known of their claims.
	Volumes []volume.Seen
	// Nodes are those that the pods are on, by name; none where they are not watched.
	Nodes map[string]Node
	// Ray is what the head said last.
	Ray Ray
	// Scaler is what the autoscaler beside the head said last.
	Scaler scaler.State
	// Archive is what archivers said last of the cluster.
	Archive archives.State
	// Wanted names a ClusterJob that refers to the cluster and has not ended, where that
	// matters to its idle policy.
	Wanted string
	// EgressRuled tells that a policy of somebody else's limits what all pods of the namespace reach.
	EgressRuled bool
	// Events are those of pods whose containers could not be made so far, by pod UID.
	Events map[types.UID][]corev1.Event
	// Record is valid when RecordError is nil.
	Record      Record
	RecordError error
	// RecordMissing reports that the annotation has no record of this cluster, or a wrong one: it comes, as far as that
	// goes, from what mirrors it.
	RecordMissing bool
}

// hasTerminating reports whether something of a fixed name is on its way out and has to be waited for.
func (s Seen) hasTerminating() bool {
	for _, standing := range s.Fixtures {
		if standing.Presence == reconcile.Terminating {
			return true
		}
	}
	return s.Token.Presence == reconcile.Terminating || s.Authority == reconcile.Terminating || s.Gang.Presence == reconcile.Terminating
}

// diagnose returns why a pod is not ready, and false where it is.
func (s Seen) diagnose(pod Pod, now time.Time) (reason.Finding, bool) {
	return diagnose.PodOn(s.Nodes[pod.Spec.NodeName].Architecture, pod.Pod, s.Events[pod.UID], now)
}

// claimsOf returns the claims of a group by slot, in the order of slots and names.
func (s Seen) claimsOf(group string) []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for _, claim := range s.Claims {
		if claim.Labels[v1beta1.LabelGroup] == group && claim.DeletionTimestamp == nil {
			claims = append(claims, claim)
		}
	}
	slices.SortFunc(claims, func(a, b *corev1.PersistentVolumeClaim) int { return cmp.Compare(a.Name, b.Name) })
	return claims
}

// Node is what matters of a Kubernetes node.
type Node struct {
	// Going is the taint by which it announces that it is about to go, empty if it stays.
	Going string
	// Closed reports that it takes no new pods, and Cordoned since when, zero where nobody says.
	Closed   bool
	Cordoned time.Time
	// Lost is since when it is not ready, as when its kubelet does not answer, zero if it
	// is. Off tells that somebody has declared that nothing runs on it any more.
	Lost time.Time
	Off  bool
	// Architecture is that of its processors, as Kubernetes writes it.
	Architecture string
}

// observer reads what a pass has to know. It writes nothing.
type observer struct {
	client client.Client
	live   client.Reader
	groups *kube.Writer
	queue  *queue.Keeper
	heads  nodes.Source
	scale  scaleclient.Source
	stores controlstore.Source
	notes  Notes
	clock  clock.PassiveClock

	watchNodes bool
	cordons    *Cordons
	storeNodes *store.Nodes
	podEvents  *diagnose.EventCache
	claims     *volume.GivenClaims
}

// observer returns what reads for the passes of a reconciler.
func (r *Reconciler) observer() observer {
	return observer{
		client: r.Client, live: r.Live, groups: r.Groups, queue: r.Queue, heads: r.Heads, scale: r.Scale, stores: r.Stores, notes: r.Notes, clock: r.Clock,
		watchNodes: r.WatchNodes, cordons: &r.Cordons, storeNodes: &r.StoreNodes, podEvents: &r.PodEvents, claims: &r.GivenClaims,
	}
}

// observeCluster reads the cluster's surroundings.
func (o observer) observeCluster(ctx context.Context, cluster *v1beta1.ComputeCluster) (Seen, error) {
	seen := Seen{Token: Token{Presence: reconcile.Ours}, Authority: reconcile.Ours} // until it matters and is looked at
	pods, err := listOwnedPods(ctx, o.client, cluster.Namespace, cluster.UID)
	if err != nil {
		return seen, err
	}
	for i := range pods {
		// Labels that cannot be read are those of a pod whose labels someone
		// changed: its place is unknown, and it is replaced like one of a former epoch.
		at, _ := naming.ParsePlace(pods[i].Labels)
		seen.Pods = append(seen.Pods, Pod{Pod: &pods[i], At: at})
	}
	strays, err := o.listStrays(ctx, cluster)
	if err != nil {
		return seen, err
	}
	for i := range strays {
		pods, seen.Pods = append(pods, *strays[i].Pod), append(seen.Pods, strays[i])
	}
	slices.SortFunc(seen.Pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	seen.Record, seen.RecordMissing, seen.RecordError = recallRecord(cluster, pods)
	for _, look := range []func(context.Context, *v1beta1.ComputeCluster, *Seen) error{
		o.confirmHead, o.seeFixtures, o.seeGang, o.seePolicies, o.seeClaims, o.seeVolumes, o.seeNodes, o.seeEvents, o.seeRay, o.seeScaler, o.seeStore, o.seeJobs, o.seeQueue,
	} {
		if err := look(ctx, cluster, &seen); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// seeJobs finds a job that wants the cluster, whether it runs or waits.
func (o observer) seeJobs(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	if cluster.Spec.IdlePolicy == nil && seen.Record.Suspended.Cause != suspendedIdle {
		return nil
	}
	var jobs v1beta1.ClusterJobList
	err := o.client.List(ctx, &jobs, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Unended: cluster.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the jobs of ComputeCluster %s: %w", cluster.Name, err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if !ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp == nil && reconcile.IsOurs(job.Spec.ManagedBy) {
			seen.Wanted = job.Name
			return nil
		}
	}
	return nil
}

func (o observer) seeFixtures(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	seen.Fixtures = make(map[string]reconcile.Fixture, len(fixtures))
	for i := range fixtures {
		f := &fixtures[i]
		obj, key := f.empty(), types.NamespacedName{Namespace: cluster.Namespace, Name: f.name(cluster.Name)}
		found, err := presence(o.client.Get(ctx, key, obj, client.UnsafeDisableDeepCopy), obj, cluster)
		if err != nil {
			return fmt.Errorf("read %s %s: %w", f.kind, key, err)
		}
		if found != reconcile.Absent {
			seen.Fixtures[f.kind] = reconcile.Fixture{Presence: found, Object: obj}
		}
	}
	return nil
}

func (o observer) seeClaims(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	var list corev1.PersistentVolumeClaimList
	owned := client.MatchingFields{index.Owner: string(cluster.UID)}
	if err := o.client.List(ctx, &list, client.InNamespace(cluster.Namespace), owned, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the claims of %s: %w", cluster.Name, err)
	}
	seen.Claims = map[string]*corev1.PersistentVolumeClaim{}
	for i := range list.Items {
		if list.Items[i].Labels[v1beta1.LabelGroup] != "" { // others of the cluster's are no worker's, whatever labels they have lost
			seen.Claims[list.Items[i].Name] = &list.Items[i]
		}
	}
	return nil
}

func (o observer) seeNodes(ctx context.Context, _ *v1beta1.ComputeCluster, seen *Seen) error {
	if !o.watchNodes {
		return nil
	}
	seen.Nodes = map[string]Node{}
	for _, p := range seen.Pods {
		if err := o.seeNode(ctx, p.Spec.NodeName, seen); err != nil {
			return err
		}
	}
	return nil
}

func (o observer) seeNode(ctx context.Context, name string, seen *Seen) error {
	if _, known := seen.Nodes[name]; known || name == "" {
		return nil
	}
	var node corev1.Node
	if err := o.client.Get(ctx, types.NamespacedName{Name: name}, &node, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read node %s: %w", name, err)
	} else if err == nil {
		seen.Nodes[name] = o.cordons.dateNode(name, nodeOf(&node), o.clock.Now())
	}
	return nil
}

// maxEventPods is for how many pods of a cluster events are looked at, one of each group: what keeps one pod's volumes
// away keeps those of its siblings.
const maxEventPods = 3

// seeEvents looks at what the kubelet told of pods that it could not make containers for: nothing else says why.
func (o observer) seeEvents(ctx context.Context, _ *v1beta1.ComputeCluster, seen *Seen) error {
	now := o.clock.Now()
	looked := map[string]bool{}
	for _, p := range seen.Pods {
		if looked[p.At.Group] || len(looked) >= maxEventPods || !diagnose.NeedsEvents(p.Pod, now) {
			continue
		}
		looked[p.At.Group] = true
		events, known, err := o.podEvents.Of(p.Pod, now, listEvents(ctx, o.live, p.Pod))
		if err != nil {
			return err
		}
		if known {
			if seen.Events == nil {
				seen.Events = map[types.UID][]corev1.Event{}
			}
			seen.Events[p.UID] = events
		}
	}
	return nil
}

// listEvents returns a function that lists the events of an object past the cache.
func listEvents(ctx context.Context, live client.Reader, object client.Object) func() ([]corev1.Event, error) {
	return func() ([]corev1.Event, error) {
		var list corev1.EventList
		about := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("involvedObject.uid", string(object.GetUID()))}
		if err := live.List(ctx, &list, client.InNamespace(object.GetNamespace()), about); err != nil {
			return nil, fmt.Errorf("list the events of %s: %w", object.GetName(), err)
		}
		return list.Items, nil
	}
}

// confirmHead asks the API server for the head that the record names, or that there must have been since there are
// workers, where the cache does not have it: a cache of pods that is late must not end a living head's epoch.
func (o observer) confirmHead(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	if seen.RecordError != nil || headOf(seen.Pods, seen.Record.Epoch) != nil || seen.Record.Suspended.Cause != "" {
		return nil
	}
	joined := func(p Pod) bool { return p.At.Group != "" && p.At.Epoch == seen.Record.Epoch }
	if seen.Record.HeadUID == "" && !slices.ContainsFunc(seen.Pods, joined) {
		return nil
	}
	at := naming.Place{Epoch: seen.Record.Epoch}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: naming.Pod(cluster.Name, cluster.UID, at)}
	if slices.ContainsFunc(seen.Pods, func(p Pod) bool { return p.Name == key.Name }) {
		return nil // it is there, and someone changed its labels
	}
	var head corev1.Pod
	switch err := o.live.Get(ctx, key, &head); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read head pod %s: %w", key, err)
	case naming.IsOwned(&head, cluster.UID):
		seen.Pods = append(seen.Pods, Pod{Pod: &head, At: at})
	}
	return nil
}

// listOwnedPods lists the pods of an owner.
func listOwnedPods(ctx context.Context, cached client.Reader, namespace string, owner types.UID) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := cached.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{index.Owner: string(owner)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", owner, err)
	}
	return list.Items, nil
}

// listStrays returns the cluster's pods that have lost their owner reference. Both name and labels say whose they are:
// the name holds a hash of the cluster's UID and of the place, and only the operator may set the labels.
func (o observer) listStrays(ctx context.Context, cluster *v1beta1.ComputeCluster) ([]Pod, error) {
	var list corev1.PodList
	err := o.client.List(ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Stray: cluster.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the pods of ComputeCluster %s without an owner: %w", cluster.Name, err)
	}
	var strays []Pod
	for i := range list.Items {
		pod := &list.Items[i]
		at, err := naming.ParsePlace(pod.Labels)
		if err == nil && pod.Name == naming.Pod(cluster.Name, cluster.UID, at) {
			strays = append(strays, Pod{Pod: pod, At: at, stray: true})
		}
	}
	return strays, nil
}

// presence returns what a read of an object that belongs to a cluster says of it.
func presence(err error, obj client.Object, cluster *v1beta1.ComputeCluster) (reconcile.Presence, error) {
	return reconcile.PresenceOf(err, obj, metav1.NewControllerRef(cluster, v1beta1.GroupVersion.WithKind(kindName)))
}

// goingTaints are those by which autoscalers and cloud providers announce that a node is
// about to go: Cluster Autoscaler, Karpenter, Google's and Amazon's notices of preemption
// and maintenance, Azure's, and a node that is being shut down.
var goingTaints = []string{
	"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption",
	"cloud.google.com/impending-node-termination", "aws-node-termination-handler/spot-itn",
	"aws-node-termination-handler/asg-lifecycle-termination", "aws-node-termination-handler/rebalance-recommendation",
	"aws-node-termination-handler/scheduled-maintenance", "remediation.aks.azure.com/unschedulable",
	"node.cloudprovider.kubernetes.io/shutdown", corev1.TaintNodeOutOfService,
}

// nodeOf returns what matters of a node.
func nodeOf(node *corev1.Node) Node {
	seen := Node{Closed: node.Spec.Unschedulable, Architecture: node.Labels[corev1.LabelArchStable]}
	for _, taint := range node.Spec.Taints {
		if slices.Contains(goingTaints, taint.Key) {
			seen.Going = taint.Key
		}
		seen.Off = seen.Off || taint.Key == corev1.TaintNodeOutOfService
		if taint.Key == corev1.TaintNodeUnschedulable && taint.TimeAdded != nil {
			seen.Cordoned = taint.TimeAdded.Time
		}
	}
	if ready := reconcile.NodeReady(node); ready != nil && ready.Status != corev1.ConditionTrue {
		seen.Lost = ready.LastTransitionTime.Time
	}
	return seen
}
