package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/volume"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// claimEventsAfter is how old a claim is when its events are read: most are bound before.
const claimEventsAfter = 5 * time.Second

func ownerOf(cluster *v1beta1.ComputeCluster) metav1.OwnerReference {
	return *metav1.NewControllerRef(cluster, v1beta1.GroupVersion.WithKind(kindName))
}

// seeVolumes looks at the claims of the cluster's shared volumes. Those that users name are in no cache, and matter where there
// may be pods.
func (o observer) seeVolumes(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	now := o.clock.Now()
	for i := range cluster.Spec.SharedVolumes {
		given := &cluster.Spec.SharedVolumes[i]
		one := volume.Seen{Volume: given, Name: pod.SharedClaim(cluster, given), Wanted: desired.SharedClaim(cluster, given), Owner: ownerOf(cluster)}
		owner := naming.Controller(cluster)
		one.IsJobs = owner != nil && one.Name == naming.JobClaim(owner.UID, given.Name)
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

// volumeChanges returns what to change of claims of the cluster's that are there.
func volumeChanges(s situation) (changes []volume.Change) {
	for i := range s.seen.Volumes {
		if of := &s.seen.Volumes[i]; of.Wanted != nil && volume.PresenceOf(of.Found, of.Owner) == reconcile.Ours {
			changes = append(changes, volume.Changes(of.Found, of.Wanted)...)
		}
	}
	return changes
}

// judgeVolumes finds out why pods cannot mount a shared volume. It comes first: nothing that runs may end for a volume with which no
// pod could start.
func judgeVolumes(p *planner) {
	isMany := len(p.cluster.Spec.WorkerGroups) > 0
	for i := range p.seen.Volumes {
		of := &p.seen.Volumes[i]
		if of.IsMissing() {
			continue
		}
		if of.IsPending() {
			p.wakeIn(lookAgain(p.now.Sub(of.Found.CreationTimestamp.Time)))
		}
		obstacle := of.Obstacle(isMany, p.now)
		if obstacle == nil {
			continue
		}
		p.wakeIn(lookAgain(sinceUnmounted(p.situation)))
		if p.Unmounted == nil {
			p.Unmounted = &obstacle.Finding
		}
		if obstacle.IsFinal && p.unmountable == nil {
			p.unmountable, p.Unmounted = &obstacle.Finding, &obstacle.Finding
		}
	}
}

// lookAgain returns how soon to look again at a claim that has not been as it must be for some time. No watch tells of one that a user
// names, nor of the events of any.
func lookAgain(since time.Duration) time.Duration {
	if since < stuckAfter {
		return waitingLook
	}
	return stuckLook
}

// sinceUnmounted returns for how long people have been told that pods cannot mount a shared volume.
func sinceUnmounted(s situation) time.Duration {
	told := meta.FindStatusCondition(s.cluster.Status.Conditions, v1beta1.ConditionVolumeNotReady)
	if told == nil {
		return 0
	}
	return s.now.Sub(told.LastTransitionTime.Time)
}

// hasAllVolumes reports whether all claims of shared volumes are there, and pods can start with them.
func (p *planner) hasAllVolumes() bool {
	return p.unmountable == nil && !slices.ContainsFunc(p.seen.Volumes, func(of volume.Seen) bool { return of.IsMissing() })
}

// planVolumes plans the claims of shared volumes that are missing. Where somebody else's has the name, making it fails with the
// reason. Where no pod could start with a volume, none is made.
func planVolumes(p *planner) {
	for i := range p.seen.Volumes {
		if of := &p.seen.Volumes[i]; of.IsMissing() {
			p.VolumeClaims = append(p.VolumeClaims, of.Wanted)
		}
	}
	p.Held = cmp.Or(p.Held, p.unmountable)
}

// findUnmounted returns why pods cannot mount a shared volume, nil for no reason, and whether a claim of somebody else's is why.
func findUnmounted(plan Plan, outcome Outcome) (unmounted *reason.Finding, isTaken bool) {
	if finding, is := fault.Finding(outcome.Unmade); is {
		return &finding, true
	}
	if fault.Refused(outcome.Unmade) {
		return new(diagnose.Refusal("the claim of a shared volume", outcome.Unmade)), false
	}
	return plan.Unmounted, false
}

// makeClaims makes the claims of shared volumes, or finds them made. Where one cannot be made, no pod is: it could not start.
func (a applier) makeClaims(ctx context.Context, cluster *v1beta1.ComputeCluster, plan *Plan, outcome *Outcome) {
	refused := make([]*reason.Finding, len(plan.VolumeClaims))
	errs := kube.AtOnce(len(plan.VolumeClaims), func(i int) (err error) {
		refused[i], err = volume.Make(ctx, a.writer, plan.VolumeClaims[i], ownerOf(cluster))
		return err
	})
	for _, finding := range refused {
		outcome.Unchanged = volume.Both(outcome.Unchanged, finding)
	}
	if outcome.Unmade = errors.Join(errs...); outcome.Unmade != nil {
		plan.NoteHead = plan.NoteHead && plan.Head == nil
		plan.Head, plan.Create = nil, nil
	}
}

// changeClaims changes claims of shared volumes. Pods go on with one that must stay as it is.
func (a applier) changeClaims(ctx context.Context, plan Plan, outcome *Outcome) error {
	refused, err := volume.ApplyChanges(ctx, a.writer, plan.VolumeChanges)
	outcome.Unchanged = volume.Both(outcome.Unchanged, refused)
	return err
}
