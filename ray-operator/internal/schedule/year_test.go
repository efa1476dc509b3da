package schedule

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cron"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// fieldsOf are the fields of a spec by their names in JSON.
func fieldsOf(spec v1beta1.ClusterJobScheduleSpec) map[string]bool {
	names := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(spec)) {
		names[strings.Split(field.Tag.Get("json"), ",")[0]] = true
	}
	return names
}

// calendar plays an operator and jobs over a year.
type calendar struct {
	t        *testing.T
	schedule *v1beta1.ClusterJobSchedule
	times    cron.Times
	jobs     map[string]v1beta1.ClusterJob
	// started has, by the time that it stands for, when each job started.
	started map[int64]time.Time
	random  *rand.Rand
}

// pass does what a pass does, and returns when the next one comes. Jobs last up to three hours.
func (c *calendar) pass(now time.Time) time.Time {
	c.t.Helper()
	var list []v1beta1.ClusterJob
	wake := now.Add(24 * time.Hour)
	for name, job := range c.jobs {
		if end := job.CreationTimestamp.Add(time.Duration(len(name)+int(job.Generation)) * time.Minute); job.Status.EndTime == nil && !end.After(now) {
			job.Status.EndTime = &metav1.Time{Time: end}
			job.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionComplete, Status: metav1.ConditionTrue}}
			c.jobs[name] = job
		} else if job.Status.EndTime == nil && end.Before(wake) {
			wake = end
		}
		list = append(list, c.jobs[name])
	}
	plan := Decide(c.schedule, list, now)
	if !plan.Start.IsZero() {
		if _, twice := c.started[plan.Start.Unix()]; twice {
			c.t.Errorf("%s started twice, again at %s", plan.Start, now)
		}
		job := newJob(c.schedule, plan.Start)
		job.CreationTimestamp, job.Generation = metav1.NewTime(now), c.random.Int64N(180)
		c.jobs[job.Name], c.started[plan.Start.Unix()] = *job, now
	}
	if c.random.IntN(10) > 0 { // else the operator ends before it writes the record
		c.schedule.Annotations = map[string]string{v1beta1.AnnotationRecord: plan.Record.String()}
	}
	for _, job := range plan.Delete {
		delete(c.jobs, job.Name)
	}
	if c.random.IntN(10) > 0 { // else the status is lost
		c.schedule.Status = Status(c.schedule, list, plan, nil, now)
	}
	if len(plan.Delete) > 0 {
		return now.Add(time.Second)
	}
	next := now.Add(plan.Wake)
	if plan.Wake == longestSleep {
		next = plan.Next // a pass before has nothing to do
	}
	if next.Before(wake) {
		return next
	}
	return wake
}

// TestAYear plays a year in zones whose clocks change on other days, with the operator down for a week in spring and in
// autumn: no time starts twice, none beyond its deadline, and none that was not the latest.
func TestAYear(t *testing.T) {
	policies := []v1beta1.ConcurrencyPolicy{v1beta1.ConcurrencyAllow, v1beta1.ConcurrencyForbid, v1beta1.ConcurrencyReplace}
	for i, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
		for j, schedule := range []string{"30 2 * * *", "45 1 * * *", "0 0,12 * * 1-5", "15 * * * *"} {
			concurrency := policies[(i+j)%len(policies)] // each of them with each schedule
			t.Run(zone+" "+schedule+" "+string(concurrency), func(t *testing.T) { playYear(t, zone, schedule, concurrency) })
		}
	}
}

// late is the deadline of the schedules, which is longer than any job.
const late = 4 * time.Hour

func playYear(t *testing.T, zone, text string, concurrency v1beta1.ConcurrencyPolicy) {
	t.Helper()
	where, err := cron.Zone(zone)
	if err != nil {
		t.Fatal(err)
	}
	times, err := cron.Parse(text, where)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, where)
	c := &calendar{
		t: t, times: times, jobs: map[string]v1beta1.ClusterJob{}, started: map[int64]time.Time{}, random: rand.New(rand.NewPCG(1, 2)),
		schedule: hourly(withoutRecord, cronIs(text), zoneIs(zone), policy(concurrency), deadline(int32(late.Seconds())),
			func(s *v1beta1.ClusterJobSchedule) { s.CreationTimestamp = metav1.NewTime(begin) }),
	}
	down := map[time.Month]int{time.March: 26, time.October: 2} // over the days on which the clocks of two zones change
	for now := begin; now.Before(begin.AddDate(1, 0, 0)); {
		if day, is := down[now.In(where).Month()]; is && now.In(where).Day() >= day {
			delete(down, now.In(where).Month())
			now = now.AddDate(0, 0, 7)
		}
		now = c.pass(now)
	}
	c.judge(begin, concurrency)
}

// judge compares what started with all times of the year.
func (c *calendar) judge(begin time.Time, concurrency v1beta1.ConcurrencyPolicy) {
	c.t.Helper()
	all, missed := map[int64]bool{}, 0
	days := map[string]int{}
	for at := c.times.Next(begin); at.Before(begin.AddDate(1, 0, 0)); at = c.times.Next(at) {
		all[at.Unix()] = true
		days[at.Format(time.DateOnly)]++
		if _, has := c.started[at.Unix()]; !has {
			missed++
		}
	}
	c.judgeStarts(all)
	if most := 16; len(all) < 400 && (len(days) < 364 || len(all) != len(days) || missed > most) {
		c.t.Errorf("%d times on %d days, of which %d were missed, want one a day and at most %d missed", len(all), len(days), missed, most)
	}
	if allowed := len(all) / 20; concurrency == v1beta1.ConcurrencyAllow && missed > allowed {
		c.t.Errorf("%d of %d times were missed, want at most %d", missed, len(all), allowed)
	}
	if text, err := json.Marshal(slicesOf(c.jobs)); err != nil || len(c.jobs) > 12 {
		c.t.Errorf("%d jobs are left: %.300s %v", len(c.jobs), text, err)
	}
}

// judgeStarts compares when jobs started with the times of the schedule.
func (c *calendar) judgeStarts(all map[int64]bool) {
	c.t.Helper()
	for due, at := range c.started {
		switch lag := at.Sub(time.Unix(due, 0)); {
		case !all[due]:
			c.t.Errorf("%s is no time of the schedule", time.Unix(due, 0))
		case lag < 0 || lag > late:
			c.t.Errorf("%s started %s late", time.Unix(due, 0), lag)
		case c.times.Next(time.Unix(due, 0)).Before(at.Add(-time.Second)):
			c.t.Errorf("%s started at %s, when a later time had come", time.Unix(due, 0), at)
		}
	}
}

func slicesOf(jobs map[string]v1beta1.ClusterJob) []string {
	var names []string
	for name := range maps.Keys(jobs) {
		at, _ := naming.ScheduledTime("report", name)
		names = append(names, at.String())
	}
	return names
}
