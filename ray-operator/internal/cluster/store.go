package cluster

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
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

// stored reports whether the head's memory outlives the head.
func (p *planner) stored() bool { return p.cluster.Spec.ControlStore != nil }

// inRedis reports whether a cluster's memory is in a Redis.
func inRedis(cluster *v1alpha1.ComputeCluster) bool {
	store := cluster.Spec.ControlStore
	return store != nil && (store.Redis != nil || store.ManagedRedis != nil)
}

func isManaged(cluster *v1alpha1.ComputeCluster) bool {
	return inRedis(cluster) && cluster.Spec.ControlStore.ManagedRedis != nil
}

// headServes reports whether there is a head that can be asked for something.
func (p *planner) headServes() bool { return p.head != nil && p.head.ready() }

// headGone reports whether what ran under the head is over: without a store it ends with the head.
func (p *planner) headGone() bool {
	return !p.stored() && (p.head == nil || p.head.finished())
}

// verdict is what a Redis said of the claim that the plan works for.
func (p *planner) verdict() (controlstore.Verdict, bool) {
	store := p.seen.Store
	return store.Verdict, store.Known && p.Record == nil && p.Turn == p.seen.Record.turn()
}

// standpoint says how the store is.
func (p *planner) standpoint() *Standpoint {
	switch {
	case !p.stored():
		return nil
	case inRedis(p.cluster):
		return p.redisStandpoint()
	default:
		return p.volumeStandpoint()
	}
}

func (p *planner) redisStandpoint() *Standpoint {
	verdict, known := p.verdict()
	switch {
	case !known && p.head != nil: // it was asked before, and nobody says otherwise
		return &Standpoint{}
	case known && verdict.Admitted:
		return &Standpoint{Known: true, Serves: true, Finding: verdict.Finding}
	case isManaged(p.cluster):
		return &Standpoint{Known: true, Finding: p.ofManaged(verdict.Finding)}
	case !known:
		return &Standpoint{Known: true, Finding: reason.StoreChecking.Of()}
	default:
		return &Standpoint{Known: true, Finding: verdict.Finding}
	}
}

// ofManaged says of a managed Redis what lies behind an answer, or behind none.
func (p *planner) ofManaged(finding reason.Finding) reason.Finding {
	starting, isStarting := p.storeStarting()
	switch finding.Code {
	case "", reason.StoreUnreachable.Code, reason.StoreSecretMissing.Code:
		if isStarting {
			return starting
		}
	case reason.StoreReadOnly.Code:
		if strings.Contains(finding.Text, "No space left") {
			return reason.StoreVolumeFull.Of("Redis cannot write to it", naming.StoreClaim(p.cluster.Name))
		}
	}
	if finding.Code == "" {
		return reason.StoreChecking.Of()
	}
	return finding
}

// storeStarting says what a managed Redis that has no ready pod waits for.
func (p *planner) storeStarting() (reason.Finding, bool) {
	set, there := p.seen.Fixtures[storeSetKind].Object.(*appsv1.StatefulSet)
	switch volume := p.seen.Store.Volume; {
	case there && set.Status.ReadyReplicas > 0:
		return reason.Finding{}, false
	case volume.Phase == corev1.ClaimLost:
		return reason.StoreVolumeLost.Of(volume.Name), true
	case there && volume.Phase == corev1.ClaimPending:
		return reason.StoreVolumePending.Of(volume.Name, volume.Name), true
	}
	name := "pod " + naming.StorePod(p.cluster.Name)
	if p.seen.Store.Pod != nil {
		if finding, found := diagnose.Pod(p.seen.Store.Pod, nil, p.now); found && finding.Severity() == reason.Warning {
			return finding.About(name), true
		}
	}
	return reason.StoreStarting.Of(name + " is not ready yet"), true
}

