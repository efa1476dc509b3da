package convert

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// convertCronJob converts a RayCronJob. Its jobs are converted as a RayJob of their own would be, and what became of
// their fields is told below jobTemplate.
func convertCronJob(c *conversion, spec *rayCronJobSpec) runtime.Object {
	schedule := &v1beta1.ClusterJobSchedule{TypeMeta: typeMeta("ClusterJobSchedule"), ObjectMeta: c.meta}
	schedule.Spec = v1beta1.ClusterJobScheduleSpec{Schedule: spec.Schedule, TimeZone: spec.TimeZone, Suspend: ifTrue(spec.Suspend)}
	template := c.from.Object["spec"].(map[string]any)["jobTemplate"] //nolint:forcetypeassert // it was read as an object
	jobs := &nested{kind: kindJob, spec: template, at: "spec.jobTemplate", to: "jobTemplate.spec.", meta: c.meta}
	if job := jobs.convert(c); job != nil {
		schedule.Spec.JobTemplate.Spec = job.Spec
	}
	return schedule
}
