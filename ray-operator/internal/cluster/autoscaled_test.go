package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/scaler"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestDecide_TakesWorkersOnlyWhileTheStreamIsUp: by the time that it breaks, they may work again.
func TestDecide_TakesWorkersOnlyWhileTheStreamIsUp(t *testing.T) {
	for name, test := range map[string]struct {
		heard, connected bool
		want             int
	}{
		"connected takes one":        {true, true, 1},
		"a broken stream takes none": {true, false, 0},
		"one never heard takes none": {false, true, 0},
	} {
		plan := decide(elastic(), given(1, func(s *cluster.Seen) {
			s.Record.Scaled = map[string]cluster.RecordedSize{"cpu": {2}}
			s.Scaler = scaler.State{Heard: test.heard, Connected: test.connected, Decision: protocol.Decision{
				Targets:  []protocol.Target{{Group: "cpu", Replicas: 1}},
				Removals: []protocol.Removal{{Pod: string(s.Pods[2].UID), Node: "00", Drained: true}},
			}}
		}))
		if len(plan.Delete) != test.want {
			t.Errorf("%s: it takes %d: %s", name, len(plan.Delete), plan)
		}
	}
}

// TestDecide_ReplacesLateWorkers: one that never joined goes, says why, and another comes in its place.
func TestDecide_ReplacesLateWorkers(t *testing.T) {
	broken := func(p *corev1.Pod) {
		p.Spec.NodeName = "n1"
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: v1beta1.ContainerRay, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}},
		}}}
	}
	of := elastic()
	seen := given(1, pods(2, broken), func(s *cluster.Seen) {
		s.Record.Scaled = map[string]cluster.RecordedSize{"cpu": {2}}
		s.Pods[0] = running(pod.OperatorImage{Image: "heliostat"}.Complete(pod.Head(of, 1), of), naming.Place{Epoch: 1})
		s.Record.HeadUID = s.Pods[0].UID
		s.Scaler = scaler.State{Heard: true, Connected: true, Decision: protocol.Decision{
			Targets:  []protocol.Target{{Group: "cpu", Replicas: 2}},
			Removals: []protocol.Removal{{Pod: string(s.Pods[2].UID), Reason: protocol.Late, Drained: true}},
		}}
	})
	plan := decide(of, seen)
	if len(plan.Delete) != 1 || len(plan.Create) != 1 || len(plan.Create[0].Pods) != 1 {
		t.Fatalf("it does %s", plan)
	}
	event := plan.Delete[0].Event
	if event == nil || event.Finding.Code != reason.WorkerFailed.Code || !strings.Contains(event.Finding.Text, "it has not joined Ray for 15 minutes: ") {
		t.Errorf("it tells %+v", event)
	}
	if told := plan.Snapshot.Pods[1]; told.Stage != protocol.Starting || told.Why != reason.ImagePullFailed.Code {
		t.Errorf("the autoscaler hears %+v", told)
	}
}

// TestDecide_TellsEventsApart: events of one pass count as one where reason, action and related are the same.
func TestDecide_TellsEventsApart(t *testing.T) {
	of := elastic(func(c *v1beta1.ComputeCluster) {
		gpu, most := testkit.Group("gpu", 0), int32(10)
		gpu.MaxReplicas = &most
		c.Spec.WorkerGroups = append(c.Spec.WorkerGroups, gpu)
	})
	seen := given(1, pods(1, failed), pods(2, failed), func(s *cluster.Seen) {
		s.Record.Scaled = map[string]cluster.RecordedSize{"cpu": {2}, "gpu": {0}}
		s.Scaler = scaler.State{Heard: true, Connected: true, Decision: protocol.Decision{
			Targets: []protocol.Target{{Group: "cpu", Replicas: 3}, {Group: "gpu", Replicas: 1}},
		}}
	})
	plan, known := decide(of, seen), map[string]bool{}
	for _, removal := range plan.Delete {
		known[removal.Event.Action+" "+removal.Event.Related.(*corev1.Pod).Name] = true
	}
	for _, filling := range plan.Create {
		known[filling.Event.Action] = true
	}
	if len(plan.Delete) != 2 || len(plan.Create) != 2 || len(known) != 4 {
		t.Errorf("%v of %s", known, plan)
	}
}

