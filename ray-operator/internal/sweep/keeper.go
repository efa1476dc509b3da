package sweep

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Keeper keeps notes.
type Keeper struct {
	// Writer writes them; its client reads from a cache that holds the notes.
	Writer *kube.Writer
	// Live reads past the cache.
	Live client.Reader
	// Namespace is the operator's own. Without one nothing can be kept.
	Namespace string
}

// Kept reports whether the note is in the cache as it must be.
func (k *Keeper) Kept(ctx context.Context, note Note) (bool, error) {
	if k.Namespace == "" {
		return false, nil
	}
	var seen corev1.ConfigMap
	key := client.ObjectKey{Namespace: k.Namespace, Name: naming.StoreNote(note.UID)}
	if err := k.Writer.Client.Get(ctx, key, &seen); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	return seen.DeletionTimestamp == nil && says(&seen, note), nil
}

// Keep ensures that the note is there, and as it must be. Where it is, that costs no
// call. No Redis may be asked, and no head may start, before Keep gave nil.
// Errors: Terminal where the operator does not know its own namespace or too many notes of the
// cluster's could not be swept by (StoreRecordFailed), or someone else's object has the name (NameConflict); Wait where the note is being deleted;
// else the API server's.
func (k *Keeper) Keep(ctx context.Context, note Note) error {
	if k.Namespace == "" {
		return &fault.Terminal{Finding: reason.StoreRecordFailed.Of("it was started without --namespace")}
	}
	wanted := note.ConfigMap(k.Namespace)
	if _, err := ParseNote(wanted); err != nil {
		return fmt.Errorf("note the keys of %s: %w", note.Cluster, err) // it could never be swept by
	}
	var seen corev1.ConfigMap
	err := k.Writer.Client.Get(ctx, client.ObjectKeyFromObject(wanted), &seen)
	switch {
	case err == nil && seen.DeletionTimestamp == nil && says(&seen, note):
		return nil
	case apierrors.IsNotFound(err):
		if err := k.mayAdd(ctx, note.Cluster.Namespace); err != nil {
			return err
		}
		if made, err := k.Writer.CreateUnowned(ctx, wanted.DeepCopy()); made || err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("read ConfigMap %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return k.mend(ctx, note, wanted)
}

// mostLeft is how many clusters of a namespace may be gone with their keys left in a Redis before no other is noted.
const mostLeft = 20

// mayAdd fails with StoreRecordFailed while too many notes of a namespace cannot be swept by. Without that, clusters that are
// made and deleted in a loop beside a Redis that is away would leave notes without number.
func (k *Keeper) mayAdd(ctx context.Context, namespace string) error {
	var list corev1.ConfigMapList
	err := k.Writer.Client.List(ctx, &list, client.InNamespace(k.Namespace), client.HasLabels{v1beta1.LabelNote}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the notes about keys in a Redis: %w", err)
	}
	left := 0
	for i := range list.Items {
		state := list.Items[i].Data[keyState]
		if list.Items[i].Data[keyNamespace] == namespace && (state == StateFailing || state == StateStuck) {
			left++
		}
	}
	if left < mostLeft {
		return nil
	}
	why := fmt.Sprintf("%d clusters of namespace %s are gone, and their keys could not be removed", left, namespace)
	return &fault.Terminal{Finding: reason.StoreRecordFailed.In("left").Of(why, k.Namespace, v1beta1.LabelNote)}
}

// mend brings the ConfigMap that has the note's name to what it must be, if it is a note
// about this cluster.
func (k *Keeper) mend(ctx context.Context, note Note, wanted *corev1.ConfigMap) error {
	var seen corev1.ConfigMap
	name := "ConfigMap " + wanted.Namespace + "/" + wanted.Name
	switch err := k.Live.Get(ctx, client.ObjectKeyFromObject(wanted), &seen); {
	case apierrors.IsNotFound(err):
		return &fault.Wait{For: name + ", which just went"}
	case err != nil:
		return fmt.Errorf("read %s: %w", name, err)
	case seen.Labels[v1beta1.LabelNote] != string(note.UID) && seen.Data[keyUID] != string(note.UID):
		return fault.Conflict(name)
	case seen.DeletionTimestamp != nil:
		return &fault.Wait{For: name + " to be gone"}
	case says(&seen, note):
		return nil
	}
	changed := seen.DeepCopy()
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	changed.Labels[v1beta1.LabelNote] = string(note.UID)
	changed.Data = wanted.Data
	return k.Writer.Edit(ctx, &seen, changed)
}

// says reports whether a ConfigMap is the note.
func says(kept *corev1.ConfigMap, note Note) bool {
	have, err := ParseNote(kept)
	return err == nil && have == note
}
