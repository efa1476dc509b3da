package convert

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// sparkSchedule converts a ScheduledSparkApplication. Its applications are converted as ones of their own would be.
func sparkSchedule(c *conversion, spec *sparkScheduleSpec) runtime.Object {
	one := int32(1)
	schedule := &v1beta1.ClusterJobSchedule{TypeMeta: typeMeta("ClusterJobSchedule"), ObjectMeta: c.meta}
	made := &schedule.Spec
	*made = v1beta1.ClusterJobScheduleSpec{
		Schedule: atFixedTimes(c, spec.Schedule), TimeZone: spec.TimeZone, Suspend: ifTrue(spec.Suspend), ConcurrencyPolicy: v1beta1.ConcurrencyPolicy(spec.ConcurrencyPolicy),
		SuccessfulJobsHistoryLimit: spec.SuccessfulRunHistoryLimit, FailedJobsHistoryLimit: spec.FailedRunHistoryLimit,
	}
	if made.SuccessfulJobsHistoryLimit == nil {
		made.SuccessfulJobsHistoryLimit = &one
	}
	part := &nested{
		kind: kindSpark, apiVersion: c.from.GetAPIVersion(), spec: spec.Template, at: "spec.template", to: "jobTemplate.spec.", meta: c.meta,
	}
	job := part.convert(c)
	if job == nil {
		return nil
	}
	if job.Spec.Suspend != nil {
		job.Spec.Suspend = nil
		c.drop("spec.template.suspend", "a schedule suspends no job; suspend the schedule")
	}
	made.JobTemplate.Spec = job.Spec
	return schedule
}

// atFixedTimes writes an interval as the times of a schedule, where it divides an hour or a day.
func atFixedTimes(c *conversion, schedule string) string {
	text, is := strings.CutPrefix(strings.TrimSpace(schedule), "@every ")
	interval, err := time.ParseDuration(strings.TrimSpace(text))
	if !is || err != nil {
		return schedule
	}
	minutes, hours := int(interval/time.Minute), int(interval/time.Hour)
	made := ""
	switch {
	case minutes < 1 || interval%time.Minute != 0:
	case minutes == 1:
		made = "* * * * *"
	case minutes < 60 && 60%minutes == 0:
		made = fmt.Sprintf("*/%d * * * *", minutes)
	case minutes == 60:
		made = "0 * * * *"
	case interval%time.Hour == 0 && hours < 24 && 24%hours == 0:
		made = fmt.Sprintf("0 */%d * * *", hours)
	case hours == 24 && interval%time.Hour == 0:
		made = "0 0 * * *"
	}
	if made == "" {
		c.refuse("spec.schedule", "the interval has no times of its own, as it divides no hour and no day; write times in cron's form")
		return schedule
	}
	c.change("spec.schedule", "schedule", fmt.Sprintf("it becomes %q: times of the clock, and not intervals from the object's creation", made))
	return made
}