// TestStatus_IsBoundedWhateverScales: the status names some of many, and says how many there are.
func TestStatus_IsBoundedWhateverScales(t *testing.T) {
	of := elastic()
	seen := elasticPods(of, 30)
	for _, worker := range seen.Pods[1:] {
		exiting("Surplus", time.Minute, time.Minute)(worker.Pod)
	}
	seen.Scaler = scaler.State{Heard: true, Connected: true}
	for i := range 1000 {
		seen.Scaler.Decision.Infeasible = append(seen.Scaler.Decision.Infeasible, protocol.Infeasible{Shape: fmt.Sprintf("{GPU: %d}", i), Count: 1})
	}
	status := cluster.Status(of, seen, decide(of, seen), cluster.Outcome{}, now)
	told := status.Autoscaling
	if len(told.Retiring) != 20 || told.RetiringTotal != 30 || len(told.Infeasible) != 20 || told.InfeasibleTotal != 1000 {
		t.Errorf("%d of %d workers go, %d of %d shapes never fit", len(told.Retiring), told.RetiringTotal, len(told.Infeasible), told.InfeasibleTotal)
	}
	if said := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionAutoscaling); !strings.Contains(said.Message, "and 997 more shapes") {
		t.Errorf("the condition says %q", said.Message)
	}
}

// TestStatus_CutsTheReasonOfAnExit: the schema refuses a long one.
func TestStatus_CutsTheReasonOfAnExit(t *testing.T) {
	of := elastic()
	seen := elasticPods(of, 1)
	exiting(strings.Repeat("x", 300), time.Minute, time.Minute)(seen.Pods[1].Pod)
	seen.Scaler = scaler.State{Heard: true, Connected: true}
	told := cluster.Status(of, seen, decide(of, seen), cluster.Outcome{}, now).Autoscaling.Retiring
	if len(told) != 1 || told[0].Reason != strings.Repeat("x", 128) {
		t.Errorf("the workers that go are %+v, want one with 128 characters of its reason", told)
	}
}

// TestStatus_NamesAShapeWithoutAText: the schema refuses one, and an autoscaler that is not ours may send it.
func TestStatus_NamesAShapeWithoutAText(t *testing.T) {
	of := elastic()
	seen := elasticPods(of, 1)
	seen.Scaler = scaler.State{Heard: true, Connected: true}
	seen.Scaler.Decision.Infeasible = []protocol.Infeasible{{}}
	told := cluster.Status(of, seen, decide(of, seen), cluster.Outcome{}, now).Autoscaling
	if len(told.Infeasible) != 1 || told.Infeasible[0].Shape != "{}" {
		t.Errorf("the status has %+v, want the shape {}", told.Infeasible)
	}
}

// TestReady_SaysWhatAutoscaledWorkersWaitFor: a cluster is ready with the workers that it must have, and says what keeps
// the others.
func TestReady_SaysWhatAutoscaledWorkersWaitFor(t *testing.T) {
	for name, test := range map[string]struct {
		second     func(*corev1.Pod)
		code, says string
	}{
		"all are there":       {func(*corev1.Pod) {}, reason.AllReady.Code, "head and 2 of 2 workers are ready"},
		"one is starting":     {starting, reason.ScalingUp.Code, "1 of 2 workers are ready, as many as must be; the autoscaler has asked for the others"},
		"one fits on no node": {unschedulable, reason.ScalingUp.Code, "cannot be scheduled: 0/3 nodes fit"},
	} {
		of := elastic()
		seen := given(1, pods(2, test.second), func(s *cluster.Seen) {
			s.Record.Scaled = map[string]cluster.RecordedSize{"cpu": {2}}
			s.Scaler = scaler.State{Heard: true, Connected: true, Decision: protocol.Decision{Targets: []protocol.Target{{Group: "cpu", Replicas: 2}}}}
		})
		ready := meta.FindStatusCondition(cluster.Status(of, seen, decide(of, seen), cluster.Outcome{}, now).Conditions, v1beta1.ConditionReady)
		if ready.Status != metav1.ConditionTrue || ready.Reason != test.code || !strings.Contains(ready.Message, test.says) {
			t.Errorf("%s: Ready=%s %s: %s", name, ready.Status, ready.Reason, ready.Message)
		}
	}
}

// unschedulable has a pod wait for a node for ten minutes.
func unschedulable(p *corev1.Pod) {
	unscheduled(p)
	p.CreationTimestamp = metav1.NewTime(now.Add(-10 * time.Minute))
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available: 3 Insufficient cpu", LastTransitionTime: p.CreationTimestamp,
	}}
}
