package schedule

import (
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cron"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// Limits of the history where none are given, as the schema has them.
const (
	usualSuccesses = 3
	usualFailures  = 1
)

// longestSleep bounds how late a pass comes where the clock of the node was set, or the node slept.
const longestSleep = 10 * time.Minute

// Plan is what to do about a schedule.
type Plan struct {
	// Start is the time to start a job for, zero for none.
	Start time.Time
	// Delete are the jobs to delete.
	Delete []*v1beta1.ClusterJob
	// Record is the record after that.
	Record Record
	// Next is the next time, zero while there is none.
	Next time.Time
	// State is what the status says. IsStalled reports whether nothing goes on until a user acts.
	State     reason.Finding
	IsStalled bool
	Events    []telemetry.Event
	// Wake is when to look again, 0 for never.
	Wake time.Duration
}

// Decide says what to do about a schedule that has these jobs. It is pure.
func Decide(schedule *v1beta1.ClusterJobSchedule, jobs []v1beta1.ClusterJob, now time.Time) Plan {
	plan := Plan{Record: recallRecord(schedule, jobs, now), Delete: outlived(schedule, jobs)}
	times, problem := readTimes(schedule, now)
	switch {
	case problem != nil:
		plan.State, plan.IsStalled = *problem, true
		return plan
	case ptr.Deref(schedule.Spec.Suspend, false):
		plan.State = reason.ScheduleSuspended.Of()
		return plan
	}
	plan.State = reason.ScheduleActive.Of()
	if due := times.Latest(time.Unix(plan.Record.Through, 0), now); !due.IsZero() {
		plan.decideDue(schedule, jobs, due, now)
	}
	plan.Next = times.Next(now)
	plan.wakeIn(min(plan.Next.Sub(now), longestSleep))
	return plan
}

// readTimes returns the times of a schedule, or why it has none.
func readTimes(schedule *v1beta1.ClusterJobSchedule, now time.Time) (cron.Times, *reason.Finding) {
	stalled := func(finding reason.Finding) (cron.Times, *reason.Finding) { return cron.Times{}, &finding }
	if found := validate.Schedule(schedule).ErrorList(); len(found) > 0 {
		return stalled(reason.InvalidSpec.Of(found.ToAggregate()))
	}
	zone, err := cron.Zone(schedule.Spec.TimeZone)
	if err != nil {
		return stalled(reason.TimeZoneUnknown.Of(schedule.Spec.TimeZone))
	}
	times, err := cron.Parse(schedule.Spec.Schedule, zone)
	if err != nil {
		return stalled(reason.ScheduleUnreadable.Of(schedule.Spec.Schedule, err.Error()))
	}
	if times.Next(now).IsZero() {
		return stalled(reason.ScheduleNeverComes.Of(schedule.Spec.Schedule))
	}
	return times, nil
}

// decideDue says what becomes of the latest time that has come. Those before it are not made up for.
func (p *Plan) decideDue(schedule *v1beta1.ClusterJobSchedule, jobs []v1beta1.ClusterJob, due, now time.Time) {
	if seconds := schedule.Spec.StartingDeadlineSeconds; seconds != nil {
		left := due.Add(time.Duration(*seconds) * time.Second).Sub(now)
		if left < 0 {
			p.Record.Through = due.Unix()
			p.tell("Skip", reason.StartMissed.Of(reconcile.Stamp(due), *seconds), nil)
			return
		}
		p.wakeIn(left + time.Second)
	}
	active := activeOf(jobs)
	switch {
	case len(active) == 0 || schedule.Spec.ConcurrencyPolicy == "" || schedule.Spec.ConcurrencyPolicy == v1beta1.ConcurrencyAllow:
		p.Start, p.Record.Through = due, due.Unix()
		p.tell("Start", reason.JobStarted.Of(naming.ScheduledJob(schedule.Name, due), reconcile.Stamp(due)), nil)
	case schedule.Spec.ConcurrencyPolicy == v1beta1.ConcurrencyForbid:
		p.State = reason.PreviousJobActive.Of(reconcile.Stamp(due), active[0].Name)
	default:
		p.State = reason.PreviousJobEnding.Of(reconcile.Stamp(due), active[0].Name)
		for _, job := range active {
			if job.DeletionTimestamp.IsZero() {
				p.Delete = append(p.Delete, job)
				p.tell("Delete", reason.JobReplaced.Of(job.Name, reconcile.Stamp(due)), job)
			}
		}
	}
}

// tell adds an event. Those of one pass that have the same reason need something apart that they relate to.
func (p *Plan) tell(action string, finding reason.Finding, related runtime.Object) {
	p.Events = append(p.Events, telemetry.Event{
		Finding: finding, Action: action, Related: related, Warning: finding.Severity() == reason.Warning,
	})
}

// wakeIn has the schedule looked at after some time, or sooner.
func (p *Plan) wakeIn(wait time.Duration) {
	p.Wake = reconcile.Soonest(p.Wake, max(wait, time.Millisecond))
}

// activeOf are the jobs that have not ended, the oldest first.
func activeOf(jobs []v1beta1.ClusterJob) []*v1beta1.ClusterJob {
	return some(jobs, func(job *v1beta1.ClusterJob) bool { return job.Status.EndTime == nil })
}

// outlived are the jobs that have ended and that the history has no room for, the oldest first.
func outlived(schedule *v1beta1.ClusterJobSchedule, jobs []v1beta1.ClusterJob) []*v1beta1.ClusterJob {
	var all []*v1beta1.ClusterJob
	for _, sort := range []struct {
		isSuccess bool
		given     *int32
		usual     int32
	}{
		{true, schedule.Spec.SuccessfulJobsHistoryLimit, usualSuccesses}, {false, schedule.Spec.FailedJobsHistoryLimit, usualFailures},
	} {
		limit := sort.usual
		if sort.given != nil {
			limit = max(0, *sort.given)
		}
		ended := some(jobs, func(job *v1beta1.ClusterJob) bool {
			return job.Status.EndTime != nil && job.DeletionTimestamp.IsZero() && isSuccess(job) == sort.isSuccess
		})
		all = append(all, ended[:max(0, len(ended)-int(limit))]...)
	}
	return all
}

func isSuccess(job *v1beta1.ClusterJob) bool {
	return meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionComplete)
}

// some are those of the jobs that are wanted, by the times that they stand for.
func some(jobs []v1beta1.ClusterJob, isWanted func(*v1beta1.ClusterJob) bool) []*v1beta1.ClusterJob {
	var all []*v1beta1.ClusterJob
	for i := range jobs {
		if isWanted(&jobs[i]) {
			all = append(all, &jobs[i])
		}
	}
	slices.SortFunc(all, func(a, b *v1beta1.ClusterJob) int {
		return strings.Compare(a.Name, b.Name) // the minutes in the names have eight digits until 2160
	})
	return all
}

// lastTime is the latest time that a job was started for, as the jobs and the status say.
func lastTime(schedule *v1beta1.ClusterJobSchedule, jobs []v1beta1.ClusterJob) time.Time {
	var last time.Time
	if told := schedule.Status.LastScheduleTime; told != nil {
		last = told.Time
	}
	for i := range jobs {
		if at, is := naming.ScheduledTime(schedule.Name, jobs[i].Name); is && at.After(last) {
			last = at
		}
	}
	return last
}
