package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/volume"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// claimEventsAfter is how old a claim is when its events are read: most are bound before.
	claimEventsAfter = 5 * time.Second
	// claimLook is how soon to look again at a claim that is not as it must be. No watch tells of one that a user names, nor of
	// the events of any.
	claimLook = 5 * time.Second
)

func ownerOf(cluster *v1beta1.ComputeCluster) metav1.OwnerReference {
	return *metav1.NewControllerRef(cluster, v1beta1.GroupVersion.WithKind(kindName))
}

// seeVolumes looks at the claims of the cluster's shared volumes. Those that users name are in no cache, and matter where there
// may be pods.
func (o observer) seeVolumes(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	now := o.clock.Now()
	for i := range cluster.Spec.SharedVolumes {
		given := &cluster.Spec.SharedVolumes[i]
		one := volume.Seen{Volume: given, Name: pod.SharedClaim(cluster, given), Wanted: desired.SharedClaim(cluster, given)}
		if one.Wanted == nil && ptr.Deref(cluster.Spec.Suspend, false) {
			continue
		}
		var err error
		if one.Found, err = o.readClaim(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: one.Name}, one.Wanted == nil, now); err != nil {
			return err
		}
		if one.IsPending() && now.Sub(one.Found.CreationTimestamp.Time) >= claimEventsAfter {
			if one.Events, _, err = o.podEvents.Of(one.Found, now, listEvents(ctx, o.live, one.Found)); err != nil {
				return err
			}
		}
		seen.Volumes = append(seen.Volumes, one)
	}
	return nil
}

// readClaim returns a claim of a name, nil for none.
func (o observer) readClaim(ctx context.Context, name types.NamespacedName, isGiven bool, now time.Time) (*corev1.PersistentVolumeClaim, error) {
	read := func(reader client.Reader) (*corev1.PersistentVolumeClaim, error) {
		claim := &corev1.PersistentVolumeClaim{}
		err := reader.Get(ctx, name, claim, client.UnsafeDisableDeepCopy)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("read claim %s: %w", name, err)
		case err != nil:
			return nil, nil //nolint:nilnil // there is none, which is no error
		}
		return claim, nil
	}
	if !isGiven {
		return read(o.client)
	}
	return o.claims.Of(name, now, func() (*corev1.PersistentVolumeClaim, error) { return read(o.live) })
}

// hasFormerVolume reports whether a claim of ours still belongs to a former cluster of the name, with which it goes.
func hasFormerVolume(s situation) bool {
	for i := range s.seen.Volumes {
		if of := &s.seen.Volumes[i]; of.Wanted != nil && of.Found != nil && kube.IsPredecessors(of.Found, ownerOf(s.cluster)) {
			return true
		}
	}
	return false
}

// volumeChanges returns what to change of claims of the cluster's that are there.
func volumeChanges(s situation) (changes []reconcile.FixtureChange) {
	for i := range s.seen.Volumes {
		of := &s.seen.Volumes[i]
		if of.Wanted == nil || volume.PresenceOf(of.Found, of.Wanted, ownerOf(s.cluster)) != reconcile.Ours {
			continue
		}
		if mended := volume.Mended(of.Found, of.Wanted); mended != nil {
			changes = append(changes, reconcile.FixtureChange{Act: reconcile.Mend, Kind: "claim " + of.Name, Wanted: mended, Seen: of.Found})
		}
	}
	return changes
}

// planVolumes plans the claims of shared volumes that are missing, and finds out why pods cannot mount one. Where no pod could
// start with it, none is made.
func planVolumes(p *planner) {
	isMany := len(p.cluster.Spec.WorkerGroups) > 0
	for i := range p.seen.Volumes {
		of := &p.seen.Volumes[i]
		if of.Wanted != nil {
			if presence := volume.PresenceOf(of.Found, of.Wanted, ownerOf(p.cluster)); presence == reconcile.Absent || presence == reconcile.Foreign {
				p.VolumeClaims = append(p.VolumeClaims, of.Wanted) // where it is somebody else's, making it fails with the reason
				continue
			}
		}
		if of.IsPending() {
			p.wakeIn(claimLook)
		}
		obstacle := of.Obstacle(isMany, p.now)
		if obstacle == nil {
			continue
		}
		p.wakeIn(claimLook)
		if p.Unmounted == nil || obstacle.IsFinal && p.Held == nil {
			p.Unmounted = &obstacle.Finding
		}
		if obstacle.IsFinal && p.Held == nil {
			p.Held = &obstacle.Finding
		}
	}
}

// findUnmounted returns why pods cannot mount a shared volume, nil for no reason.
func findUnmounted(stalled, planned *reason.Finding) *reason.Finding {
	if stalled != nil && stalled.Code == reason.VolumeNotReady.Code {
		return stalled
	}
	return planned
}

// makeClaim makes a claim of a shared volume, or finds it made.
func (a applier) makeClaim(ctx context.Context, cluster *v1beta1.ComputeCluster, claim *corev1.PersistentVolumeClaim) error {
	made, err := a.writer.CreateUnowned(ctx, claim)
	if err != nil || made {
		return err
	}
	return volume.Mend(ctx, a.writer, claim, ownerOf(cluster))
}

// changeClaims changes claims of shared volumes. Pods go on with one that may not grow.
func (a applier) changeClaims(ctx context.Context, plan Plan, outcome *Outcome) error {
	errs := kube.Batches(len(plan.VolumeChanges), func(i int) error { return plan.VolumeChanges[i].Write(ctx, a.writer) })
	err := sumErrors(errs)
	if fault.Refused(err) {
		outcome.Ungrown, err = err, nil
	}
	return err
}