func (p *planner) volumeStandpoint() *Standpoint {
	volume := p.seen.Store.Volume
	says := func(serves bool, finding reason.Finding) *Standpoint {
		return &Standpoint{Known: true, Serves: serves, Finding: finding}
	}
	ready := p.headServes()
	lost := p.forgotten()
	switch {
	case lost != nil:
		return says(false, *lost)
	case volume.Phase == corev1.ClaimLost:
		return says(false, reason.StoreVolumeLost.Of(volume.Name))
	case !ready && volume.HeldBy != "":
		return says(false, reason.VolumeHeldByLostNode.Of(volume.HeldBy, volume.HeldBy))
	case !ready && p.lostWith() != "":
		return says(false, reason.VolumeHeldByLostNode.Of(p.lostWith(), p.lostWith()))
	case !ready && p.filled() != "":
		return says(false, reason.StoreVolumeFull.Of(p.filled(), volume.Name))
	case volume.Presence == Absent && volume.given:
		return says(false, reason.StoreVolumeMissing.Of(volume.Name))
	case volume.Phase != corev1.ClaimBound:
		return says(false, reason.StoreVolumePending.Of(volume.Name, volume.Name))
	default:
		return says(true, reason.StoreServes.Of("claim "+volume.Name+" is bound"))
	}
}

// lostWith is the lost node of a former head that may still write to the volume, empty if there
// is none.
func (p *planner) lostWith() string {
	if old := p.former(); old != nil && !p.seen.Nodes[old.Spec.NodeName].Lost.IsZero() {
		return old.Spec.NodeName
	}
	return ""
}

// filled is what a head that ended for want of room said last.
func (p *planner) filled() string {
	if p.head == nil {
		return ""
	}
	container := diagnose.RayStatus(p.head.Pod)
	if container == nil || container.LastTerminationState.Terminated == nil {
		return ""
	}
	const words = "No space left on device"
	if !strings.Contains(container.LastTerminationState.Terminated.Message, words) {
		return ""
	}
	return "Ray ended with \"" + words + "\""
}

// forgotten says that the store does not hold the session's memory any more, nil where it
// does, or where that is not known.
func (p *planner) forgotten() *reason.Finding {
	volume, had := p.seen.Store.Volume, p.seen.Record.Volume
	if !p.stored() || p.Turn != p.seen.Record.turn() && p.Session == p.Epoch {
		return nil
	}
	if verdict := p.seen.Store.Verdict; p.seen.Store.Known && verdict.Lost {
		return &verdict.Finding
	}
	if had != "" && volume.UID != "" && had != volume.UID {
		lost := reason.StoreDataLost.Of("claim " + volume.Name + " is another than the one that it was on")
		return &lost
	}
	return nil
}

// startOver begins a new session where the memory of this one is lost.
func (p *planner) startOver() bool {
	lost := p.forgotten()
	if lost == nil {
		return false
	}
	p.Store = &Standpoint{Known: true, Finding: *lost}
	p.beginEpoch(telemetry.Event{Finding: *lost, Action: "Recover", Warning: true})
	return true
}

// withdraw takes a head away that ended because its Redis is away: the kubelet's back-off
// would keep it from coming back when the Redis does. Workers stay. One that runs again is
// left alone: it waits for its Redis for a minute by itself.
func (p *planner) withdraw() {
	verdict, known := p.verdict()
	away := known && !verdict.Admitted && verdict.Finding.Code != reason.StoreSlow.Code
	if !away || p.head == nil || p.head.leaving() || !p.head.halted() {
		return
	}
	event := telemetry.Event{Finding: reason.HeadWithdrawn.Of(p.head.Name, verdict.Finding.Code), Action: "Recover", Warning: true}
	p.Delete = append(p.Delete, Removal{Pod: *p.head, GraceSeconds: grace(lostGrace), Why: "its control store is away", Event: &event})
}

// makeHead makes the head of the epoch, once its store will have it and no other head can
// harm what is in there.
func (p *planner) makeHead() {
	p.ForgetStore = p.ForgetStore || p.isFresh() && p.former() != nil // who still writes would spoil what is begun
	if p.head != nil || p.Held != nil {
		return
	}
	if held := p.storeHolds(); held != nil {
		p.Held = held
		p.wakeIn(storeLook)
		return
	}
	p.Head, p.NoteHead = p.joined(p.site.HeadPod(p.cluster, p.Epoch)), !p.sparesRecord()
	if p.encryptsStore() {
		pod.EncryptStore(p.Head, p.cluster)
	}
}

