package schedule

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// listed is how many active jobs the status names.
const listed = 10

// Status computes the status from what was seen and planned. Where the plan was not carried out, refused says why. It is
// pure.
func Status(schedule *v1beta1.ClusterJobSchedule, jobs []v1beta1.ClusterJob, plan Plan, refused error, now time.Time) v1beta1.ClusterJobScheduleStatus {
	status := v1beta1.ClusterJobScheduleStatus{
		ObservedGeneration: schedule.Generation, Conditions: slices.Clone(schedule.Status.Conditions),
		LastSuccessfulTime: schedule.Status.LastSuccessfulTime, NextScheduleTime: momentOf(plan.Next),
	}
	for i := range jobs {
		ended := jobs[i].Status.EndTime
		if ended != nil && isSuccess(&jobs[i]) && (status.LastSuccessfulTime == nil || status.LastSuccessfulTime.Before(ended)) {
			status.LastSuccessfulTime = ended
		}
	}
	for _, job := range activeOf(jobs) {
		status.Active = append(status.Active, job.Name)
	}
	last := lastTime(schedule, jobs)
	if !plan.Start.IsZero() && refused == nil {
		last = plan.Start
		if name := naming.ScheduledJob(schedule.Name, last); !slices.Contains(status.Active, name) {
			status.Active = append(status.Active, name)
		}
	}
	status.LastScheduleTime, status.ActiveJobs = momentOf(last), int32(len(status.Active))
	status.Active = status.Active[max(0, len(status.Active)-listed):]
	setConditions(schedule, &status, plan, refused, now)
	return status
}

func setConditions(schedule *v1beta1.ClusterJobSchedule, status *v1beta1.ClusterJobScheduleStatus, plan Plan, refused error, now time.Time) {
	say := reconcile.Conditions{All: &status.Conditions, Generation: schedule.Generation, Now: now}
	state := plan.State
	if refused != nil {
		state = diagnose.Refusal("the job for "+reconcile.Stamp(plan.Start), refused)
		if plan.Start.IsZero() {
			state = diagnose.Refusal("a job of the schedule", refused)
		}
	}
	isSuspended := ptr.Deref(schedule.Spec.Suspend, false) && !plan.IsStalled && refused == nil
	say.Set(v1beta1.ConditionReady, !plan.IsStalled && refused == nil, state)
	say.SetOr(v1beta1.ConditionReconciling, refused != nil, state)
	say.SetStalled(plan.IsStalled, state)
	say.SetOr(v1beta1.ConditionSuspended, isSuspended, state)
	if isSuspended {
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == v1beta1.ConditionReady })
	}
}

// momentOf is a time as a status has it, nil where there is none.
func momentOf(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	moment := metav1.NewTime(at.UTC())
	return &moment
}

// newWarning is why a schedule starts nothing, where its conditions did not say so before.
func newWarning(before, after *v1beta1.ClusterJobScheduleStatus) (reason.Finding, bool) {
	return reconcile.NewWarning(before.Conditions, after.Conditions)
}
