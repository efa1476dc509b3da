package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/scaler"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestDecide_KeepsWithinMaxNodes: whatever the autoscaler says, and whatever new groups are to begin with.
func TestDecide_KeepsWithinMaxNodes(t *testing.T) {
	for name, test := range map[string]struct {
		maxNodes, cpu, gpu int32
		edit               func(*v1beta1.ComputeCluster, *cluster.Seen)
		want               string
	}{
		"an autoscaler that wants more":            {maxNodes: 4, cpu: 10, gpu: 0, want: "cpu 2"},
		"groups of priority first":                 {maxNodes: 5, cpu: 10, gpu: 9, want: "gpu 3"},
		"in whole replicas":                        {maxNodes: 5, gpu: 9, edit: twoHosts, want: "gpu 2"},
		"nobody goes":                              {maxNodes: 1, cpu: 10, want: ""},
		"what new groups are to begin with":        {maxNodes: 3, cpu: 2, edit: newGroup, want: "gpu 1"},
		"a minimum":                                {maxNodes: 3, cpu: 2, edit: withMinimum, want: "gpu 1"},
		"no maximum":                               {maxNodes: 0, cpu: 4, gpu: 1, want: "cpu 2, gpu 1"},
		"a group that is rolled keeps its places":  {maxNodes: 2, cpu: 2, gpu: 1, edit: rolledAway, want: ""},
		"those that are given back leave room":     {maxNodes: 2, gpu: 1, edit: givenBack, want: "gpu 1"},
		"the autoscaler is away: no growth at all": {maxNodes: 4, edit: func(_ *v1beta1.ComputeCluster, s *cluster.Seen) { s.Scaler.Connected = false }, want: ""},
	} {
		of := elastic(func(c *v1beta1.ComputeCluster) {
			gpu, most, high := testkit.Group("gpu", 0), int32(10), int32(1)
			gpu.MaxReplicas, gpu.Priority = &most, &high
			c.Spec.WorkerGroups = append(c.Spec.WorkerGroups, gpu)
			if test.maxNodes > 0 {
				c.Spec.Autoscaling.MaxNodes = &test.maxNodes
			}
		})
		seen := elasticPods(of, 2)
		for _, worker := range seen.Pods[1:] {
			worker.Annotations[v1beta1.AnnotationIntent] = "v9-later"
		}
		seen.Record.Scaled["gpu"] = cluster.RecordedSize{0}
		seen.Scaler = scaler.State{Heard: true, Connected: true, Decision: protocol.Decision{
			Targets: []protocol.Target{{Group: "cpu", Replicas: int(test.cpu)}, {Group: "gpu", Replicas: int(test.gpu)}},
		}}
		if test.edit != nil {
			test.edit(of, &seen)
		}
		plan := decide(of, seen)
		var made []string
		for _, filling := range plan.Create {
			made = append(made, fmt.Sprintf("%s %d", filling.Group, len(filling.Pods)))
		}
		if got := strings.Join(made, ", "); got != test.want || len(plan.Exits) > 0 {
			t.Errorf("%s: it makes %q, want %q: %s", name, got, test.want, plan)
		}
	}
}

func rolledAway(of *v1beta1.ComputeCluster, seen *cluster.Seen) {
	strategy(v1beta1.ClusterUpgradeRollingWorkers, nil)(&of.Spec)
	exiting("Rolling", time.Minute, time.Minute)(seen.Pods[2].Pod)
	seen.Record.Roll = cluster.Roll{Group: "cpu", Size: 2}
}

func twoHosts(of *v1beta1.ComputeCluster, _ *cluster.Seen) {
	of.Spec.WorkerGroups[1].HostsPerReplica = 2
}

func newGroup(of *v1beta1.ComputeCluster, seen *cluster.Seen) {
	of.Spec.WorkerGroups[1].Replicas = new(int32(4))
	delete(seen.Record.Scaled, "gpu")
}

func withMinimum(of *v1beta1.ComputeCluster, seen *cluster.Seen) {
	three := int32(3)
	of.Spec.WorkerGroups[1].MinReplicas, of.Spec.WorkerGroups[1].Replicas = &three, &three
	seen.Record.Scaled["gpu"] = cluster.RecordedSize{3}
}

func givenBack(_ *v1beta1.ComputeCluster, seen *cluster.Seen) {
	seen.Scaler.Decision.Removals = []protocol.Removal{{Pod: string(seen.Pods[2].UID), Node: "00", Drained: true}}
	seen.Scaler.Decision.Targets[0].Replicas = 1
}
