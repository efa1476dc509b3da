package scaler

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Group is a group of workers.
type Group struct {
	*v1beta1.WorkerGroup
	// Bounds are those of its size, both the same where the size must stay.
	Bounds   scale.Bounds
	Priority int
}

// Worker is a worker's pod.
type Worker struct {
	*corev1.Pod
	Group *v1beta1.WorkerGroup
	Slot  int
	// IsLeaving: it is on its way out.
	IsReady, IsLeaving bool
	// Architecture is that of its node, Events are about it: by these it is found why it does not start.
	Architecture string
	Events       []corev1.Event
}

// Snapshot returns what the autoscaler beside a head must know: the bounds and shapes of a cluster with autoscaling, and the
// workers that are there. The cluster is the one that pods are built from.
func Snapshot(cluster *v1beta1.ComputeCluster, head *corev1.Pod, groups []Group, workers []Worker, now time.Time) *protocol.Snapshot {
	spec := cluster.Spec.Autoscaling
	all := protocol.Snapshot{Head: string(head.UID), Pace: decision.Pace(cmp.Or(spec.Pace, v1beta1.PaceDefault)), MaxNodes: int(ptr.Deref(spec.MaxNodes, 0))}
	for _, group := range groups {
		all.Groups = append(all.Groups, snapshotGroup(cluster, group))
	}
	for _, worker := range workers {
		hosts := pod.Hosts(worker.Group)
		one := protocol.Pod{
			UID: string(worker.UID), Group: worker.Group.Name, Replica: worker.Slot / hosts, Host: worker.Slot % hosts,
			Since: worker.CreationTimestamp.Time,
		}
		one.Stage, one.Why = worker.stage(now)
		all.Pods = append(all.Pods, one)
	}
	return &all
}

// snapshotGroup returns one group of a snapshot.
func snapshotGroup(cluster *v1beta1.ComputeCluster, group Group) protocol.Group {
	one := protocol.Group{
		Name: group.Name, Min: group.Bounds.Min, Max: group.Bounds.Max, Hosts: pod.Hosts(group.WorkerGroup), Priority: group.Priority,
		IdleTimeout:     secondsOr(group.IdleTimeoutSeconds, secondsOr(cluster.Spec.Autoscaling.IdleTimeoutSeconds, defaultIdle)),
		CapacityTimeout: secondsOr(group.CapacityTimeoutSeconds, 0),
		DetectsGPUs:     pod.DetectsGPUs(cluster, group.WorkerGroup), Suspended: ptr.Deref(group.Suspend, false),
	}
	one.Resources, one.Labels = pod.GroupShape(cluster, group.WorkerGroup)
	return one
}

// defaultIdle is the schema's default.
const defaultIdle = time.Minute

// secondsOr returns a time that is given in seconds, or the default.
func secondsOr(given *int32, otherwise time.Duration) time.Duration {
	if given == nil {
		return otherwise
	}
	return time.Duration(*given) * time.Second
}

// stage returns how far a worker has come, and what it waits for, or how it fails to start.
func (w Worker) stage(now time.Time) (protocol.Stage, string) {
	switch {
	case w.IsLeaving:
		return protocol.Leaving, ""
	case w.IsReady:
		return protocol.Ready, ""
	case w.Spec.NodeName == "":
		why := ""
		if finding, found := diagnose.Pod(w.Pod, nil, w.CreationTimestamp.Time); found {
			why = finding.Code
		}
		return protocol.Waiting, why
	default:
		finding, found := diagnose.PodOn(w.Architecture, w.Pod, w.Events, now)
		if found && finding.Severity() == reason.Warning {
			return protocol.Starting, finding.Code
		}
		return protocol.Starting, ""
	}
}
