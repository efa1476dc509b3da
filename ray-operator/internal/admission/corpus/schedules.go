package corpus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

type (
	schedule     = v1beta1.ClusterJobSchedule
	scheduleRow  = Row[*schedule]
	scheduleEdit = func(*schedule)
)

// inSchedule begins the names of rows about the jobs that a schedule describes.
const inSchedule = "a schedule's job: "

// Schedules are ClusterJobSchedules, with one row or more for each side of each of their rules, and one for each row
// about a job's own rules.
func Schedules() Kind[*schedule] {
	return newKind(Kind[*schedule]{
		Good: GoodSchedule, Rows: slices.Concat(ScheduleRows(), scheduledJobs()),
		kind: "ClusterJobSchedule",
		// Those of its jobs are a job's.
		pods: func(*schedule) []*corev1.Pod { return nil },
	})
}

// GoodSchedule runs a good job each night.
func GoodSchedule() *schedule {
	return &schedule{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ClusterJobSchedule"},
		ObjectMeta: metav1.ObjectMeta{Name: "nightly"},
		Spec: v1beta1.ClusterJobScheduleSpec{
			Schedule: "0 2 * * *", JobTemplate: v1beta1.JobTemplate{Spec: GoodJob().Spec},
		},
	}
}

// scheduledJobs are the rows about jobs, said of those that a schedule describes. What a job must not change, a
// template may; its name is made by the operator.
func scheduledJobs() []scheduleRow {
	var all []scheduleRow
	for _, r := range JobRows() {
		if r.Before != nil || r.Rule == "job-name" {
			continue
		}
		derived := scheduleRow{Name: inSchedule + r.Name, Rule: r.Rule, Edit: ofScheduled(r.Edit)}
		described := GoodSchedule()
		if derived.Edit(described); described.Spec.JobTemplate.Spec.Suspend != nil && *described.Spec.JobTemplate.Spec.Suspend {
			derived.Rule = "job-template-suspend"
		}
		all = append(all, derived)
	}
	return all
}

// ofScheduled edits the jobs that a schedule describes.
func ofScheduled(edit jobEdit) scheduleEdit {
	return func(s *schedule) {
		described := &job{Spec: s.Spec.JobTemplate.Spec}
		edit(described)
		s.Spec.JobTemplate.Spec = described.Spec
	}
}

func timed(cron string) scheduleEdit { return func(s *schedule) { s.Spec.Schedule = cron } }

func inZone(name string) scheduleEdit { return func(s *schedule) { s.Spec.TimeZone = name } }

func scheduledMeta(labels, annotations map[string]string) scheduleEdit {
	return func(s *schedule) {
		s.Spec.JobTemplate.Metadata = v1beta1.TemplateMetadata{Labels: labels, Annotations: annotations}
	}
}

// ScheduleRows are the rows about a schedule's own rules.
func ScheduleRows() []Row[*schedule] {
	return slices.Concat(scheduleRows, cronRows("schedule-cron", badCrons), cronRows("", goodCrons))
}

var scheduleRows = []scheduleRow{
	{Name: "a good schedule", Edit: func(*schedule) {}},
	{Name: "a full schedule", Edit: both(inZone("Europe/Berlin"), scheduledMeta(some, some), func(s *schedule) {
		s.Spec.ConcurrencyPolicy, s.Spec.StartingDeadlineSeconds = v1beta1.ConcurrencyReplace, ptr(int32(1))
		s.Spec.SuccessfulJobsHistoryLimit, s.Spec.FailedJobsHistoryLimit, s.Spec.Suspend = ptr(int32(0)), ptr(int32(1000)), new(true)
	})},
	{Name: "a schedule's name of 52", Edit: func(s *schedule) { s.Name = long(52) }},
	{Name: "a schedule's name of 53", Rule: "schedule-name", Edit: func(s *schedule) { s.Name = long(53) }},
	{Name: "a schedule's name with a dot", Rule: "schedule-name", Edit: func(s *schedule) { s.Name = "a.b" }},
	{Name: "no schedule", Rule: "required", Edit: timed("")},
	{Name: "a schedule too long", Rule: "long-text", Edit: timed("0 0 * * 1,2" + long(200))},
	{Name: "no time to start in", Rule: "out-of-bounds", Edit: func(s *schedule) { s.Spec.StartingDeadlineSeconds = ptr(int32(0)) }},
	{Name: "too much history", Rule: "out-of-bounds", Edit: func(s *schedule) { s.Spec.FailedJobsHistoryLimit = ptr(int32(1001)) }},
	{Name: "a policy that is none", Rule: "unknown-word", Edit: func(s *schedule) { s.Spec.ConcurrencyPolicy = "Queue" }},
	{Name: "a zone", Edit: inZone("America/Argentina/Buenos_Aires")},
	{Name: "a zone by its offset", Edit: inZone("Etc/GMT+5")},
	{Name: "the zone of the operator", Rule: "schedule-zone", Edit: inZone("Local")},
	{Name: "a zone by a path", Rule: "schedule-zone", Edit: inZone("../Europe")},
	{Name: "an offset", Rule: "schedule-zone", Edit: inZone("+02:00")},
	{Name: "jobs that are suspended", Rule: "job-template-suspend", Edit: ofScheduled(suspended)},
	{Name: "labels of a schedule's jobs", Edit: scheduledMeta(some, map[string]string{"Example.com/A": "a b\n"})},
	{Name: "a label of ours on a schedule's jobs", Rule: "job-template-metadata", Edit: scheduledMeta(ours, nil)},
	{Name: "an annotation of ours on a schedule's jobs", Rule: "job-template-metadata", Edit: scheduledMeta(nil, ours)},
	{Name: "a label's value on a schedule's jobs", Rule: "job-template-labels", Edit: scheduledMeta(badValue, nil)},
	{Name: "an annotation's key on a schedule's jobs", Rule: "job-template-annotations", Edit: scheduledMeta(nil, badKey)},
	{Name: "other jobs from now on", Before: func(*schedule) {}, Edit: ofScheduled(ownCluster)},
	{Name: "jobs of another manager from now on", Before: ofScheduled(jobManaged("a.b/c")), Edit: ofScheduled(jobManaged("a.b/d"))},
	{Name: "a cluster of the jobs that only the policy refuses", Rule: "option-name", Edit: ofScheduled(ofCluster(option("Port", "")))},
}

var goodCrons = []string{
	"* * * * *", "*/5 * * * *", "0 2 * * mon-fri", "59 23 31 12 6", "0,30 9-17/2 1,15 JAN,Jul ?", "0  4   * *  *", " 0 4 * * * ",
	"00 04 01 01 00", "@hourly", "@daily", "30-10 * * * *", "0 0 30 2 *",
}

var badCrons = []string{
	"60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 7", "* * * *", "* * * * * *", "@every 1h", "@Daily",
	"TZ=UTC 0 2 * * *", "0 2 * * funday", "1- * * * *", "*/0 * * * *", "*/100 * * * *", "-5 * * * *", "0\t2 * * *", "1,,2 * * * *", "tomorrow",
}

func cronRows(rule string, crons []string) []scheduleRow {
	var all []scheduleRow
	for _, cron := range crons {
		all = append(all, scheduleRow{Name: "the schedule " + cron, Rule: rule, Edit: timed(cron)})
	}
	return all
}
