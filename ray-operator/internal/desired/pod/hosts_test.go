package pod_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// sliced is a cluster with a group of TPU slices of four hosts.
func sliced() *v1beta1.ComputeCluster {
	group := testkit.Sized(testkit.Group("tpu", 2), "google.com/tpu", "4")
	group.HostsPerReplica = 4
	return testkit.Cluster("demo", group)
}

func at(cluster *v1beta1.ComputeCluster, slot int) *corev1.Pod {
	return pod.Worker(cluster, &cluster.Spec.WorkerGroups[0], slot, 2)
}

// TestHostsFindEachOther: all hosts of a replica are given the same list, in which each
// finds the name that it has in DNS under its own number; and no two replicas share
// anything.
func TestHostsFindEachOther(t *testing.T) {
	cluster, lists, names := sliced(), map[string]string{}, map[string]string{}
	for slot := range 8 {
		built := at(cluster, slot)
		env, replica := variables(t, built), fmt.Sprint(slot/4)
		list := strings.Split(env["HELIOSTAT_REPLICA_HOSTNAMES"], ",")
		if len(list) != 4 || list[slot%4] != built.Spec.Hostname+"."+built.Spec.Subdomain {
			t.Errorf("slot %d is %s.%s and not in its place in %q", slot, built.Spec.Hostname, built.Spec.Subdomain, list)
		}
		if built.Spec.Hostname != built.Name || built.Spec.Subdomain != naming.HostsService("demo") {
			t.Errorf("%s is %s.%s", built.Name, built.Spec.Hostname, built.Spec.Subdomain)
		}
		for have, want := range map[string]string{
			built.Labels[v1beta1.LabelReplica]: replica, env["HELIOSTAT_REPLICA_INDEX"]: replica,
			"host " + built.Labels[v1beta1.LabelHost]:     "host " + fmt.Sprint(slot%4),
			"index " + env["HELIOSTAT_HOST_INDEX"]:        "index " + fmt.Sprint(slot%4),
			"worker " + env["TPU_WORKER_ID"]:              "worker " + fmt.Sprint(slot%4),
			"hostnames of " + env["TPU_WORKER_HOSTNAMES"]: "hostnames of $(HELIOSTAT_REPLICA_HOSTNAMES)",
			"slot " + built.Labels[v1beta1.LabelSlot]:     "slot " + fmt.Sprint(slot),
			"labels " + argument(t, built, "labels"):      "labels ",
			"slice " + env["TPU_NAME"]:                    "slice " + naming.Replica("demo", "demo-uid", "tpu", slot/4),
		} {
			if have != want {
				t.Errorf("slot %d: %s, want %s", slot, have, want)
			}
		}
		if was, seen := lists[replica]; seen && was != env["HELIOSTAT_REPLICA_HOSTNAMES"] {
			t.Errorf("the hosts of replica %s were told %s and %s", replica, was, env["HELIOSTAT_REPLICA_HOSTNAMES"])
		}
		lists[replica], names[replica] = env["HELIOSTAT_REPLICA_HOSTNAMES"], env["TPU_NAME"]
	}
	if lists["0"] == lists["1"] || names["0"] == names["1"] {
		t.Errorf("two replicas share hosts or a name: %v, %v", lists, names)
	}
}

// TestTheHostsOfANewEpochAreOthers, so that no address of the former is taken for one.
func TestTheHostsOfANewEpochAreOthers(t *testing.T) {
	cluster := sliced()
	older, newer := pod.Worker(cluster, &cluster.Spec.WorkerGroups[0], 5, 1), pod.Worker(cluster, &cluster.Spec.WorkerGroups[0], 5, 2)
	if list := variables(t, newer)["HELIOSTAT_REPLICA_HOSTNAMES"]; older.Spec.Hostname == newer.Spec.Hostname || strings.Contains(list, older.Spec.Hostname) {
		t.Errorf("%s of the former epoch is in %s", older.Spec.Hostname, list)
	}
}

// TestLongestHosts: the list of the largest replica with the longest names fits into
// what Linux takes as one variable, 128 KiB.
func TestLongestHosts(t *testing.T) {
	cluster := sliced()
	cluster.Name = strings.Repeat("c", naming.MaxCluster)
	cluster.Spec.WorkerGroups[0].Name, cluster.Spec.WorkerGroups[0].HostsPerReplica = strings.Repeat("g", naming.MaxGroup), 1024
	env := variables(t, at(cluster, 10000))
	if variable := "HELIOSTAT_REPLICA_HOSTNAMES=" + env["HELIOSTAT_REPLICA_HOSTNAMES"]; len(variable) >= 128<<10 || strings.Count(variable, ",") != 1023 {
		t.Errorf("%d hosts in %d bytes", strings.Count(variable, ",")+1, len(variable))
	}
	if len(env["TPU_NAME"]) > 63 {
		t.Errorf("%s is too long for a label", env["TPU_NAME"])
	}
}

