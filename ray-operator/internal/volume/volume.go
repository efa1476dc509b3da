// Package volume judges the claims of shared volumes, and makes those that are ours.
//
// In, as values: a shared volume, the claim that is wanted of it, what stands under its name, and what Kubernetes told of that. Out:
// what to do about the claim, and why pods cannot mount it.
//
// It must never change or delete a claim that is not its owner's, by the UID in the owner reference or, where that was retained, in an
// annotation. It never makes a volume smaller.
package volume

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Seen is a shared volume, with what a pass knows of its claim.
type Seen struct {
	Volume *v1beta1.SharedVolume
	// Name is that of the claim. Wanted is the claim as it must be, nil where the user names one.
	Name   string
	Wanted *corev1.PersistentVolumeClaim
	// Owner is who a claim that is made must belong to. IsJobs reports that the job that made the cluster makes the claim.
	Owner  metav1.OwnerReference
	IsJobs bool
	// Found is what stands there, nil for nothing. It is not to be changed. Events are about it.
	Found  *corev1.PersistentVolumeClaim
	Events []corev1.Event
}

// PresenceOf returns what a claim that was found is to an owner. One that was retained has no controller, and the owner's UID in an
// annotation. The claim of a former owner of the same name is somebody else's: who may make claims may not read all of them.
func PresenceOf(found *corev1.PersistentVolumeClaim, owner metav1.OwnerReference) reconcile.Presence {
	switch {
	case found == nil:
		return reconcile.Absent
	case kube.IsPredecessors(found, owner):
		return reconcile.Terminating
	case !naming.IsOwned(found, owner.UID) && !isRetained(found, owner):
		return reconcile.Foreign
	case found.DeletionTimestamp != nil:
		return reconcile.Terminating
	default:
		return reconcile.Ours
	}
}

// isRetained reports whether a claim was made for an owner and is to outlive it.
func isRetained(found *corev1.PersistentVolumeClaim, owner metav1.OwnerReference) bool {
	return metav1.GetControllerOfNoCopy(found) == nil && found.Annotations[v1beta1.AnnotationVolumeOwner] == string(owner.UID)
}

// Obstacle is why pods cannot mount a shared volume.
type Obstacle struct {
	reason.Finding
	// IsFinal reports that no pod could start with the volume as it is. Else a pod may be what its claim waits for.
	IsFinal bool
}

// patience is how long a claim may take to be bound before people are told of it though nobody says that anything is wrong.
const patience = 2 * time.Minute

// Obstacle returns why pods cannot mount the volume, nil for no reason. isMany reports that the cluster has more pods than its head.
func (s *Seen) Obstacle(isMany bool, now time.Time) *Obstacle {
	if s.IsMissing() { // it is made first
		return nil
	}
	if defect := s.findDefect(isMany); defect != nil {
		return &Obstacle{*defect, true}
	}
	if unbound := s.explainUnbound(now); unbound != nil {
		return &Obstacle{*unbound, false}
	}
	return nil
}

// findDefect returns why no pod could start with the claim as it is, nil for no reason.
func (s *Seen) findDefect(isMany bool) *reason.Finding {
	of := func(kind, is string, values ...any) *reason.Finding {
		text := "claim " + s.Name + " of shared volume " + s.Volume.Name + " " + is
		return new(reason.VolumeNotReady.In(kind).Of(append([]any{text}, values...)...))
	}
	switch claim := s.Found; {
	case claim == nil && s.IsJobs:
		return of("unmade", "does not exist")
	case claim == nil:
		return of("absent", "does not exist", "PersistentVolumeClaim "+s.Name)
	case s.Wanted != nil && kube.IsPredecessors(claim, s.Owner):
		return of("former", "belongs to a deleted "+s.Owner.Kind+" of this name, and is deleted with it")
	case claim.DeletionTimestamp != nil && s.isMade():
		return of("remade", "is being deleted")
	case claim.DeletionTimestamp != nil:
		return of("deleted", "is being deleted")
	case claim.Status.Phase == corev1.ClaimLost && s.isMade():
		return of("lostours", "has lost its PersistentVolume", s.Name)
	case claim.Status.Phase == corev1.ClaimLost:
		return of("lost", "has lost its PersistentVolume")
	case isMany && !s.isShareable():
		return of("modes", "cannot be mounted by the pods of several nodes: its access modes lack "+s.mode())
	default:
		return nil
	}
}

