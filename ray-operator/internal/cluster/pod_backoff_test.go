package cluster_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// refused is a pod that a kubelet does not admit.
func refused(p *corev1.Pod, at time.Time) {
	p.CreationTimestamp = metav1.NewTime(at)
	p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError"}
}

// unborn is a pod that has not run yet, such as a worker that waits for a head.
func unborn(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }

// at is a pass at another time.
func at(of *v1beta1.ComputeCluster, seen cluster.Seen, when time.Time) cluster.Plan {
	return cluster.Decide(of, seen, desired.Site{Image: pod.OperatorImage{Image: "heliostat"}}, when)
}

// TestDecide_PausesForAHeadThatCannotStart: its pauses double to five minutes, and the workers wait for it.
func TestDecide_PausesForAHeadThatCannotStart(t *testing.T) {
	of, when := demo(), now
	seen := given(1, pods(1, unborn), pods(2, unborn))
	workers := []types.UID{seen.Pods[1].UID, seen.Pods[2].UID}
	var pauses []time.Duration
	for range 8 {
		refused(seen.Pods[0].Pod, when)
		wait := at(of, seen, when.Add(time.Second))
		if wait.Head != nil || len(wait.Delete)+len(wait.Create) > 0 {
			t.Fatalf("it does not wait: %s", wait)
		}
		pauses = append(pauses, (wait.Wake + time.Second).Round(time.Second))
		when = when.Add(wait.Wake + time.Second)
		plan := at(of, seen, when)
		if plan.Head == nil || len(plan.Create) > 0 || len(plan.Delete) != 1 {
			t.Fatalf("it replaces more than the head: %s", plan)
		}
		seen.Record = *plan.Record
		head := running(plan.Head, naming.Place{Epoch: plan.Epoch})
		seen.Record.HeadUID = head.UID
		seen.Pods[0] = head
	}
	want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(workers, []types.UID{seen.Pods[1].UID, seen.Pods[2].UID}); diff != "" || seen.Record.Epoch != 9 || seen.Record.Session != 1 {
		t.Errorf("the record is %s: %s", seen.Record, diff)
	}
}

// TestDecide_BeginsASessionAfterAHeadThatRan: workers that joined it, or may have, start afresh.
func TestDecide_BeginsASessionAfterAHeadThatRan(t *testing.T) {
	for name, edit := range map[string]func(*cluster.Seen){
		"a worker is ready": func(s *cluster.Seen) { unborn(s.Pods[1].Pod) },
		"it is an hour old": func(s *cluster.Seen) { s.Pods[0].CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) },
		"it ran": pods(0, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "ray", RestartCount: 1}}
		}),
		"a worker had joined": func(s *cluster.Seen) { unreadyPod(s.Pods[1].Pod); unborn(s.Pods[2].Pod) },
	} {
		seen := given(1, pods(0, func(p *corev1.Pod) { refused(p, now.Add(-15*time.Second)) }))
		if name == "it is an hour old" || name == "it ran" {
			unborn(seen.Pods[1].Pod)
			unborn(seen.Pods[2].Pod)
		}
		edit(&seen)
		if plan := decide(demo(), seen); plan.Session != 2 || len(plan.Create) != 1 || len(plan.Create[0].Pods) != 2 {
			t.Errorf("%s: %s", name, plan)
		}
	}
}

// TestDecide_CountsFromTheNode: for how long a head waited for its node says nothing of how long it lived.
func TestDecide_CountsFromTheNode(t *testing.T) {
	seen := given(1, pods(1, unborn), pods(2, unborn), pods(0, func(p *corev1.Pod) {
		refused(p, now.Add(-time.Hour))
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-5 * time.Second)),
		}}
	}))
	if plan := decide(demo(), seen); plan.Session != 1 || plan.Record == nil || plan.Record.Failures != 1 {
		t.Errorf("it does %s", plan)
	}
}

// TestDecide_DoesNotPauseAfterACorrection: the spec may be what was wrong.
func TestDecide_DoesNotPauseAfterACorrection(t *testing.T) {
	seen := given(1, func(s *cluster.Seen) { s.Record.Failures = 9 }, pods(0, func(p *corev1.Pod) { refused(p, now.Add(-15*time.Second)); old(p) }))
	if plan := decide(demo(), seen); plan.Head == nil {
		t.Errorf("it waits %s: %s", plan.Wake, plan)
	}
}

// TestDecide_PausesForWorkersThatCannotStart: the pauses of one slot after the other double, and end with one that
// lived for long.
func TestDecide_PausesForWorkersThatCannotStart(t *testing.T) {
	for _, c := range []struct {
		failures string
		age      time.Duration
		replaced bool
		next     string
	}{
		{"", 9 * time.Second, false, ""},
		{"", 10 * time.Second, true, "1"},
		{"1", 19 * time.Second, false, ""},
		{"1", 20 * time.Second, true, "2"},
		{"7", 299 * time.Second, false, ""},
		{"7", 300 * time.Second, true, "8"},
		{"7", 359 * time.Second, true, "8"},
		{"7", time.Hour, true, ""},
		{"many", 10 * time.Second, true, "1"},
		{"-5", 10 * time.Second, true, "1"},
	} {
		plan := decide(demo(), given(1, pods(2, func(p *corev1.Pod) {
			refused(p, now.Add(-c.age))
			p.Annotations[v1beta1.AnnotationFailures] = c.failures
		})))
		if replaced := len(plan.Delete) == 1 && len(plan.Create) == 1; replaced != c.replaced {
			t.Errorf("%+v: %s", c, plan)
		} else if replaced && plan.Create[0].Pods[0].Annotations[v1beta1.AnnotationFailures] != c.next {
			t.Errorf("%+v: the next one has %v", c, plan.Create[0].Pods[0].Annotations)
		}
	}
}
