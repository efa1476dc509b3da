package cluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// progressWait is how long a status that only tells of progress waits for more to tell:
// pods become ready one after another, and each would cost a write of its own.
const progressWait = 2 * time.Second

// infeasibleWait is how long a status waits that differs in nothing but what can never fit: a loop that submits such
// tasks would cost a write each time.
const infeasibleWait = 30 * time.Second

// historyWait is how long a status waits that differs in nothing but what archivers said.
const historyWait = time.Minute

// patienceFor returns for how long a status may wait for more to tell, 0 where it is urgent.
func patienceFor(former, latter v1beta1.ComputeClusterStatus) time.Duration {
	if isUrgent(former, latter) {
		return 0
	}
	return progressPatience(former, latter)
}

// progressPatience returns for how long a status that only shows progress may wait.
func progressPatience(former, latter v1beta1.ComputeClusterStatus) time.Duration {
	if isOfHistoryAlone(former, latter) {
		return historyWait
	}
	if former.Autoscaling == nil || latter.Autoscaling == nil || len(former.Autoscaling.Infeasible) == 0 || len(latter.Autoscaling.Infeasible) == 0 {
		return progressWait
	}
	same := latter.DeepCopy()
	same.Autoscaling.Infeasible, same.Autoscaling.InfeasibleTotal = former.Autoscaling.Infeasible, former.Autoscaling.InfeasibleTotal
	before := meta.FindStatusCondition(former.Conditions, v1beta1.ConditionAutoscaling)
	after := meta.FindStatusCondition(same.Conditions, v1beta1.ConditionAutoscaling)
	if before != nil && after != nil && before.Reason == after.Reason {
		after.Message = before.Message
	}
	if equality.Semantic.DeepEqual(former, *same) {
		return infeasibleWait
	}
	return progressWait
}

// isUrgent reports whether a status says more than that there is progress: readiness, an obstacle or
// the end of one, a new epoch, anything that went wrong.
func isUrgent(former, latter v1beta1.ComputeClusterStatus) bool {
	if former.ObservedGeneration == 0 {
		return !isStarting(latter)
	}
	if former.Epoch != latter.Epoch || former.TokenSecretName != latter.TokenSecretName {
		return true
	}
	if mirroredRoll(former) != mirroredRoll(latter) { // the record may be lost
		return true
	}
	edited := former.ObservedGeneration != latter.ObservedGeneration
	for i := range latter.Conditions {
		after := &latter.Conditions[i]
		if after.Type == v1beta1.ConditionHistoryReady {
			continue
		}
		before := meta.FindStatusCondition(former.Conditions, after.Type)
		if before == nil || before.Status != after.Status && isTurning(after, edited) || before.Reason != after.Reason && isWarning(after.Reason) {
			return true
		}
	}
	return len(beyondHistory(former.Conditions)) != len(beyondHistory(latter.Conditions))
}

// beyondHistory returns the conditions but for HistoryReady.
func beyondHistory(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool { return c.Type == v1beta1.ConditionHistoryReady })
}

// isOfHistoryAlone reports whether two statuses differ in nothing but what archivers said.
func isOfHistoryAlone(former, latter v1beta1.ComputeClusterStatus) bool {
	if meta.FindStatusCondition(latter.Conditions, v1beta1.ConditionHistoryReady) == nil && meta.FindStatusCondition(former.Conditions, v1beta1.ConditionHistoryReady) == nil {
		return false
	}
	former.Conditions, latter.Conditions = beyondHistory(former.Conditions), beyondHistory(latter.Conditions)
	return equality.Semantic.DeepEqual(former, latter)
}

// isStarting reports whether a first status says no more than that all is under way.
func isStarting(first v1beta1.ComputeClusterStatus) bool {
	under := first.Phase == v1beta1.PhasePending || first.Phase == v1beta1.PhaseStarting
	return under && !slices.ContainsFunc(first.Conditions, func(told metav1.Condition) bool { return isWarning(told.Reason) })
}

// isTurning reports whether a condition that changed is one to tell of at once. That an edit
// makes a cluster work on itself is progress, and so is each step on its way; that it is
// ready, or that it is not any more though nobody edited it, is more.
func isTurning(after *metav1.Condition, edited bool) bool {
	switch after.Type {
	case v1beta1.ConditionReady:
		return after.Status == metav1.ConditionTrue || !edited || isWarning(after.Reason)
	case v1beta1.ConditionReconciling, v1beta1.ConditionWorkersReady:
		return false
	case v1beta1.ConditionHeadReady:
		return after.Status == metav1.ConditionFalse
	default:
		return true
	}
}

// isWarning reports whether the reason of a code is a warning.
func isWarning(code string) bool { return reason.Finding{Code: code}.Severity() == reason.Warning }
