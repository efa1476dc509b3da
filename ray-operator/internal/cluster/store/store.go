// Package store judges a cluster's control store: where the memory of its head outlives the head.
//
// In, as values: the cluster, what was read of its store, its heads, and what the record notes of the session. Out: how the
// store is, whether a new head may begin, whether the session's memory is lost, and what must be done about the claim. Reader
// reads what is judged.
//
// It must never let a head begin beside one that may still write, take a missing answer for a lost memory, or write anything.
package store

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// terminatingRetry is how soon to look again at a claim that is on its way out.
const terminatingRetry = time.Second

// Situation is what is known of a store and of those who use it. Nothing changes it.
type Situation struct {
	Cluster *v1beta1.ComputeCluster
	Seen    Seen
	// Set is what runs a managed Redis, nil where there is none.
	Set *appsv1.StatefulSet
	// Head is the pod that is, or was, the head of the epoch, nil without one.
	Head        *corev1.Pod
	IsHeadReady bool
	// Former are the heads of other epochs.
	Former []Head
	// Epoch and Session are those that the plan works for. IsRecorded: the record names the same, and Rewrites: another
	// record is written first, so that what a Redis said was about another claim.
	Epoch, Session       int64
	IsRecorded, Rewrites bool
	// RecordedVolume is the UID of the claim that the session's memory is on by the record, empty where it is on none.
	RecordedVolume types.UID
	Now            time.Time
}

// State is how a control store is, as a pass found it.
type State struct {
	// Known reports that there is something to say at all; Serves that a head can work with it.
	Known, Serves bool
	Finding       reason.Finding
}

// Exists reports whether the memory of a cluster's head outlives the head.
func Exists(cluster *v1beta1.ComputeCluster) bool { return cluster.Spec.ControlStore != nil }

// InRedis reports whether a cluster's memory is in a Redis.
func InRedis(cluster *v1beta1.ComputeCluster) bool {
	store := cluster.Spec.ControlStore
	return store != nil && (store.Redis != nil || store.ManagedRedis != nil)
}

// IsManaged reports whether the operator runs the Redis of a cluster.
func IsManaged(cluster *v1beta1.ComputeCluster) bool {
	return InRedis(cluster) && cluster.Spec.ControlStore.ManagedRedis != nil
}

// Verdict returns what a Redis said of the claim that the plan works for.
func (s *Situation) Verdict() (controlstore.Verdict, bool) {
	return s.Seen.Verdict, s.Seen.Known && !s.Rewrites && s.IsRecorded
}

// Assess returns how the store is, nil where there is none.
func (s *Situation) Assess() *State {
	switch {
	case !Exists(s.Cluster):
		return nil
	case InRedis(s.Cluster):
		return s.assessRedis()
	default:
		return s.assessVolume()
	}
}

// assessRedis returns how a store in a Redis is.
func (s *Situation) assessRedis() *State {
	verdict, known := s.Verdict()
	switch {
	case !known && s.Head != nil: // it was asked before, and nobody says otherwise
		return &State{}
	case known && verdict.Admitted:
		return &State{Known: true, Serves: true, Finding: verdict.Finding}
	case IsManaged(s.Cluster):
		return &State{Known: true, Finding: s.explainManagedRedis(verdict.Finding)}
	case !known:
		return &State{Known: true, Finding: reason.StoreChecking.Of()}
	default:
		return &State{Known: true, Finding: verdict.Finding}
	}
}

// explainManagedRedis returns what lies behind an answer of a managed Redis, or behind none.
func (s *Situation) explainManagedRedis(finding reason.Finding) reason.Finding {
	starting, isStarting := s.explainStart()
	switch finding.Code {
	case "", reason.StoreUnreachable.Code, reason.StoreSecretMissing.Code:
		if isStarting {
			return starting
		}
	case reason.StoreReadOnly.Code:
		if strings.Contains(finding.Text, "No space left") {
			return reason.StoreVolumeFull.Of("Redis cannot write to it", naming.StoreClaim(s.Cluster.Name))
		}
	}
	if finding.Code == "" {
		return reason.StoreChecking.Of()
	}
	return finding
}

// explainStart returns what a managed Redis that has no ready pod waits for.
func (s *Situation) explainStart() (reason.Finding, bool) {
	volume := s.Seen.Volume
	switch {
	case s.Set != nil && s.Set.Status.ReadyReplicas > 0:
		return reason.Finding{}, false
	case volume.Phase == corev1.ClaimLost:
		return reason.StoreVolumeLost.Of(volume.Name), true
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: naming.StorePod(s.Cluster.Name)}}
	if s.Set != nil {
		pod.Spec = s.Set.Spec.Template.Spec
	}
	if finding, found := diagnose.NotMade(pod, s.Seen.SetEvents); found { // the claim may wait for that pod
		return finding, true
	}
	if s.Set != nil && volume.Phase == corev1.ClaimPending {
		return reason.StoreVolumePending.Of(volume.Name, volume.Name), true
	}
	if s.Seen.Pod != nil {
		if finding, found := diagnose.Pod(s.Seen.Pod, nil, s.Now); found && finding.Severity() == reason.Warning {
			return finding.About("pod " + pod.Name), true
		}
	}
	return reason.StoreStarting.Of("pod " + pod.Name + " is not ready yet"), true
}

