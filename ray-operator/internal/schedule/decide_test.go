package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// today reads a time of 2026-05-08.
func today(text string) time.Time {
	at, err := time.Parse("2006-01-02 15:04:05", "2026-05-08 "+text)
	if err != nil {
		panic(err)
	}
	return at
}

// hourly is a schedule that was made in the night, and last looked at by a pass at 9.
func hourly(edits ...func(*v1beta1.ClusterJobSchedule)) *v1beta1.ClusterJobSchedule {
	schedule := &v1beta1.ClusterJobSchedule{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "report", UID: "u", Generation: 3, CreationTimestamp: metav1.NewTime(today("00:10:00")),
		},
		Spec: v1beta1.ClusterJobScheduleSpec{Schedule: "0 * * * *", JobTemplate: v1beta1.JobTemplate{Spec: v1beta1.ClusterJobSpec{
			ClusterRef: &v1beta1.ClusterReference{Name: "demo"}, Entrypoint: "python report.py",
		}}},
	}
	record := Record{Version: recordVersion, Of: "u", Times: timesOf(&schedule.Spec), Through: today("09:00:00").Unix()}
	schedule.Annotations = map[string]string{v1beta1.AnnotationRecord: record.String()}
	for _, edit := range edits {
		edit(schedule)
	}
	return schedule
}

func spec(edit func(*v1beta1.ClusterJobScheduleSpec)) func(*v1beta1.ClusterJobSchedule) {
	return func(s *v1beta1.ClusterJobSchedule) { edit(&s.Spec) }
}

func policy(policy v1beta1.ConcurrencyPolicy) func(*v1beta1.ClusterJobSchedule) {
	return spec(func(s *v1beta1.ClusterJobScheduleSpec) { s.ConcurrencyPolicy = policy })
}

func deadline(seconds int32) func(*v1beta1.ClusterJobSchedule) {
	return spec(func(s *v1beta1.ClusterJobScheduleSpec) { s.StartingDeadlineSeconds = &seconds })
}

func withoutRecord(s *v1beta1.ClusterJobSchedule) { s.Annotations = nil }

func suspended(s *v1beta1.ClusterJobSchedule) { s.Spec.Suspend = new(true) }

// jobs are those for hours of the day: "7+" succeeded, "8-" failed, "9" runs, "9x" is being deleted.
func jobs(words string) []v1beta1.ClusterJob {
	var all []v1beta1.ClusterJob
	for word := range strings.FieldsSeq(words) {
		var hour int
		_, _ = fmt.Sscan(strings.TrimRight(word, "+-x"), &hour)
		job := v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Name: jobAt(hour)}}
		end := metav1.NewTime(today("00:10:00").Add(time.Duration(hour) * time.Hour))
		switch word[len(word)-1] {
		case '+':
			job.Status.EndTime = &end
			job.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionComplete, Status: metav1.ConditionTrue}}
		case '-':
			job.Status.EndTime = &end
		case 'x':
			job.DeletionTimestamp = &end
		}
		all = append(all, job)
	}
	return all
}

func jobAt(hour int) string {
	return naming.ScheduledJob("report", today("00:00:00").Add(time.Duration(hour)*time.Hour))
}

// describe is a plan in a few words, with hours for jobs.
func describe(plan Plan) string {
	words := []string{plan.State.Code}
	if !plan.Start.IsZero() {
		words = append(words, "start "+plan.Start.UTC().Format("15"))
	}
	for _, job := range plan.Delete {
		at, _ := naming.ScheduledTime("report", job.Name)
		words = append(words, "delete "+at.Format("15"))
	}
	for _, event := range plan.Events {
		words = append(words, event.Finding.Code)
	}
	words = append(words, "through "+time.Unix(plan.Record.Through, 0).UTC().Format("15:04"))
	if !plan.Next.IsZero() {
		words = append(words, "next "+plan.Next.UTC().Format("15:04"))
	}
	return strings.Join(append(words, "wake "+plan.Wake.String()), ", ")
}