// note has it written down that the cluster has keys in a Redis of its user's, before that
// is asked for the first time: a Redis that admits a head is marked as the cluster's, though
// the head may never come.
func (p *planner) note() {
	given := p.stored() && p.cluster.Spec.ControlStore.Redis != nil
	p.Note = given && p.head == nil && !p.seen.Store.Noted && !p.ForgetStore && p.End == nil
}

// isFresh reports whether a session begins that is not the cluster's first.
func (p *planner) isFresh() bool {
	return p.stored() && p.Session > 1 && p.Session == p.Epoch && p.head == nil
}

// storeHolds is why no head must be made now, nil if one may.
func (p *planner) storeHolds() *reason.Finding {
	if !p.stored() {
		return nil
	}
	store := p.standpoint()
	if former := p.former(); former != nil && (!p.cutOff() || p.isFresh()) {
		held := p.remains(*former)
		return &held
	}
	volume := p.seen.Store.Volume
	mayBind := !inRedis(p.cluster) && volume.Presence == Ours && volume.Phase != corev1.ClaimLost && volume.HeldBy == ""
	if store.Serves || mayBind { // a claim may wait for its first pod
		return nil
	}
	return &store.Finding
}

// former is a head of an earlier epoch that may still write, nil if there is none.
func (p *planner) former() *Pod {
	for i := range p.seen.Pods {
		if old := &p.seen.Pods[i]; old.isHead() && old.At.Epoch != p.Epoch && !p.harmless(*old) {
			return old
		}
	}
	return nil
}

// harmless reports whether a former head writes no more: what ran in it has ended, or its
// node is declared to be off. Of a Redis of the user's also a head whose node has not
// answered for a while after it was to end, because somebody has to go on; docs/control-store.md
// says what that does not guarantee.
func (p *planner) harmless(old Pod) bool {
	node, known := p.seen.Nodes[old.Spec.NodeName]
	answers := known && node.Lost.IsZero() // so it will say when the pod has ended
	switch {
	case old.finished(), node.Off:
		return true
	case !old.leaving() || !inRedis(p.cluster) || isManaged(p.cluster) || answers:
		return false
	}
	wait := old.DeletionTimestamp.Add(unreachableGrace).Sub(p.now)
	p.wakeIn(wait)
	return wait <= 0
}

// cutOff reports whether former heads can write no more although they may run: the operator's
// own Redis takes away their users before it admits the next one.
func (p *planner) cutOff() bool {
	verdict, known := p.verdict()
	return isManaged(p.cluster) && known && verdict.Admitted
}

// remains says that a former head is waited for.
func (p *planner) remains(old Pod) reason.Finding {
	switch node := old.Spec.NodeName; {
	case p.seen.Nodes[node].Lost.IsZero():
		return reason.HeadRecovering.Of(naming.Pod(p.cluster.Name, p.cluster.UID, naming.Place{Epoch: p.Epoch}))
	case inRedis(p.cluster):
		return reason.OldHeadRemains.Of(old.Name, node, node)
	default:
		return reason.VolumeHeldByLostNode.Of(node, node)
	}
}

// keepStore sees to what a managed store needs beside the fixtures, and to the claim of a store.
func (p *planner) keepStore() {
	if !p.stored() {
		return
	}
	wanted, volume := desired.StoreClaim(p.cluster), p.seen.Store.Volume
	switch {
	case wanted == nil:
	case volume.Presence == Absent:
		p.Volume = wanted
	case volume.Presence == Going:
		p.wakeIn(goingRetry)
	case volume.Presence == Foreign:
		conflict := reason.NameConflict.Of("PersistentVolumeClaim " + wanted.Name)
		p.Held = &conflict
		p.wakeIn(pass.Recheck)
	case volume.claim != nil && len(wanted.OwnerReferences) == 0 && len(volume.claim.OwnerReferences) > 0: // to be retained from now on
		p.Fixtures = append(p.Fixtures, Fixing{Act: Mend, Kind: "PersistentVolumeClaim", Wanted: wanted, Seen: volume.claim})
	}
}
