package validate

import (
	"regexp"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var (
	schedulerPath = field.NewPath("spec", "scheduler")
	queueName     = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?$`)
	schedulerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
)

// placed asks only clusters with a scheduler.
func placed(check func(s *v1beta1.Scheduler, bad report)) func(*v1beta1.ComputeCluster, report) {
	return func(c *v1beta1.ComputeCluster, bad report) {
		if c.Spec.Scheduler != nil {
			check(c.Spec.Scheduler, bad)
		}
	}
}

// schedulerRules are about who places a cluster's pods as one gang.
var schedulerRules = []Rule{
	{
		ID: "scheduler-fixed", Field: "spec.scheduler", By: Expression,
		Refused: "scheduler is immutable", Remedy: "create a new cluster",
		change: func(before, after *v1beta1.ComputeCluster, bad report) {
			if !equality.Semantic.DeepEqual(before.Spec.Scheduler, after.Spec.Scheduler) {
				bad.at(schedulerPath, nil)
			}
		},
	},
	{
		ID: "scheduler-no-queue", Field: "spec.scheduler.queue", By: Expression,
		Refused: "queue must not be set with SchedulerPlugins and Kubernetes, which have no queues", Remedy: "leave queue out",
		cluster: placed(func(s *v1beta1.Scheduler, bad report) {
			if s.Queue != "" && (s.Name == v1beta1.SchedulerPlugins || s.Name == v1beta1.SchedulerKubernetes) {
				bad.at(schedulerPath.Child("queue"), nil)
			}
		}),
	},
	{
		ID: "scheduler-queue", Field: "spec.scheduler.queue", By: Expression,
		Refused: "queue must be letters, digits, '-', '_' and '.', with a letter or digit first and last", Remedy: "give the name of a queue of that scheduler",
		cluster: placed(func(s *v1beta1.Scheduler, bad report) {
			if s.Queue != "" && !queueName.MatchString(s.Queue) {
				bad.at(schedulerPath.Child("queue"), s.Queue)
			}
		}),
	},
	{
		ID: "scheduler-name", Field: "spec.scheduler.schedulerName", By: Expression,
		Refused: "schedulerName must be lower-case letters, digits, '-' and '.', with a letter or digit first and last",
		Remedy:  "give the name that the scheduler was started with",
		cluster: placed(func(s *v1beta1.Scheduler, bad report) {
			if s.SchedulerName != "" && !schedulerName.MatchString(s.SchedulerName) {
				bad.at(schedulerPath.Child("schedulerName"), s.SchedulerName)
			}
		}),
	},
	{
		ID: "scheduler-template", Field: "NODE.template.spec.schedulerName", By: Policy,
		Refused: "schedulerName must not be set in a template with spec.scheduler", Remedy: "leave schedulerName out, or name it in spec.scheduler",
		Holds: "!has(variables.cluster.scheduler) || n.pod.?schedulerName.orValue('') == ''",
		inner: flag("schedulerName", func(n *node) bool { return n.cluster.Spec.Scheduler != nil && n.pod.SchedulerName != "" }),
	},
}