func TestDecide(t *testing.T) {
	number := func(value int32) *int32 { return &value }
	for name, test := range map[string]struct {
		schedule *v1beta1.ClusterJobSchedule
		jobs     string
		now      string
		want     string
	}{
		"before a time":             {hourly(), "9+", "09:59:30", "ScheduleActive, through 09:00, next 10:00, wake 30s"},
		"long before":               {hourly(), "9+", "09:10:00", "ScheduleActive, through 09:00, next 10:00, wake 10m0s"},
		"at a time":                 {hourly(), "9+", "10:00:00", "ScheduleActive, start 10, JobStarted, through 10:00, next 11:00, wake 10m0s"},
		"several missed":            {hourly(), "", "13:30:00", "ScheduleActive, start 13, JobStarted, through 13:00, next 14:00, wake 10m0s"},
		"within the deadline":       {hourly(deadline(60)), "", "10:01:00", "ScheduleActive, start 10, JobStarted, through 10:00, next 11:00, wake 1s"},
		"beyond the deadline":       {hourly(deadline(60)), "", "10:01:01", "ScheduleActive, StartMissed, through 10:00, next 11:00, wake 10m0s"},
		"the job is there already":  {hourly(), "10", "10:00:05", "ScheduleActive, through 10:00, next 11:00, wake 10m0s"},
		"the record is gone":        {hourly(withoutRecord), "9+", "09:30:00", "ScheduleActive, through 09:00, next 10:00, wake 10m0s"},
		"record and jobs are gone":  {hourly(withoutRecord, told("09:00:00")), "", "09:30:00", "ScheduleActive, through 09:00, next 10:00, wake 10m0s"},
		"a new schedule":            {hourly(withoutRecord), "", "00:30:00", "ScheduleActive, through 00:10, next 01:00, wake 10m0s"},
		"a record of another one":   {hourly(func(s *v1beta1.ClusterJobSchedule) { s.UID = "v" }), "", "00:30:00", "ScheduleActive, through 00:10, next 01:00, wake 10m0s"},
		"other times":               {hourly(cronIs("5 * * * *")), "", "10:30:00", "ScheduleActive, through 10:30, next 11:05, wake 10m0s"},
		"another zone":              {hourly(zoneIs("Asia/Kolkata")), "", "10:10:00", "ScheduleActive, through 10:10, next 10:30, wake 10m0s"},
		"suspended":                 {hourly(suspended), "9+", "10:00:00", "ScheduleSuspended, through 10:00, wake 0s"},
		"resumed":                   {resumed(), "", "12:30:00", "ScheduleActive, through 12:30, next 13:00, wake 10m0s"},
		"beside an earlier one":     {hourly(), "9", "10:00:00", "ScheduleActive, start 10, JobStarted, through 10:00, next 11:00, wake 10m0s"},
		"forbidden":                 {hourly(policy("Forbid")), "9", "10:00:00", "PreviousJobActive, through 09:00, next 11:00, wake 10m0s"},
		"forbidden for long":        {hourly(policy("Forbid"), deadline(60)), "9", "10:00:30", "PreviousJobActive, through 09:00, next 11:00, wake 31s"},
		"forbidden for too long":    {hourly(policy("Forbid"), deadline(60)), "9", "10:01:01", "ScheduleActive, StartMissed, through 10:00, next 11:00, wake 10m0s"},
		"allowed again":             {hourly(policy("Forbid")), "9+", "12:40:00", "ScheduleActive, start 12, JobStarted, through 12:00, next 13:00, wake 10m0s"},
		"replaced":                  {hourly(policy("Replace")), "8 9", "10:00:00", "PreviousJobEnding, delete 08, delete 09, JobReplaced, JobReplaced, through 09:00, next 11:00, wake 10m0s"},
		"replaced, and still there": {hourly(policy("Replace")), "9x", "10:00:01", "PreviousJobEnding, through 09:00, next 11:00, wake 10m0s"},
		"replaced and gone":         {hourly(policy("Replace")), "", "10:00:02", "ScheduleActive, start 10, JobStarted, through 10:00, next 11:00, wake 10m0s"},
		"history by default":        {hourly(), "1+ 2+ 3- 4+ 5- 6+ 7-", "09:10:00", "ScheduleActive, delete 01, delete 03, delete 05, through 09:00, next 10:00, wake 10m0s"},
		"no history": {hourly(spec(func(s *v1beta1.ClusterJobScheduleSpec) {
			s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit = number(0), number(0)
		})), "1+ 2- 9", "09:10:00", "ScheduleActive, delete 01, delete 02, through 09:00, next 10:00, wake 10m0s"},
		"a zone that is none":   {hourly(zoneIs("Mars/Olympus")), "", "10:00:00", "TimeZoneUnknown, through 10:00, wake 0s"},
		"a range that falls":    {hourly(cronIs("30-10 * * * *")), "", "10:00:00", "ScheduleUnreadable, through 10:00, wake 0s"},
		"a day that is none":    {hourly(cronIs("0 0 30 2 *")), "", "10:00:00", "ScheduleNeverComes, through 10:00, wake 0s"},
		"a spec that got there": {hourly(cronIs("tomorrow")), "", "10:00:00", "InvalidSpec, through 10:00, wake 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			if have := describe(Decide(test.schedule, jobs(test.jobs), today(test.now))); have != test.want {
				t.Errorf("the plan is\n%s, want\n%s", have, test.want)
			}
		})
	}
}

