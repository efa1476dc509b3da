package convert

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// convertCronJob converts a RayCronJob. Its jobs are converted as a RayJob of their own would be, and what became of
// their fields is told below jobTemplate.
func convertCronJob(c *conversion, spec *rayCronJobSpec) runtime.Object {
	template := c.from.Object["spec"].(map[string]any)["jobTemplate"] //nolint:forcetypeassert // it was read as an object
	jobs := &conversion{
		from: &unstructured.Unstructured{Object: map[string]any{"spec": template}}, kind: kindJob,
		options: c.options, report: report{noted: map[string]bool{}}, meta: c.meta, marks: c.marks, secret: c.secret,
	}
	job := jobs.clusterJob(&spec.JobTemplate)
	jobs.tell(kindJob, template)
	c.secret = jobs.secret
	for _, row := range jobs.rows {
		row.Path = strings.Replace(row.Path, "spec", "spec.jobTemplate", 1)
		if row.To != "" {
			row.To = "jobTemplate.spec." + row.To
		}
		c.note(row)
	}
	schedule := &v1beta1.ClusterJobSchedule{TypeMeta: typeMeta("ClusterJobSchedule"), ObjectMeta: c.meta}
	schedule.Spec = v1beta1.ClusterJobScheduleSpec{Schedule: spec.Schedule, TimeZone: spec.TimeZone, Suspend: ifTrue(spec.Suspend)}
	if made, is := job.(*v1beta1.ClusterJob); is {
		schedule.Spec.JobTemplate.Spec = made.Spec
	}
	return schedule
}
