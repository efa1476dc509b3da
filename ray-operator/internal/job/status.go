package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// LastLines is how many lines of an attempt's output the status keeps.
const LastLines = 20

// Status computes the status from what was seen, planned and done. It is pure. Of the
// former status it keeps the times of conditions that did not change, and what it tells of
// former attempts beyond the record.
func Status(job *v1beta1.ClusterJob, seen Seen, plan Plan, refused error, now time.Time) v1beta1.ClusterJobStatus {
	record := recordAfter(seen, plan)
	status := v1beta1.ClusterJobStatus{
		ObservedGeneration: job.Generation, Phase: plan.Phase, Attempt: currentAttempt(record), ClusterName: nameOfCluster(job, seen, record),
		Conditions: slices.Clone(job.Status.Conditions),
	}
	if job.Spec.ClusterTemplate != nil {
		status.OwnCluster = record.Own
	}
	if refused != nil && len(plan.Claims) > 0 && plan.Make == nil { // the next pass brings them to what the spec says
		status.ObservedGeneration = job.Status.ObservedGeneration
	}
	if status.Attempt > 0 {
		status.SubmissionID = naming.Submission(job.Name, job.UID, status.Attempt)
	}
	status.Attempts = listAttempts(job, seen, plan, now)
	status.StartTime = startOf(view{job: job, seen: seen, record: record, now: now})
	status.Gang = gangStatus(job, &seen, record)
	status.Tune = tuneStatus(job, &seen, record)
	status.EndTime = reconcile.Moment(record.Outcome.At)
	status.Summary = summarize(job, status)
	setConditions(job, &status, plan, refused, now)
	return status
}

// recordAfter is the record as it is after the plan.
func recordAfter(seen Seen, plan Plan) Record {
	if plan.Record != nil {
		return *plan.Record
	}
	return seen.Record
}

// nameOfCluster is that of the current attempt's cluster, of the one that it waits for, or
// of the last.
func nameOfCluster(job *v1beta1.ClusterJob, seen Seen, record Record) string {
	waits := record.Bound.Head != "" || record.Outcome.Phase == "" && !record.Suspended && (seen.Cluster != nil || job.Spec.ClusterRef != nil)
	if waits || record.Last.Cluster == "" {
		return clusterNameOf(job, record)
	}
	return record.Last.Cluster
}

// currentAttempt is the number of the bound attempt, or of the last.
func currentAttempt(record Record) int32 {
	switch {
	case record.Bound.Head != "":
		return record.Attempt
	case len(record.Past) > 0:
		return record.Past[len(record.Past)-1].Number
	default:
		return 0
	}
}

// listAttempts are the past ones and the bound one, with what was told of them before.
func listAttempts(job *v1beta1.ClusterJob, seen Seen, plan Plan, now time.Time) []v1beta1.JobAttempt {
	record := recordAfter(seen, plan)
	var all []v1beta1.JobAttempt
	for i, past := range record.Past {
		entry := entryOf(past)
		if i == len(record.Past)-1 {
			describeBound(&entry, record.Last)
		}
		switch former := findAttempt(job.Status.Attempts, past.Number); {
		case plan.Done != nil && plan.Done.Number == past.Number:
			entry = *plan.Done
		case former != nil && former.LogState != "":
			entry = *former
		case i < len(record.Past)-1 || record.Bound.Head != "":
			entry.LogState = v1beta1.LogLost // the last one's may yet be read
		}
		all = append(all, entry)
	}
	if record.Bound.Head != "" {
		entry := v1beta1.JobAttempt{Number: record.Attempt, Reason: record.Ending}
		describeBound(&entry, record.Bound)
		s := view{job: job, seen: seen, record: record, now: now}
		if started := s.startedAt(); !started.IsZero() {
			at := metav1.Unix(started.Unix(), 0)
			entry.StartTime = &at
		}
		all = append(all, entry)
	}
	for i := range all {
		all[i].SubmissionID = naming.Submission(job.Name, job.UID, all[i].Number)
	}
	return all
}

func entryOf(past Past) v1beta1.JobAttempt {
	return v1beta1.JobAttempt{
		Number: past.Number, ClusterName: past.Cluster, HeadUID: past.Head, Reason: past.Reason, ExitCode: past.Exit,
		StartTime: reconcile.Moment(past.Start), EndTime: reconcile.Moment(past.End),
	}
}

