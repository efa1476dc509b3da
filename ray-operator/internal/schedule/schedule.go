// Package schedule starts a ClusterJob at each time of a ClusterJobSchedule.
//
// In: schedules and their jobs, from the cache. Out: jobs through package kube, whose names are functions of their times,
// a status, events. A pass lists the jobs, Decide chooses, apply writes, Status tells.
//
// It must never start a time twice, make up for a time before the latest one, or touch a job that is not the schedule's.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Reconciler reconciles ClusterJobSchedules. What it remembers makes it one that is not copied.
type Reconciler struct {
	// Client reads from the cache.
	Client client.Client
	Writer *kube.Writer
	Events telemetry.Recorder
	Clock  clock.PassiveClock
	// Statuses remembers which statuses wait.
	Statuses reconcile.Statuses
}

// Reconcile does one pass over one schedule.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var schedule v1beta1.ClusterJobSchedule
	if err := r.Client.Get(ctx, request.NamespacedName, &schedule); err != nil {
		r.Statuses.Forget(request.NamespacedName)
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("read ClusterJobSchedule %s: %w", request, err)
		}
		return ctrl.Result{}, nil
	}
	if !schedule.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector takes its jobs
	}
	var jobs v1beta1.ClusterJobList
	err := r.Client.List(ctx, &jobs, client.InNamespace(schedule.Namespace), client.MatchingFields{index.Owner: string(schedule.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("list the jobs of ClusterJobSchedule %s: %w", request, err)
	}
	jobs.Items = slices.DeleteFunc(jobs.Items, func(job v1beta1.ClusterJob) bool {
		return job.Labels[v1beta1.LabelSchedule] != schedule.Name // somebody else put the schedule's reference there
	})
	now := r.Clock.Now()
	plan := Decide(&schedule, jobs.Items, now)
	outcome := reconcile.Outcome{Err: r.applyPlan(ctx, &schedule, plan)}
	if outcome.Err == nil {
		outcome.Events = plan.Events
	}
	ending := reconcile.Ending{Object: &schedule, Events: r.Events, Wake: plan.Wake, WriteStatus: func() (time.Duration, error) {
		return 0, r.writeStatus(ctx, &schedule, Status(&schedule, jobs.Items, plan, outcome.Err, now), now)
	}}
	return ending.End(outcome)
}

// applyPlan starts the job, and then deletes those that go. The record comes after the job: until it is written, the job
// itself says which time it stands for.
func (r *Reconciler) applyPlan(ctx context.Context, schedule *v1beta1.ClusterJobSchedule, plan Plan) error {
	if !plan.Start.IsZero() {
		if _, err := r.Writer.Create(ctx, newJob(schedule, plan.Start)); err != nil {
			return err
		}
	}
	if text := plan.Record.String(); schedule.Annotations[v1beta1.AnnotationRecord] != text {
		if err := reconcile.WriteRecord(ctx, r.Writer, schedule, text, nil); err != nil {
			return err
		}
	}
	var errs []error
	for _, job := range plan.Delete {
		errs = append(errs, r.Writer.Delete(ctx, job, nil))
	}
	return errors.Join(errs...)
}

// newJob is the job of a schedule for a time.
func newJob(schedule *v1beta1.ClusterJobSchedule, at time.Time) *v1beta1.ClusterJob {
	template := schedule.Spec.JobTemplate.DeepCopy()
	job := &v1beta1.ClusterJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: schedule.Namespace, Name: naming.ScheduledJob(schedule.Name, at),
			Labels: map[string]string{}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(schedule, v1beta1.GroupVersion.WithKind(kindName))},
		},
		Spec: template.Spec,
	}
	maps.Copy(job.Labels, template.Metadata.Labels)
	maps.Copy(job.Annotations, template.Metadata.Annotations)
	job.Labels[v1beta1.LabelSchedule] = schedule.Name
	job.Annotations[v1beta1.AnnotationScheduledAt] = at.Format(time.RFC3339)
	return job
}

// writeStatus writes the status if it differs, and an event where it warns of something new.
func (r *Reconciler) writeStatus(ctx context.Context, schedule *v1beta1.ClusterJobSchedule, status v1beta1.ClusterJobScheduleStatus, now time.Time) error {
	of := func(status v1beta1.ClusterJobScheduleStatus) *v1beta1.ClusterJobSchedule {
		return &v1beta1.ClusterJobSchedule{ObjectMeta: reconcile.StatusMeta(schedule), Status: status}
	}
	change := reconcile.StatusChange{Seen: of(schedule.Status), Wanted: of(status)}
	written, _, err := r.Statuses.Write(ctx, r.Writer, change, now)
	if finding, is := newWarning(&schedule.Status, &status); written && is {
		r.Events.Record(schedule, telemetry.Event{Finding: finding, Action: "Wait", Warning: true})
	}
	return err
}