// TestDecide_RelatesEventsToTheirJobs: the events of one pass that have the same reason count as one unless they relate
// to something apart.
func TestDecide_RelatesEventsToTheirJobs(t *testing.T) {
	plan := Decide(hourly(policy("Replace")), jobs("8 9"), today("10:00:00"))
	if len(plan.Events) != 2 {
		t.Fatalf("two jobs are replaced, and there are the events %+v", plan.Events)
	}
	for i, event := range plan.Events {
		if event.Related != plan.Delete[i] {
			t.Errorf("the event %q relates to %v, want %s", event.Finding.Text, event.Related, plan.Delete[i].Name)
		}
	}
}

func told(last string) func(*v1beta1.ClusterJobSchedule) {
	return func(s *v1beta1.ClusterJobSchedule) {
		at := metav1.NewTime(today(last))
		s.Status.LastScheduleTime = &at
	}
}

func cronIs(text string) func(*v1beta1.ClusterJobSchedule) {
	return spec(func(s *v1beta1.ClusterJobScheduleSpec) { s.Schedule = text })
}

func zoneIs(name string) func(*v1beta1.ClusterJobSchedule) {
	return spec(func(s *v1beta1.ClusterJobScheduleSpec) { s.TimeZone = name })
}

// resumed is the schedule after a pass that saw it suspended.
func resumed() *v1beta1.ClusterJobSchedule {
	schedule := hourly(suspended)
	schedule.Annotations[v1beta1.AnnotationRecord] = Decide(schedule, nil, today("09:30:00")).Record.String()
	schedule.Spec.Suspend = new(false)
	return schedule
}

