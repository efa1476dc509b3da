package pod

import (
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// LabelGPUDomain is Ray's label for hosts whose GPUs share one NVLink fabric. Its
// placement groups pack by it from Ray 2.56 on; earlier releases keep it and do nothing.
const LabelGPUDomain = "ray.io/gpu-domain"

// Hosts is how many workers make a replica of a group, at least 1.
func Hosts(group *v1beta1.WorkerGroup) int { return int(max(group.HostsPerReplica, 1)) }

// Replicas returns how many replicas a group's spec names: its own number, or where it gives none its minimum with
// autoscaling, and one within its bounds without.
func Replicas(cluster *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup) int {
	least := 0
	if group.MinReplicas != nil {
		least = int(*group.MinReplicas)
	}
	switch {
	case group.Replicas != nil:
		return int(*group.Replicas)
	case cluster.Spec.Autoscaling != nil:
		return least
	case group.MaxReplicas != nil:
		return min(max(1, least), int(*group.MaxReplicas))
	default:
		return max(1, least)
	}
}

// replica and host are the pod's place in its group: replica r holds the slots from
// r × hosts on.
func (d *draft) replica() int { return d.at.Slot / Hosts(d.group) }
func (d *draft) host() int    { return d.at.Slot % Hosts(d.group) }

// replicaName is what Ray calls the TPU slice or the GPU domain.
func (d *draft) replicaName() string {
	return naming.Replica(d.cluster.Name, d.cluster.UID, d.group.Name, d.replica())
}

// hosts lets the hosts of a replica know and find each other: which of them each is, a
// DNS name for each, and the list of all. The names are the pods' own and so unique; they
// are short enough that 1024 of the longest fit into one variable of 128 KiB.
func hosts(d *draft) {
	if d.isHead() || Hosts(d.group) == 1 {
		return
	}
	d.pod.Labels[v1beta1.LabelReplica] = strconv.Itoa(d.replica())
	d.pod.Labels[v1beta1.LabelHost] = strconv.Itoa(d.host())
	d.pod.Spec.Hostname, d.pod.Spec.Subdomain = d.pod.Name, naming.HostsService(d.cluster.Name)
	d.offer("HELIOSTAT_REPLICA_INDEX", strconv.Itoa(d.replica()))
	d.offer("HELIOSTAT_HOST_INDEX", strconv.Itoa(d.host()))
	d.offer("HELIOSTAT_REPLICA_HOSTNAMES", strings.Join(hostnames(d), ","))
	if devices(d.ray)[naming.ResourceTPU] > 0 {
		d.offer("TPU_WORKER_HOSTNAMES", "$(HELIOSTAT_REPLICA_HOSTNAMES)")
	}
}

// hostnames of all hosts of the pod's replica, in the order of their numbers, as they
// resolve in the pod's namespace.
func hostnames(d *draft) []string {
	names, at := make([]string, Hosts(d.group)), d.at
	for host := range names {
		at.Slot = d.at.Slot - d.host() + host
		names[host] = naming.Pod(d.cluster.Name, d.cluster.UID, at) + "." + naming.HostsService(d.cluster.Name)
	}
	return names
}

// slice names a worker's TPU slice. libtpu reads which of the slice's hosts it runs on,
// and Ray makes labels and resources of both, from which it places work on one slice.
func slice(d *draft) {
	if d.isHead() || devices(d.ray)[naming.ResourceTPU] == 0 {
		return
	}
	d.offer("TPU_NAME", d.replicaName())
	d.offer("TPU_WORKER_ID", strconv.Itoa(d.host()))
	for _, one := range []struct{ variable, value string }{{variablePodType, d.podType()}, {variableTopology, d.topology()}} {
		if one.value != "" {
			d.offer(one.variable, one.value)
		}
	}
}

// rayLabels are the labels that the Ray node is started with: what the node selector tells of the machine, and the
// user's. The hosts of a replica with GPUs share a domain: that is what such a replica is for.
func rayLabels(d *draft) map[string]string {
	labels := d.foretold()
	if !d.isHead() && Hosts(d.group) > 1 && devices(d.ray)[naming.ResourceGPU] > 0 {
		labels[LabelGPUDomain] = d.replicaName()
	}
	return merged(labels, d.node.Labels)
}