// HasNoPod reports whether a managed Redis has no pod, and does not serve.
func (s *Situation) HasNoPod() bool {
	return s.Set != nil && s.Set.Status.Replicas == 0 && !s.Seen.Verdict.Admitted
}

// assessVolume returns how a store on a volume is.
func (s *Situation) assessVolume() *State {
	volume := s.Seen.Volume
	says := func(serves bool, finding reason.Finding) *State {
		return &State{Known: true, Serves: serves, Finding: finding}
	}
	ready, lost := s.Head != nil && s.IsHeadReady, s.LostMemory()
	switch {
	case lost != nil:
		return says(false, *lost)
	case volume.Phase == corev1.ClaimLost:
		return says(false, reason.StoreVolumeLost.Of(volume.Name))
	case !ready && volume.HeldBy != "":
		return says(false, reason.VolumeHeldByLostNode.Of(volume.HeldBy, volume.HeldBy))
	case !ready && s.lostNode() != "":
		return says(false, reason.VolumeHeldByLostNode.Of(s.lostNode(), s.lostNode()))
	case !ready && s.explainFullVolume() != "":
		return says(false, reason.StoreVolumeFull.Of(s.explainFullVolume(), volume.Name))
	case volume.Presence == reconcile.Absent && volume.IsGiven:
		return says(false, reason.StoreVolumeMissing.Of(volume.Name))
	case volume.Phase != corev1.ClaimBound:
		return says(false, reason.StoreVolumePending.Of(volume.Name, volume.Name))
	default:
		return says(true, reason.StoreServes.Of("claim "+volume.Name+" is bound"))
	}
}

// explainFullVolume returns what a head that ended for want of room said last.
func (s *Situation) explainFullVolume() string {
	if s.Head == nil {
		return ""
	}
	container := diagnose.RayStatus(s.Head)
	if container == nil || container.LastTerminationState.Terminated == nil {
		return ""
	}
	const words = "No space left on device"
	if !strings.Contains(container.LastTerminationState.Terminated.Message, words) {
		return ""
	}
	return "Ray ended with \"" + words + "\""
}

// LostMemory returns a finding where the store has lost the session's memory, nil where nobody says so.
func (s *Situation) LostMemory() *reason.Finding {
	volume, had := s.Seen.Volume, s.RecordedVolume
	if !Exists(s.Cluster) || !s.IsRecorded && s.Session == s.Epoch {
		return nil
	}
	if verdict := s.Seen.Verdict; s.Seen.Known && verdict.Lost {
		return &verdict.Finding
	}
	if had != "" && volume.UID != "" && had != volume.UID {
		lost := reason.StoreDataLost.Of("claim " + volume.Name + " is another than the one that it was on")
		return &lost
	}
	return nil
}

// ClaimPlan is what to do about the claim of a store.
type ClaimPlan struct {
	// Make is the claim to create, Mend what to change of the one that is there, both nil for nothing.
	Make *corev1.PersistentVolumeClaim
	Mend *reconcile.FixtureChange
	// Conflict is why no head may be made, nil for no reason.
	Conflict *reason.Finding
	// Wake is after how long to look again, 0 for never.
	Wake time.Duration
}

// PlanClaim returns what to do about the claim of a store.
func (s *Situation) PlanClaim() ClaimPlan {
	if !Exists(s.Cluster) {
		return ClaimPlan{}
	}
	wanted, volume := desired.StoreClaim(s.Cluster), s.Seen.Volume
	switch {
	case wanted == nil:
	case volume.Presence == reconcile.Absent:
		return ClaimPlan{Make: wanted}
	case volume.Presence == reconcile.Terminating:
		return ClaimPlan{Wake: terminatingRetry}
	case volume.Presence == reconcile.Foreign:
		conflict := reason.NameConflict.Of("PersistentVolumeClaim " + wanted.Name)
		return ClaimPlan{Conflict: &conflict, Wake: reconcile.Recheck}
	case volume.Claim != nil && len(wanted.OwnerReferences) == 0 && len(volume.Claim.OwnerReferences) > 0: // to be retained from now on
		return ClaimPlan{Mend: &reconcile.FixtureChange{Act: reconcile.Mend, Kind: "PersistentVolumeClaim", Wanted: wanted, Seen: volume.Claim}}
	}
	return ClaimPlan{}
}
