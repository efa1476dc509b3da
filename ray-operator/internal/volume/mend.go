package volume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Mend brings a claim of an owner, which the cache may not show yet, to what is wanted. That there is none is success.
// Errors: Wait where a former owner's is yet to go, Terminal (VolumeNotReady) where it is somebody else's, else the API server's.
func Mend(ctx context.Context, writer *kube.Writer, wanted *corev1.PersistentVolumeClaim, owner metav1.OwnerReference) error {
	found := &corev1.PersistentVolumeClaim{}
	switch err := writer.Live.Get(ctx, client.ObjectKeyFromObject(wanted), found); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read claim %s: %w", wanted.Name, err)
	}
	switch PresenceOf(found, wanted, owner) {
	case reconcile.Foreign:
		object := "PersistentVolumeClaim " + wanted.Name
		return &fault.Terminal{Finding: reason.VolumeNotReady.In("taken").Of(object+" exists already, and is not of this object", object)}
	case reconcile.Terminating:
		return &fault.Wait{For: "claim " + wanted.Name + " to be gone"}
	case reconcile.Absent, reconcile.Ours:
	}
	if mended := Mended(found, wanted); mended != nil {
		return writer.Mend(ctx, found, mended)
	}
	return nil
}