// explainUnbound returns why the claim is not bound, nil where it is, or where that is usual for now.
func (s *Seen) explainUnbound(now time.Time) *reason.Finding {
	if !s.IsPending() {
		return nil
	}
	text, why := "claim "+s.Name+" of shared volume "+s.Volume.Name+" is not bound", explainPending(s.Events)
	switch {
	case why.message != "":
		text += ": " + why.message
	case why.isUsual, now.Sub(s.Found.CreationTimestamp.Time) < patience:
		return nil
	}
	return new(reason.VolumeNotReady.In("claim").Of(text, s.Name))
}

// isMade reports whether the operator makes the claim, for the cluster or for its job.
func (s *Seen) isMade() bool { return s.Wanted != nil || s.IsJobs }

// IsMissing reports whether a claim must be made that is not there, or in whose place there is somebody else's.
func (s *Seen) IsMissing() bool {
	if s.Wanted == nil {
		return false
	}
	presence := PresenceOf(s.Found, s.Owner)
	return presence == reconcile.Absent || presence == reconcile.Foreign
}

// IsPending reports whether the claim is yet to be bound.
func (s *Seen) IsPending() bool {
	return s.Found != nil && s.Found.DeletionTimestamp == nil && s.Found.Status.Phase != corev1.ClaimBound && s.Found.Status.Phase != corev1.ClaimLost
}

// isShareable reports whether pods of several nodes can mount the volume.
func (s *Seen) isShareable() bool {
	modes := s.Found.Spec.AccessModes
	return slices.Contains(modes, corev1.ReadWriteMany) || ptr.Deref(s.Volume.ReadOnly, false) && slices.Contains(modes, corev1.ReadOnlyMany)
}

// mode names the access modes that pods of several nodes need.
func (s *Seen) mode() string {
	if ptr.Deref(s.Volume.ReadOnly, false) {
		return "ReadWriteMany and ReadOnlyMany"
	}
	return "ReadWriteMany"
}

// pendingCause is what Kubernetes told of a claim that is not bound.
type pendingCause struct {
	// isUsual reports that the claim waits for a pod, which says itself why it is not scheduled.
	isUsual bool
	message string
}

// Reasons of events about claims. Kubernetes writes all but the third as Normal.
const (
	eventFirstConsumer = "WaitForFirstConsumer"
	eventPodScheduled  = "WaitForPodScheduled"
	eventProvisioning  = "ProvisioningFailed"
	eventBinding       = "FailedBinding"
)

// explainPending returns what the newest event says that is a failure or a wait for a pod. Others, such as ExternalProvisioning, are
// written again and again between failures.
func explainPending(events []corev1.Event) pendingCause {
	var last *corev1.Event
	for i := range events {
		if (isWait(&events[i]) || isFailure(&events[i])) && (last == nil || !timeOf(&events[i]).Before(timeOf(last))) {
			last = &events[i]
		}
	}
	switch {
	case last == nil:
		return pendingCause{}
	case isWait(last):
		return pendingCause{isUsual: true}
	default:
		return pendingCause{message: last.Message}
	}
}

func isWait(event *corev1.Event) bool {
	return event.Reason == eventFirstConsumer || event.Reason == eventPodScheduled
}

func isFailure(event *corev1.Event) bool {
	return event.Reason == eventProvisioning || event.Reason == eventBinding || event.Type == corev1.EventTypeWarning
}

// timeOf returns when an event happened last.
func timeOf(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	default:
		return event.CreationTimestamp.Time
	}
}