// describeBound says what an attempt is or was bound to.
func describeBound(entry *v1beta1.JobAttempt, bound Bound) {
	entry.ClusterName, entry.ClusterUID = bound.Cluster, bound.UID
	entry.HeadName, entry.HeadUID, entry.Session = bound.Pod, bound.Head, bound.Session
	entry.SubmitTime = reconcile.Moment(bound.At)
}

// findAttempt finds one by its number, nil if it is not told of.
func findAttempt(all []v1beta1.JobAttempt, number int32) *v1beta1.JobAttempt {
	at := slices.IndexFunc(all, func(a v1beta1.JobAttempt) bool { return a.Number == number })
	if at < 0 {
		return nil
	}
	return &all[at]
}

// startOf returns when the job first did its work since it was resumed last.
func startOf(v view) *metav1.Time {
	ran := v.ranSince()
	if ran.IsZero() {
		return nil
	}
	at := metav1.Unix(ran.Unix(), 0)
	return &at
}

// summarize holds the strings for columns.
func summarize(job *v1beta1.ClusterJob, status v1beta1.ClusterJobStatus) v1beta1.JobSummary {
	var s v1beta1.JobSummary
	if status.Attempt > 0 {
		s.Attempt = fmt.Sprint(status.Attempt)
		if retry := job.Spec.Retry; retry != nil {
			most := 1 + retry.Limit + valueOf(retry.InfrastructureLimit)
			s.Attempt = fmt.Sprintf("%d/%d", status.Attempt, max(most, status.Attempt))
		}
	}
	if status.EndTime != nil && status.StartTime != nil {
		s.Duration = max(0, status.EndTime.Sub(status.StartTime.Time)).String()
	}
	s.Entrypoint = strings.Join(strings.Fields(job.Spec.Entrypoint+strings.Join(job.Spec.Command, " ")), " ")
	if runes := []rune(s.Entrypoint); len(runes) > mostEntrypoint {
		s.Entrypoint = string(runes[:mostEntrypoint-1]) + "…"
	}
	return s
}

// mostEntrypoint is how many characters of the entrypoint a column shows.
const mostEntrypoint = 60

// setConditions follow from the phase and the finding.
func setConditions(job *v1beta1.ClusterJob, status *v1beta1.ClusterJobStatus, plan Plan, refused error, now time.Time) {
	finding, stalled := findingOf(plan, refused)
	say := reconcile.Conditions{All: &status.Conditions, Generation: job.Generation, Now: now}
	ended, suspended := isEndPhase(status.Phase), status.Phase == v1beta1.PhaseSuspended
	succeeded := status.Phase == v1beta1.PhaseSucceeded
	stalled = stalled || ended && !succeeded
	if suspended && !stalled { // it is as its spec says, so that nobody waits for it to be ready
		say.SetWhile(v1beta1.ConditionReady, nil)
	} else {
		say.Set(v1beta1.ConditionReady, succeeded, finding)
	}
	say.SetOr(v1beta1.ConditionReconciling, !ended && !suspended && !stalled, finding)
	say.SetStalled(stalled, finding)
	switch {
	case succeeded:
		say.Set(v1beta1.ConditionComplete, true, finding)
	case ended:
		say.Set(v1beta1.ConditionFailed, true, finding)
	}
	if ended {
		say.Set(v1beta1.ConditionFinished, true, finding)
	}
	if plan.Unchanged != nil {
		say.Set(v1beta1.ConditionUpToDate, false, *plan.Unchanged)
	} else {
		say.SetWhile(v1beta1.ConditionUpToDate, nil)
	}
	if suspended || status.Phase == v1beta1.PhaseSuspending {
		say.Set(v1beta1.ConditionSuspended, suspended, finding)
	} else {
		setResumed(status.Conditions, say)
	}
}

// findingOf is what to tell, and whether nothing will change until a person acts.
func findingOf(plan Plan, refused error) (reason.Finding, bool) {
	obstacle, terminal := fault.Finding(refused)
	switch {
	case terminal:
		return obstacle, true
	case refused != nil && fault.Refused(refused):
		return refusalOf(plan, refused), plan.Stalled
	default:
		return plan.Finding, plan.Stalled
	}
}

// setResumed says of a job that was suspended that it is not any more; one that never was
// says nothing.
func setResumed(all []metav1.Condition, say reconcile.Conditions) {
	for i := range all {
		if all[i].Type == v1beta1.ConditionSuspended {
			say.SetOr(v1beta1.ConditionSuspended, false, reason.Finding{})
			return
		}
	}
}