// TestWhoGetsWhat: names of a slice for TPUs, a domain for GPUs of several hosts, and
// nothing for anyone else.
func TestWhoGetsWhat(t *testing.T) {
	for name, test := range map[string]struct {
		device string
		hosts  int32
		want   string
		labels string
	}{
		"cpu, one host":    {device: "cpu", hosts: 1},
		"hosts not said":   {device: "cpu"},
		"cpu, two hosts":   {device: "cpu", hosts: 2, want: "HELIOSTAT_HOST_INDEX HELIOSTAT_REPLICA_HOSTNAMES HELIOSTAT_REPLICA_INDEX"},
		"TPU, one host":    {device: "google.com/tpu", hosts: 1, want: "TPU_NAME TPU_WORKER_ID"},
		"GPU, one host":    {device: "nvidia.com/gpu", hosts: 1},
		"GPU, two hosts":   {device: "nvidia.com/gpu", hosts: 2, want: "HELIOSTAT_HOST_INDEX HELIOSTAT_REPLICA_HOSTNAMES HELIOSTAT_REPLICA_INDEX", labels: "ray.io/gpu-domain=" + naming.Replica("demo", "demo-uid", "g", 1)},
		"other, two hosts": {device: "example.com/fpga", hosts: 2, want: "HELIOSTAT_HOST_INDEX HELIOSTAT_REPLICA_HOSTNAMES HELIOSTAT_REPLICA_INDEX"},
	} {
		t.Run(name, func(t *testing.T) {
			group := testkit.Sized(testkit.Group("g", 1), test.device, "1")
			group.HostsPerReplica = test.hosts
			built := at(testkit.Cluster("demo", group), 3)
			var have []string
			env := variables(t, built)
			for _, name := range []string{"HELIOSTAT_HOST_INDEX", "HELIOSTAT_REPLICA_HOSTNAMES", "HELIOSTAT_REPLICA_INDEX", "TPU_NAME", "TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"} {
				if _, there := env[name]; there {
					have = append(have, name)
				}
			}
			if strings.Join(have, " ") != test.want || argument(t, built, "labels") != test.labels {
				t.Errorf("variables %q, want %q; labels %q, want %q", have, test.want, argument(t, built, "labels"), test.labels)
			}
			if together := test.hosts > 1; (built.Spec.Hostname != "") != together || (built.Labels[v1beta1.LabelReplica] != "") != together {
				t.Errorf("host name %q, labels %v", built.Spec.Hostname, built.Labels)
			}
		})
	}
	cluster := testkit.Cluster("demo")
	cluster.Spec.Head.Size = testkit.Resources("google.com/tpu", "4", "nvidia.com/gpu", "1")
	head := pod.Head(cluster, 1)
	if _, there := variables(t, head)["TPU_NAME"]; there || argument(t, head, "labels") != "" {
		t.Errorf("a head is part of a slice: %v", variables(t, head))
	}
}

// TestDomainBesideOwnLabels: the user's labels of the Ray node stay beside ours.
func TestDomainBesideOwnLabels(t *testing.T) {
	group := testkit.Sized(testkit.Group("g", 1), "nvidia.com/mig-1g.5gb", "1")
	group.HostsPerReplica, group.Labels = 2, map[string]string{"market": "spot", "a": "b"}
	want := "a=b,market=spot,ray.io/gpu-domain=" + naming.Replica("demo", "demo-uid", "g", 0)
	if have := argument(t, at(testkit.Cluster("demo", group), 1), "labels"); have != want {
		t.Errorf("labels %s, want %s", have, want)
	}
}

// TestNumbersOfAGroup: defaults, and what the spec says.
func TestNumbersOfAGroup(t *testing.T) {
	none, five := int32(0), int32(5)
	for _, test := range []struct {
		group v1beta1.WorkerGroup
		hosts int
		drain int32
	}{
		{v1beta1.WorkerGroup{}, 1, 300},
		{v1beta1.WorkerGroup{HostsPerReplica: 1, DrainSeconds: &none}, 1, 0},
		{v1beta1.WorkerGroup{HostsPerReplica: 16, DrainSeconds: &five}, 16, 5},
	} {
		if hosts, drain := pod.Hosts(&test.group), pod.DrainSeconds(&test.group); hosts != test.hosts || drain != test.drain {
			t.Errorf("%d hosts and %d s, want %d and %d", hosts, drain, test.hosts, test.drain)
		}
	}
}
