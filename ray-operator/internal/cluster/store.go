package cluster

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// storeLook is how soon to look again for what no watch tells of: a claim of the
	// user's, a node that answers again, a Secret that was changed.
	storeLook = 5 * time.Second
	// unreachableGrace is for how long a head whose node does not answer is still waited for
	// after it was to end, where nothing but the node could stop it from writing.
	unreachableGrace = 30 * time.Second
)

// storeSetKind is the kind of what runs a managed Redis.
const storeSetKind = "StatefulSet of the store"

// Standpoint is how a control store is, as a pass found it.
type Standpoint struct {
	// Known tells that there is something to say at all; Serves that a head can work with it.
	Known, Serves bool
	Finding       reason.Finding
}

// inRedis reports whether a cluster's memory is in a Redis.
func inRedis(cluster *v1beta1.ComputeCluster) bool {
	store := cluster.Spec.ControlStore
	return store != nil && (store.Redis != nil || store.ManagedRedis != nil)
}

// isManaged reports whether the operator runs the Redis of a cluster.
func isManaged(cluster *v1beta1.ComputeCluster) bool {
	return inRedis(cluster) && cluster.Spec.ControlStore.ManagedRedis != nil
}

// verdictOfIncarnation returns what a Redis said of the claim that the plan works for.
func verdictOfIncarnation(b basis) (controlstore.Verdict, bool) {
	store := b.seen.Store
	return store.Verdict, store.Known && !b.records && b.Incarnation == b.seen.Record.recordedIncarnation()
}

// assessStore returns how the store is.
func assessStore(b basis) *Standpoint {
	switch {
	case !b.hasStore():
		return nil
	case inRedis(b.cluster):
		return assessRedis(b)
	default:
		return assessVolume(b)
	}
}

// assessRedis returns how a store in a Redis is.
func assessRedis(b basis) *Standpoint {
	verdict, known := verdictOfIncarnation(b)
	switch {
	case !known && b.head != nil: // it was asked before, and nobody says otherwise
		return &Standpoint{}
	case known && verdict.Admitted:
		return &Standpoint{Known: true, Serves: true, Finding: verdict.Finding}
	case isManaged(b.cluster):
		return &Standpoint{Known: true, Finding: explainManagedRedis(b.situation, verdict.Finding)}
	case !known:
		return &Standpoint{Known: true, Finding: reason.StoreChecking.Of()}
	default:
		return &Standpoint{Known: true, Finding: verdict.Finding}
	}
}

// explainManagedRedis returns what lies behind an answer of a managed Redis, or behind none.
func explainManagedRedis(s *situation, finding reason.Finding) reason.Finding {
	starting, isStarting := explainStoreStart(s)
	switch finding.Code {
	case "", reason.StoreUnreachable.Code, reason.StoreSecretMissing.Code:
		if isStarting {
			return starting
		}
	case reason.StoreReadOnly.Code:
		if strings.Contains(finding.Text, "No space left") {
			return reason.StoreVolumeFull.Of("Redis cannot write to it", naming.StoreClaim(s.cluster.Name))
		}
	}
	if finding.Code == "" {
		return reason.StoreChecking.Of()
	}
	return finding
}

// explainStoreStart returns what a managed Redis that has no ready pod waits for.
func explainStoreStart(s *situation) (reason.Finding, bool) {
	set, there := s.seen.Fixtures[storeSetKind].Object.(*appsv1.StatefulSet)
	switch volume := s.seen.Store.Volume; {
	case there && set.Status.ReadyReplicas > 0:
		return reason.Finding{}, false
	case volume.Phase == corev1.ClaimLost:
		return reason.StoreVolumeLost.Of(volume.Name), true
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: naming.StorePod(s.cluster.Name)}}
	if there {
		pod.Spec = set.Spec.Template.Spec
	}
	if finding, found := diagnose.NotMade(pod, s.seen.Store.SetEvents); found { // the claim may wait for that pod
		return finding, true
	}
	if volume := s.seen.Store.Volume; there && volume.Phase == corev1.ClaimPending {
		return reason.StoreVolumePending.Of(volume.Name, volume.Name), true
	}
	if s.seen.Store.Pod != nil {
		if finding, found := diagnose.Pod(s.seen.Store.Pod, nil, s.now); found && finding.Severity() == reason.Warning {
			return finding.About("pod " + pod.Name), true
		}
	}
	return reason.StoreStarting.Of("pod " + pod.Name + " is not ready yet"), true
}

