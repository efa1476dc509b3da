package service

import (
	"encoding/json"
	"time"

	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// freeCluster suspends a cluster: its pods go with a short grace, which the garbage collector would
// not give them.
func (v *provisioner) freeCluster(cluster *Cluster) {
	if ptr.Deref(cluster.Spec.Suspend, false) || cluster.DeletionTimestamp != nil {
		return
	}
	wanted := cluster.DeepCopy()
	wanted.Spec.Suspend = new(true)
	v.change = append(v.change, Change{Seen: cluster.ComputeCluster, Wanted: wanted})
}

// removeVersions takes away what the service runs.
func (v *provisioner) removeVersions() {
	if !ownsClusters(v.service) {
		v.removeApplications()
		return
	}
	for _, version := range v.record.listVersions() {
		if cluster := v.seen.Clusters[version.Cluster]; cluster != nil {
			v.freeCluster(cluster)
		}
	}
	for _, cluster := range v.seen.Clusters {
		v.wakeIn(cluster.StrandsIn)
	}
}

// removeApplications takes the service's applications from a cluster that is not its own. The head knows the names of
// what was asked of it, so it is heard first.
func (v *provisioner) removeApplications() {
	active := v.states.active
	cluster, asked := active.cluster, v.record.Applications
	switch {
	case len(asked) == 0 || !canBeAsked(cluster) || ptr.Deref(cluster.Spec.Suspend, false):
	case !cluster.Heard || cluster.Answer.At.IsZero():
		v.addWant(cluster, nil)
	default:
		v.addWant(cluster, &services.Config{
			Digest: leaveDigest(asked), Applications: map[string]json.RawMessage{}, Drop: askedNames(asked, cluster, v.seen.Revisions),
			Options: optionsOf(active.revision, 100, cluster.Head),
		})
	}
}

// removeRetired lets clusters go that have no requests any more, once those that they had may have ended.
func (v *provisioner) removeRetired() {
	for _, retired := range v.record.Retiring {
		cluster, since := v.seen.Clusters[retired.Cluster], time.Unix(retired.At, 0)
		if retired.Held {
			v.askLast(cluster)
			continue
		}
		var left time.Duration
		if !retired.Unused {
			v.closeConnections(cluster, since)
			left = staysUntil(v.service, cluster, since, v.now, v.proxies.hasOpenPods(cluster)).Sub(v.now)
		}
		switch {
		case cluster.DeletionTimestamp != nil:
		case left > 0:
			v.wakeIn(left)
			v.askLast(cluster)
		default:
			v.removeCluster(cluster)
		}
	}
}

// removeCluster deletes a cluster, once it has no pods that may yet end by themselves.
func (v *provisioner) removeCluster(cluster *Cluster) {
	v.wakeIn(cluster.StrandsIn)
	if hasRemains(cluster) {
		v.freeCluster(cluster)
		return
	}
	v.provision.events = append(v.provision.events, leftBehind(cluster)...)
	v.discard = append(v.discard, cluster.ComputeCluster)
}

// leftBehind returns the events about pods of a cluster that are not waited for any more.
func leftBehind(cluster *Cluster) []telemetry.Event {
	var events []telemetry.Event
	for _, pod := range cluster.Stranded {
		command := reason.Command(reconcile.OffCommand(pod.Spec.NodeName))
		events = append(events, eventOf(reason.PodStranded.Of(pod.Name, cluster.Name, pod.Spec.NodeName, command), "LeaveBehind"))
	}
	return events
}
