package phases_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/phases"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func TestOf_NothingOfOurs(t *testing.T) {
	for _, object := range []runtime.Object{
		nil, &corev1.Pod{}, (*v1beta1.ComputeCluster)(nil), (*v1beta1.ClusterJob)(nil), (*v1beta1.ClusterService)(nil),
	} {
		if all := phases.Of(explain.Input{Object: object}); len(all) > 0 {
			t.Errorf("%T: %s", object, drawing(all))
		}
	}
}

// chance makes objects of any state, most of which no operator writes.
type chance struct{ *rand.Rand }

func (c chance) moment() metav1.Time {
	if c.IntN(8) == 0 {
		return metav1.Time{}
	}
	return at(c.IntN(90) - 10)
}

func (c chance) pointer() *metav1.Time {
	if c.IntN(3) == 0 {
		return nil
	}
	return new(c.moment())
}

func pick[T any](c chance, all ...T) T { return all[c.IntN(len(all))] }

func (c chance) conditions() []metav1.Condition {
	var all []metav1.Condition
	for _, kind := range []string{"Ready", "Stalled", "Reconciling", "HeadReady", "WorkersReady", "Suspended", "Upgrading", "Complete", "Failed"} {
		if c.IntN(2) == 0 {
			all = append(all, metav1.Condition{
				Type: kind, Status: pick(c, metav1.ConditionTrue, metav1.ConditionFalse, "x"), Reason: pick(c, "JobQueued", "AllReady", "", "x"),
				Message: "words", LastTransitionTime: c.moment(),
			})
		}
	}
	return all
}

func (c chance) objectMeta(name string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: "team", Name: name, UID: "uid", CreationTimestamp: c.moment()}
	if c.IntN(10) == 0 {
		meta.DeletionTimestamp = c.pointer()
	}
	return meta
}

func (c chance) cluster() *v1beta1.ComputeCluster {
	cluster := &v1beta1.ComputeCluster{ObjectMeta: c.objectMeta("demo")}
	cluster.Spec.WorkerGroups = make([]v1beta1.WorkerGroup, c.IntN(2))
	cluster.Status.Conditions, cluster.Status.Epoch = c.conditions(), int64(c.IntN(3))
	cluster.Status.Phase = pick(c, "", v1beta1.PhaseSuspending, v1beta1.PhaseReady)
	if c.IntN(2) == 0 {
		cluster.Status.Head = &v1beta1.HeadStatus{CreationTime: c.pointer(), NodeName: pick(c, "", "node1")}
	}
	return cluster
}

func (c chance) job() *v1beta1.ClusterJob {
	job := jobOf(pick(c, "", "Pending", "Provisioning", "Submitting", "Running", "Retrying", "Suspending", "Suspended", "Succeeded",
		"Failed", "Stopped", "x"), c.IntN(2) == 0)
	job.ObjectMeta, job.Status.Conditions = c.objectMeta("train"), c.conditions()
	job.Status.EndTime, job.Status.OwnCluster = c.pointer(), int32(c.IntN(2))
	for i := range c.IntN(4) {
		job.Status.Attempts = append(job.Status.Attempts, v1beta1.JobAttempt{
			Number: int32(i), SubmitTime: c.pointer(), StartTime: c.pointer(), EndTime: c.pointer(),
		})
	}
	return job
}

func (c chance) version() *v1beta1.ServiceVersion {
	if c.IntN(3) == 0 {
		return nil
	}
	return &v1beta1.ServiceVersion{
		ClusterName: pick(c, "demo", ""), Healthy: c.IntN(2) == 0, TrafficPercent: pick[int32](c, 0, 50, 100), ReadyEndpoints: int32(c.IntN(2)),
		Applications: apps(pick(c, []string{}, []string{"RUNNING"}, []string{"DEPLOY_FAILED", "x"}, []string{"UNHEALTHY"})...),
	}
}

func (c chance) object() runtime.Object {
	switch c.IntN(3) {
	case 0:
		return c.cluster()
	case 1:
		return c.job()
	default:
		service := serviceOf(c.version(), c.version(), c.conditions()...)
		service.ObjectMeta = c.objectMeta("serve")
		if c.IntN(2) == 0 {
			service.Status.LastUpgrade = &v1beta1.UpgradeOutcome{Result: v1beta1.UpgradeSucceeded, StartTime: c.pointer()}
		}
		return service
	}
}

// TestOf_AnyObject: times never go back, one phase at most is current or has failed, and none is done after it.
func TestOf_AnyObject(t *testing.T) {
	c := chance{rand.New(rand.NewPCG(1, 2))}
	now := at(60).Time
	seen := map[string]int{}
	for range 4000 {
		in := explain.Input{Object: c.object(), Now: now}
		if c.IntN(2) == 0 {
			in.Clusters = []*v1beta1.ComputeCluster{c.cluster()}
		}
		if c.IntN(2) == 0 {
			pod := headOf(pick(c, "", "node1"))
			pod.CreationTimestamp = c.moment()
			in.Pods = []*corev1.Pod{pod}
		}
		all := phases.Of(in)
		hold(t, all, now)
		if diff := cmp.Diff(all, phases.Of(in)); diff != "" {
			t.Fatalf("the second time: %s", diff)
		}
		for _, phase := range all {
			seen[phase.State]++
		}
		if t.Failed() {
			t.Fatalf("%+v\n%s", in.Object, drawing(all))
		}
	}
	for _, state := range []string{phases.Done, phases.Current, phases.Failed, phases.Pending} {
		if seen[state] < 200 {
			t.Errorf("state %s was seen %d times", state, seen[state])
		}
	}
}

// hold fails the test where phases are in no order.
func hold(t *testing.T, all []phases.Phase, now time.Time) {
	t.Helper()
	if len(all) == 0 {
		t.Error("no phase")
	}
	open, names := 0, map[string]bool{}
	for i, phase := range all {
		isEnd := phase.Name == phases.Ended && i == len(all)-1
		hasTimes := !phase.Since.IsZero() || !phase.Until.IsZero()
		switch phase.State {
		case phases.Current, phases.Failed:
			open++
		case phases.Done:
			if open > 0 && !isEnd {
				t.Errorf("%s is done after one that is not", phase.Name)
			}
		case phases.Pending:
			if open == 0 || hasTimes {
				t.Errorf("%s is to come, and nothing is waited for, or it has times", phase.Name)
			}
		default:
			t.Errorf("%s is %s", phase.Name, phase.State)
		}
		if names[phase.Name] {
			t.Errorf("%s is there twice", phase.Name)
		}
		names[phase.Name] = true
	}
	if open > 1 {
		t.Errorf("%d phases are current or have failed", open)
	}
	holdTimes(t, all, now)
}

// holdTimes fails the test where a time goes back, or is in the future.
func holdTimes(t *testing.T, all []phases.Phase, now time.Time) {
	t.Helper()
	var last time.Time
	for _, phase := range all {
		for _, at := range []time.Time{phase.Since, phase.Until} {
			if at.IsZero() {
				continue
			}
			if at.Before(last) || at.After(now) {
				t.Errorf("%s has %s after %s", phase.Name, at, last)
			}
			last = at
		}
	}
}
