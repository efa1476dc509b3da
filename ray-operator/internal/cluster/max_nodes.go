package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
)

// limitNodes keeps what is made within the cluster's maximum, whatever the autoscaler wants: groups of high priority
// grow first. A maximum below what is there takes nobody away: workers go when they are idle. A group that is rolled
// keeps its places.
func limitNodes(cluster *v1beta1.ComputeCluster, sizes map[string]Size) {
	room, limited := nodesLeft(cluster, sizes, func(size Size) int {
		if size.Rolled {
			return max(size.Replicas, size.Staying)
		}
		return size.Staying
	})
	if !limited {
		return
	}
	for _, group := range byPriority(cluster) {
		size, hosts := sizes[group.Name], pod.Hosts(group)
		more := size.Replicas - size.Staying
		if more <= 0 || ptr.Deref(group.Suspend, false) || size.Rolled {
			continue
		}
		if admitted := max(0, room) / hosts; admitted < more {
			more = admitted
			size.Replicas, size.Begins = size.Staying+more, false
			size.Reason = fmt.Sprintf("maximum of %d workers of the cluster", *cluster.Spec.Autoscaling.MaxNodes)
			sizes[group.Name] = size
		}
		room -= more * hosts
	}
}

// nodesLeft returns how many more workers the cluster's maximum allows than groups have of them, false where there is
// none.
func nodesLeft(cluster *v1beta1.ComputeCluster, sizes map[string]Size, of func(Size) int) (int, bool) {
	spec := cluster.Spec.Autoscaling
	if spec == nil || spec.MaxNodes == nil {
		return 0, false
	}
	room := int(*spec.MaxNodes)
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		room -= of(sizes[group.Name]) * pod.Hosts(group)
	}
	return room, true
}

// byPriority returns a cluster's groups, those of high priority first.
func byPriority(cluster *v1beta1.ComputeCluster) []*v1beta1.WorkerGroup {
	var all []*v1beta1.WorkerGroup
	for i := range cluster.Spec.WorkerGroups {
		all = append(all, &cluster.Spec.WorkerGroups[i])
	}
	slices.SortStableFunc(all, func(a, b *v1beta1.WorkerGroup) int { return cmp.Compare(priorityOf(b), priorityOf(a)) })
	return all
}

// priorityOf returns a group's priority.
func priorityOf(group *v1beta1.WorkerGroup) int {
	if group.Priority == nil {
		return 0
	}
	return int(*group.Priority)
}
