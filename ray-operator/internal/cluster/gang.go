package cluster

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/gang"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// gangKind is how plans and people call the object by which a scheduler knows a gang.
const gangKind = "PodGroup"

// GangSeen is what is known of the object by which a cluster's scheduler knows its gang.
type GangSeen struct {
	Presence reconcile.Presence
	Object   *unstructured.Unstructured
	// Version is the one to write; empty where the API server has none that is known.
	Version string
	// Refused is why the API server does not show the object, nil if it does.
	Refused error
}

// seeGang reads the object, which no cache holds: the API server may come to know its kind later, or know it no more.
func (o observer) seeGang(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	kind, needed := gang.KindOf(cluster)
	if !needed {
		return nil
	}
	// Without versions the mapper would never look for one that a group gets later.
	mapping, err := o.groups.Client.RESTMapper().RESTMapping(kind.GroupKind, kind.Versions...)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the version of %s: %w", kind.GroupKind, err)
	}
	seen.Gang.Version = mapping.GroupVersionKind.Version
	object := kind.Empty(seen.Gang.Version)
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: naming.Gang(cluster.Name)}
	err = o.groups.Live.Get(ctx, key, object)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		seen.Gang.Version = ""
		return nil
	case fault.Refused(err):
		seen.Gang.Refused = err
		return nil
	}
	seen.Gang.Presence, err = presence(err, object, cluster)
	if err != nil {
		return fmt.Errorf("read %s %s: %w", gangKind, key, err)
	}
	seen.Gang.Object = object
	return nil
}

// gangOf returns what the cluster's pods are placed as.
func gangOf(s situation, sizes map[string]Size) gang.Gang {
	cluster := s.cluster
	members := map[string]int{}
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		size := sizes[group.Name].Replicas
		if isAutoscaled(cluster) {
			size = boundsOf(group).Min
		}
		if !ptr.Deref(group.Suspend, false) {
			members[group.Name] = size * pod.Hosts(group)
		}
	}
	return gang.Gang{Cluster: s.site.Sized(cluster), Members: members}
}

// joinGang returns a pod with what makes it one of the gang, where the queue has its quota.
func joinGang(s situation, sizes map[string]Size, made *corev1.Pod) *corev1.Pod {
	gangOf(s, sizes).Join(made)
	s.seen.Queue.Placements[kueue.PodSetOf(made.Labels[v1beta1.LabelGroup])].On(made)
	return made
}

// planGang plans the object, which is there before any pod with the size that the gang has now, and gone while there
// must be no pods.
func planGang(p *planner) {
	kind, needed := gang.KindOf(p.cluster)
	if !needed {
		return
	}
	seen := p.seen.Gang
	if p.Suspended {
		if seen.Presence == reconcile.Ours {
			p.Fixtures = append(p.Fixtures, reconcile.FixtureChange{Act: reconcile.Remove, Kind: gangKind, Seen: seen.Object})
		}
		return
	}
	if held := findGangObstacle(p.situation, kind); held != nil {
		p.Held = held
		p.wakeIn(reconcile.Recheck)
		return
	}
	wanted := gangOf(p.situation, p.Sizes).Object(seen.Version)
	switch {
	case seen.Presence == reconcile.Absent:
		p.Fixtures = append(p.Fixtures, reconcile.FixtureChange{Act: reconcile.Make, Kind: gangKind, Wanted: wanted})
	case gang.Holds(seen.Object, wanted):
	case !kind.CanResize(seen.Version):
		fixed := reason.GangFixed.Of(gangKind+" "+wanted.GetName(), gangOf(p.situation, p.Sizes).Size())
		p.GangFixed = &fixed
	default:
		p.Fixtures = append(p.Fixtures, reconcile.FixtureChange{Act: reconcile.Mend, Kind: gangKind, Wanted: wanted, Seen: seen.Object})
	}
}

// findGangObstacle returns why the object cannot be kept, nil if it can.
func findGangObstacle(s situation, kind gang.Kind) *reason.Finding {
	var finding reason.Finding
	seen, name := s.seen.Gang, s.cluster.Spec.Scheduler.Name
	switch {
	case seen.Refused != nil:
		finding = reason.SchedulerForbidden.Of(gangKind, kind.Group, seen.Refused.Error(), string(name))
	case seen.Version == "":
		finding = reason.SchedulerMissing.Of(gangKind, kind.Group, string(name))
	case seen.Presence == reconcile.Foreign:
		finding = reason.NameConflict.Of(gangKind + " " + naming.Gang(s.cluster.Name))
	default:
		return nil
	}
	return &finding
}
