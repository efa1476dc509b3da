package phases

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// way is what is known of the steps of an object.
type way struct {
	object *metav1.ObjectMeta
	// began is when the first step began; zero where nobody knows.
	began time.Time
	steps []step
	// isSuspended: the object has no pods because somebody wants it so, or soon will not. Since is when it had none.
	isSuspended    bool
	suspendedSince time.Time
	// isStalled: nothing will change until a person acts.
	isStalled bool
	// isOver: no step is to come, since a time. Then steps are those that were reached.
	isOver bool
	over   time.Time
}

// step is one step of a way.
type step struct {
	name string
	// isDone, and until when it took; zero where nobody knows.
	isDone bool
	until  time.Time
	// since is when it began, where that is not when the one before ended.
	since time.Time
	// hasFailed: it will not be done by itself.
	hasFailed bool
}

// phases puts the steps in order: done ones, at most one that is current or has failed, and those to come.
func (w way) phases(in explain.Input) []Phase {
	if going := w.object.DeletionTimestamp; going != nil {
		return inOrder([]Phase{{Name: Deleting, State: Current, Since: going.Time, WaitsFor: waitsFor(in)}}, in.Now)
	}
	var all []Phase
	isOpen := false // a step is current or has failed
	if w.isSuspended {
		all = append(all, Phase{Name: Suspended, State: Current, Since: w.suspendedSince, WaitsFor: waitsFor(in)})
		isOpen = true
	}
	at := w.began
	for _, s := range w.steps {
		phase := Phase{Name: s.name, State: Pending}
		if !isOpen {
			phase = s.phase(at, w.isStalled)
			at, isOpen = phase.Until, phase.State != Done
		}
		if phase.State == Current || phase.State == Failed {
			phase.WaitsFor = waitsFor(in)
		}
		all = append(all, phase)
	}
	if w.isOver {
		all = append(all, Phase{Name: Ended, State: Done, Since: w.over})
	}
	return inOrder(all, in.Now)
}

// phase is a step whose turn it is, and which began when the one before ended.
func (s step) phase(began time.Time, isStalled bool) Phase {
	if !s.since.IsZero() {
		began = s.since
	}
	phase := Phase{Name: s.name, State: Current, Since: began}
	switch {
	case s.hasFailed:
		phase.State, phase.Until = Failed, s.until
	case s.isDone:
		phase.State, phase.Until = Done, s.until
	case isStalled:
		phase.State = Failed
	}
	return phase
}

// inOrder leaves times out that a later one contradicts: Kubernetes keeps of a condition only when it changed last, so
// what happened again looks younger than what came of it. None is in the future.
func inOrder(all []Phase, now time.Time) []Phase {
	var limit time.Time
	if !now.IsZero() {
		limit = now
	}
	bound := func(at *time.Time) {
		switch {
		case at.IsZero():
		case limit.IsZero() || !at.After(limit):
			limit = *at
		case limit.Equal(now):
			*at = now // clocks differ by little
		default:
			*at = time.Time{}
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		bound(&all[i].Until)
		bound(&all[i].Since)
	}
	return all
}

// begin reads what the kinds have in common.
func begin(object *metav1.ObjectMeta, conditions []metav1.Condition, phase string) way {
	w := way{object: object, began: object.CreationTimestamp.Time}
	suspended := meta.FindStatusCondition(conditions, v1beta1.ConditionSuspended)
	w.isSuspended = phase == v1beta1.PhaseSuspended || phase == v1beta1.PhaseSuspending
	if suspended != nil && suspended.Status == metav1.ConditionTrue {
		w.isSuspended, w.suspendedSince = true, suspended.LastTransitionTime.Time
	}
	_, w.isStalled = since(conditions, v1beta1.ConditionStalled)
	return w
}

// resumed is when an object was resumed, where its condition Suspended says so.
func resumed(conditions []metav1.Condition) time.Time {
	suspended := meta.FindStatusCondition(conditions, v1beta1.ConditionSuspended)
	if suspended != nil && suspended.Status == metav1.ConditionFalse {
		return suspended.LastTransitionTime.Time
	}
	return time.Time{}
}

// since is since when a condition is True; ok is false where it is not.
func since(conditions []metav1.Condition, kind string) (at time.Time, ok bool) {
	condition := meta.FindStatusCondition(conditions, kind)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return condition.LastTransitionTime.Time, true
}

// clusterOf finds a cluster by its name, nil where it is not among those of the object.
func clusterOf(in explain.Input, namespace, name string) *v1beta1.ComputeCluster {
	for _, cluster := range in.Clusters {
		if cluster != nil && name != "" && cluster.Name == name && cluster.Namespace == namespace {
			return cluster
		}
	}
	return nil
}

// headSince is since when a cluster's head answers, for an object that began to wait for it at a time; ok is false
// where it does not.
func headSince(cluster *v1beta1.ComputeCluster, began time.Time) (at time.Time, ok bool) {
	if cluster == nil {
		return time.Time{}, false
	}
	if at, ok = since(cluster.Status.Conditions, v1beta1.ConditionHeadReady); ok {
		at = latest(at, began)
	}
	return at, ok
}

func latest(times ...time.Time) time.Time {
	var last time.Time
	for _, at := range times {
		if at.After(last) {
			last = at
		}
	}
	return last
}