// hasUnmadeStore reports whether a managed Redis has no pod, and does not serve.
func hasUnmadeStore(s *situation) bool {
	set, there := s.seen.Fixtures[storeSetKind].Object.(*appsv1.StatefulSet)
	return there && set.Status.Replicas == 0 && !s.seen.Store.Verdict.Admitted
}

// assessVolume returns how a store on a volume is.
func assessVolume(b basis) *Standpoint {
	volume := b.seen.Store.Volume
	says := func(serves bool, finding reason.Finding) *Standpoint {
		return &Standpoint{Known: true, Serves: serves, Finding: finding}
	}
	ready := b.hasReadyHead()
	lost := findLostMemory(b)
	switch {
	case lost != nil:
		return says(false, *lost)
	case volume.Phase == corev1.ClaimLost:
		return says(false, reason.StoreVolumeLost.Of(volume.Name))
	case !ready && volume.HeldBy != "":
		return says(false, reason.VolumeHeldByLostNode.Of(volume.HeldBy, volume.HeldBy))
	case !ready && lostNode(b) != "":
		return says(false, reason.VolumeHeldByLostNode.Of(lostNode(b), lostNode(b)))
	case !ready && explainFullVolume(b) != "":
		return says(false, reason.StoreVolumeFull.Of(explainFullVolume(b), volume.Name))
	case volume.Presence == reconcile.Absent && volume.given:
		return says(false, reason.StoreVolumeMissing.Of(volume.Name))
	case volume.Phase != corev1.ClaimBound:
		return says(false, reason.StoreVolumePending.Of(volume.Name, volume.Name))
	default:
		return says(true, reason.StoreServes.Of("claim "+volume.Name+" is bound"))
	}
}

// lostNode returns the lost node of a former head that may still write to the volume, empty if there
// is none.
func lostNode(b basis) string {
	if old := formerHead(b); old != nil && !b.seen.Nodes[old.Spec.NodeName].Lost.IsZero() {
		return old.Spec.NodeName
	}
	return ""
}

// explainFullVolume returns what a head that ended for want of room said last.
func explainFullVolume(b basis) string {
	if b.head == nil {
		return ""
	}
	container := diagnose.RayStatus(b.head.Pod)
	if container == nil || container.LastTerminationState.Terminated == nil {
		return ""
	}
	const words = "No space left on device"
	if !strings.Contains(container.LastTerminationState.Terminated.Message, words) {
		return ""
	}
	return "Ray ended with \"" + words + "\""
}

// findLostMemory returns a finding where the store has lost the session's memory, nil where nobody says so.
func findLostMemory(b basis) *reason.Finding {
	volume, had := b.seen.Store.Volume, b.seen.Record.Volume
	if !b.hasStore() || b.Incarnation != b.seen.Record.recordedIncarnation() && b.Session == b.Epoch {
		return nil
	}
	if verdict := b.seen.Store.Verdict; b.seen.Store.Known && verdict.Lost {
		return &verdict.Finding
	}
	if had != "" && volume.UID != "" && had != volume.UID {
		lost := reason.StoreDataLost.Of("claim " + volume.Name + " is another than the one that it was on")
		return &lost
	}
	return nil
}

// noteStoreKeys plans a note that the cluster has keys in a Redis of its user's, before that is asked for the first
// time: a Redis that admits a head is marked as the cluster's, though the head may never come.
func noteStoreKeys(p *planner) {
	given := p.hasStore() && p.cluster.Spec.ControlStore.Redis != nil
	p.Note = given && p.head == nil && !p.seen.Store.Noted && !p.ForgetStore && p.End == nil
}

