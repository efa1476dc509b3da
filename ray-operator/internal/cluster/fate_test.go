package cluster_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
)

// TestEventsSayWhy: once a pod is replaced its status is gone, so the event tells its fate.
func TestEventsSayWhy(t *testing.T) {
	const lost = " is lost, and with it its Ray session: epoch 2 begins with a new head and fresh workers: "
	outOfMemory := func(p *corev1.Pod) {
		ended(time.Minute)(p)
		p.Status.Conditions = nil
		p.Status.ContainerStatuses[0].Started = new(bool)
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode = 137
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated.Reason = "OOMKilled"
	}
	head := given(1).Pods[0].Name
	for name, test := range map[string]struct {
		seen cluster.Seen
		want string
	}{
		"head evicted": {
			given(1, pods(0, failed), pods(0, func(p *corev1.Pod) { p.Status.Message = "The node was low on resource: memory" })),
			"head pod " + head + lost + "was evicted from node node-1: The node was low on resource: memory. " +
				"Set requests equal to limits for memory, so that it is not evicted first",
		},
		"head out of memory": {
			given(1, pods(0, outOfMemory)),
			"head pod " + head + lost + "container ray ran out of memory at its limit of 4Gi. Raise memory in size or the template",
		},
		"head answers again": {given(1, pods(0, ended(time.Minute))), "head pod " + head + lost + "its Ray container ended"},
		"head deleted":       {given(1, pods(0, leaving)), "head pod " + head + lost + "it was deleted"},
		"head gone":          {given(1, without(0)), "head pod of the former epoch" + lost + "it is not there any more"},
		"head of another UID": {
			given(1, pods(0, func(p *corev1.Pod) { p.UID = "other" })), "head pod " + head + lost + "another pod has taken its place",
		},
		"worker finished": {
			given(1, pods(1, func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Preempting" })),
			"worker pod " + given(1).Pods[1].Name + " failed and is replaced: was preempted on node node-1: by the kubelet, for a critical pod. " +
				"Give it a higher priority with podDefaults.priorityClassName",
		},
	} {
		plan := decide(demo(), test.seen)
		event := plan.Began
		if event == nil && len(plan.Delete) == 1 {
			event = plan.Delete[0].Event
		}
		if event == nil || event.Finding.Text != test.want {
			t.Errorf("%s: told as\n  %+v\nwant\n  %s", name, event, test.want)
		}
	}
}