// TestStatus_SaysWhatIsPlanned: the conditions as kstatus reads them, the times, and the jobs that have not ended.
func TestStatus_SaysWhatIsPlanned(t *testing.T) {
	for name, test := range map[string]struct {
		schedule *v1beta1.ClusterJobSchedule
		jobs     string
		refused  error
		want     string
	}{
		"a start":   {hourly(), "7+ 8- 9", nil, "Ready=True Reconciling=False Stalled=False Suspended=False active 2 last 10:00 success 07:10 next 11:00"},
		"suspended": {hourly(suspended), "9", nil, "Reconciling=False Stalled=False Suspended=True active 1 last 09:00"},
		"stalled":   {hourly(cronIs("0 0 30 2 *")), "", nil, "Ready=False Reconciling=False Stalled=True Suspended=False active 0"},
		"refused":   {hourly(), "9+", fmt.Errorf("quota"), "Ready=False Reconciling=True Stalled=False Suspended=False active 0 last 09:00 success 09:10 next 11:00"},
	} {
		now := today("10:00:00")
		plan := Decide(test.schedule, jobs(test.jobs), now)
		status := Status(test.schedule, jobs(test.jobs), plan, test.refused, now)
		var words []string
		for _, condition := range status.Conditions {
			words = append(words, fmt.Sprintf("%s=%s", condition.Type, condition.Status))
		}
		words = append(words, fmt.Sprint("active ", status.ActiveJobs))
		for _, moment := range []struct {
			word string
			at   *metav1.Time
		}{{"last", status.LastScheduleTime}, {"success", status.LastSuccessfulTime}, {"next", status.NextScheduleTime}} {
			if moment.at != nil {
				words = append(words, moment.word+" "+moment.at.UTC().Format("15:04"))
			}
		}
		if have := strings.Join(words, " "); have != test.want {
			t.Errorf("%s: the status is\n%s, want\n%s", name, have, test.want)
		}
	}
}

func TestNewJob_CarriesItsTime(t *testing.T) {
	schedule := hourly(func(s *v1beta1.ClusterJobSchedule) {
		s.Spec.JobTemplate.Metadata = v1beta1.TemplateMetadata{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"b": "c"}}
	})
	at := today("10:00:00").In(time.FixedZone("", 2*3600))
	job := newJob(schedule, at)
	want := map[string]string{"b": "c", v1beta1.AnnotationScheduledAt: "2026-05-08T12:00:00+02:00"}
	if fmt.Sprint(job.Annotations) != fmt.Sprint(want) || job.Labels["team"] != "a" || job.Labels[v1beta1.LabelSchedule] != "report" {
		t.Errorf("the job has labels %v and annotations %v", job.Labels, job.Annotations)
	}
	if have, is := naming.ScheduledTime("report", job.Name); !is || !have.Equal(at) || !metav1.IsControlledBy(job, schedule) {
		t.Errorf("the job %s of %v stands for %v, %v", job.Name, job.OwnerReferences, have, is)
	}
}

// effects has an edit of each field of the spec.
var effects = map[string]func(*v1beta1.ClusterJobSchedule){
	"schedule":                   cronIs("5 * * * *"),
	"timeZone":                   zoneIs("Asia/Kolkata"),
	"concurrencyPolicy":          policy("Forbid"),
	"startingDeadlineSeconds":    deadline(1),
	"successfulJobsHistoryLimit": spec(func(s *v1beta1.ClusterJobScheduleSpec) { s.SuccessfulJobsHistoryLimit = new(int32(0)) }),
	"failedJobsHistoryLimit":     spec(func(s *v1beta1.ClusterJobScheduleSpec) { s.FailedJobsHistoryLimit = new(int32(0)) }),
	"suspend":                    suspended,
	"jobTemplate":                spec(func(s *v1beta1.ClusterJobScheduleSpec) { s.JobTemplate.Spec.Entrypoint = "python other.py" }),
}

func TestEveryFieldHasAnEffect(t *testing.T) {
	outcome := func(schedule *v1beta1.ClusterJobSchedule) string {
		plan := Decide(schedule, jobs("7+ 8- 9"), today("10:00:30"))
		if plan.Start.IsZero() {
			return describe(plan)
		}
		return describe(plan) + newJob(schedule, plan.Start).Spec.Entrypoint
	}
	for field, edit := range effects {
		if outcome(hourly(edit)) == outcome(hourly()) {
			t.Errorf("%s has no effect", field)
		}
	}
	var fields []string
	for name := range fieldsOf(hourly().Spec) {
		fields = append(fields, name)
	}
	for _, name := range fields {
		if effects[name] == nil {
			t.Errorf("there is no edit of %s", name)
		}
	}
	if slices.Sort(fields); len(fields) != len(effects) {
		t.Errorf("the fields are %v", fields)
	}
}
