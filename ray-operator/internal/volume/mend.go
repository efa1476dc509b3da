package volume

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Change is a write to a claim of ours.
type Change struct {
	// What names what is written, for texts.
	What         string
	Seen, Wanted *corev1.PersistentVolumeClaim
}

// String returns what is done in words.
func (c Change) String() string { return "set " + c.What }

// Changes returns what to write to a claim of ours: first that it has our marks, and no owner once it must be retained, then a larger
// size. The API server may refuse the size, which must not keep the claim from being retained. What cannot be changed of a claim stays
// as it was found, and so does a size that is larger than the wanted one.
func Changes(found, wanted *corev1.PersistentVolumeClaim) (changes []Change) {
	have, want := found.Spec.Resources.Requests[corev1.ResourceStorage], wanted.Spec.Resources.Requests[corev1.ResourceStorage]
	kept := wanted.DeepCopy()
	kept.Spec.AccessModes, kept.Spec.StorageClassName = slices.Clone(found.Spec.AccessModes), found.Spec.StorageClassName
	kept.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: have}
	isOwned := metav1.GetControllerOfNoCopy(found) != nil
	if !isOwned {
		kept.OwnerReferences = nil
	}
	switch {
	case isOwned && len(kept.OwnerReferences) == 0:
		changes = append(changes, Change{"retain of claim " + found.Name, found, kept})
	case !hasAll(found.Labels, kept.Labels), !hasAll(found.Annotations, kept.Annotations):
		changes = append(changes, Change{"the labels of claim " + found.Name, found, kept})
	}
	if want.Cmp(have) > 0 {
		grown := kept.DeepCopy()
		grown.Spec.Resources.Requests = wanted.Spec.Resources.Requests.DeepCopy()
		changes = append(changes, Change{"the new size of claim " + found.Name, found, grown})
	}
	return changes
}

// hasAll reports whether a map has all entries of another one.
func hasAll(found, wanted map[string]string) bool {
	for key := range maps.Keys(wanted) {
		if value, is := found[key]; !is || value != wanted[key] {
			return false
		}
	}
	return true
}

// ApplyChanges writes changes, one after the other. It returns what the API server refused of them, nil for nothing: that keeps no other
// change from being written.
func ApplyChanges(ctx context.Context, writer *kube.Writer, changes []Change) (refused *reason.Finding, err error) {
	for _, change := range changes {
		err := writer.Mend(ctx, change.Seen, change.Wanted)
		switch {
		case fault.Refused(err):
			refused = Both(refused, new(diagnose.Refusal(change.What, err)))
		case err != nil:
			return refused, err
		}
	}
	return refused, nil
}

// Both returns one finding for two, either of which may be nil.
func Both(first, second *reason.Finding) *reason.Finding {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return &reason.Finding{Code: first.Code, Text: first.Text + "; " + second.Text}
}

// Make makes a claim of an owner. One that is there, which the cache may not show yet, is brought to what is wanted: what the API
// server refuses of that is returned apart. Errors: Wait where it is yet to go, Terminal (VolumeNotReady) where it is somebody else's,
// else the API server's.
func Make(ctx context.Context, writer *kube.Writer, wanted *corev1.PersistentVolumeClaim, owner metav1.OwnerReference) (refused *reason.Finding, err error) {
	if made, err := writer.CreateUnowned(ctx, wanted); made || err != nil {
		return nil, err
	}
	found, err := read(ctx, writer, wanted)
	if err != nil {
		return nil, err
	}
	switch PresenceOf(found, owner) {
	case reconcile.Foreign:
		text := fmt.Sprintf("claim %s exists already, and was not made for this %s", wanted.Name, owner.Kind)
		return nil, &fault.Terminal{Finding: reason.VolumeNotReady.In("taken").Of(text)}
	case reconcile.Absent, reconcile.Terminating:
		return nil, &fault.Wait{For: "claim " + wanted.Name + " to be gone"}
	case reconcile.Ours:
	}
	return ApplyChanges(ctx, writer, Changes(found, wanted))
}

// Mend brings a claim of an owner to what is wanted, and returns what the API server refuses of that. A claim that is not there, is
// being deleted or is somebody else's is left alone.
func Mend(ctx context.Context, writer *kube.Writer, wanted *corev1.PersistentVolumeClaim, owner metav1.OwnerReference) (refused *reason.Finding, err error) {
	found, err := read(ctx, writer, wanted)
	if err != nil || PresenceOf(found, owner) != reconcile.Ours {
		return nil, err
	}
	return ApplyChanges(ctx, writer, Changes(found, wanted))
}

// read returns the claim that stands under a name, past the cache; nil for none.
func read(ctx context.Context, writer *kube.Writer, wanted *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	found := &corev1.PersistentVolumeClaim{}
	switch err := writer.Live.Get(ctx, client.ObjectKeyFromObject(wanted), found); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is none, which is no error
	case err != nil:
		return nil, fmt.Errorf("read claim %s: %w", wanted.Name, err)
	}
	return found, nil
}