// isFreshSession reports whether a session begins that is not the cluster's first.
func isFreshSession(b basis) bool {
	return b.hasStore() && b.Session > 1 && b.Session == b.Epoch && b.head == nil
}

// findStoreObstacle returns why no head must be made now, nil if one may.
func findStoreObstacle(b basis) *reason.Finding {
	if !b.hasStore() {
		return nil
	}
	store := assessStore(b)
	if former := formerHead(b); former != nil && (!isCutOff(b) || isFreshSession(b)) {
		held := explainFormer(b, *former)
		return &held
	}
	volume := b.seen.Store.Volume
	mayBind := !inRedis(b.cluster) && volume.Presence == reconcile.Ours && volume.Phase != corev1.ClaimLost && volume.HeldBy == ""
	if store.Serves || mayBind { // a claim may wait for its first pod
		return nil
	}
	return &store.Finding
}

// formerHead returns a head of an earlier epoch that may still write, nil if there is none.
func formerHead(b basis) *Pod {
	for i := range b.seen.Pods {
		if old := &b.seen.Pods[i]; old.isHead() && old.At.Epoch != b.Epoch && !isHarmless(b, *old) {
			return old
		}
	}
	return nil
}

// isHarmless reports whether a former head writes no more: what ran in it has ended, its node is declared to be off, or
// it has been waited for long enough.
func isHarmless(b basis, old Pod) bool {
	switch node := b.seen.Nodes[old.Spec.NodeName]; {
	case old.hasFinished(), node.Off:
		return true
	default:
		wait, ends := patienceWith(b, old)
		return ends && wait <= 0
	}
}

// patienceWith returns for how long a former head is still waited for, false if there is no end to that. There is one
// only for a Redis of the user's, where its node does not answer: somebody has to go on. docs/control-store.md says
// what that does not guarantee.
func patienceWith(b basis, old Pod) (time.Duration, bool) {
	node, known := b.seen.Nodes[old.Spec.NodeName]
	answers := known && node.Lost.IsZero() // so it will say when the pod has ended
	if !old.isTerminating() || !inRedis(b.cluster) || isManaged(b.cluster) || answers {
		return 0, false
	}
	return old.DeletionTimestamp.Add(unreachableGrace).Sub(b.now), true
}

// isCutOff reports whether former heads can write no more although they may run: the operator's
// own Redis takes away their users before it admits the next one.
func isCutOff(b basis) bool {
	verdict, known := verdictOfIncarnation(b)
	return isManaged(b.cluster) && known && verdict.Admitted
}

// explainFormer returns that a former head is waited for.
func explainFormer(b basis, old Pod) reason.Finding {
	switch node := old.Spec.NodeName; {
	case b.seen.Nodes[node].Lost.IsZero():
		return reason.HeadRecovering.Of(naming.Pod(b.cluster.Name, b.cluster.UID, naming.Place{Epoch: b.Epoch}))
	case inRedis(b.cluster):
		return reason.OldHeadRemains.Of(old.Name, node, node)
	default:
		return reason.VolumeHeldByLostNode.Of(node, node)
	}
}

// planStoreClaim plans the claim of a store.
func planStoreClaim(p *planner) {
	if !p.hasStore() {
		return
	}
	wanted, volume := desired.StoreClaim(p.cluster), p.seen.Store.Volume
	switch {
	case wanted == nil:
	case volume.Presence == reconcile.Absent:
		p.Volume = wanted
	case volume.Presence == reconcile.Terminating:
		p.wakeIn(goingRetry)
	case volume.Presence == reconcile.Foreign:
		conflict := reason.NameConflict.Of("PersistentVolumeClaim " + wanted.Name)
		p.Held = &conflict
		p.wakeIn(reconcile.Recheck)
	case volume.claim != nil && len(wanted.OwnerReferences) == 0 && len(volume.claim.OwnerReferences) > 0: // to be retained from now on
		p.Fixtures = append(p.Fixtures, reconcile.FixtureChange{Act: reconcile.Mend, Kind: "PersistentVolumeClaim", Wanted: wanted, Seen: volume.claim})
	}
}
