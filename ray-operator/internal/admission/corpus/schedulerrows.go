package corpus

import "github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"

// placedBy has a cluster placed as a gang.
func placedBy(name v1beta1.SchedulerKind, changes ...func(*v1beta1.Scheduler)) edit {
	return spec(func(s *v1beta1.ComputeClusterSpec) {
		s.Scheduler = &v1beta1.Scheduler{Name: name}
		for _, change := range changes {
			change(s.Scheduler)
		}
	})
}

func inQueue(name string) func(*v1beta1.Scheduler) {
	return func(s *v1beta1.Scheduler) { s.Queue = name }
}

func runningAs(name string) func(*v1beta1.Scheduler) {
	return func(s *v1beta1.Scheduler) { s.SchedulerName = name }
}

var schedulerRows = []row{
	{Name: "Volcano with a queue", Edit: placedBy(v1beta1.SchedulerVolcano, inQueue("team-a"))},
	{Name: "YuniKorn with a queue below another", Edit: placedBy(v1beta1.SchedulerYuniKorn, inQueue("root.Team_a"))},
	{Name: "KAI under another name", Edit: placedBy(v1beta1.SchedulerKAI, runningAs("kai.mine"))},
	{Name: "scheduler-plugins", Edit: placedBy(v1beta1.SchedulerPlugins)},
	{Name: "Kubernetes' own gangs", Edit: placedBy(v1beta1.SchedulerKubernetes)},
	{Name: "an unknown scheduler", Rule: "unknown-word", Edit: placedBy("Slurm")},
	{Name: "a queue of Kubernetes' own", Rule: "scheduler-no-queue", Edit: placedBy(v1beta1.SchedulerKubernetes, inQueue("a"))},
	{Name: "a queue of scheduler-plugins", Rule: "scheduler-no-queue", Edit: placedBy(v1beta1.SchedulerPlugins, inQueue("a"))},
	{Name: "a queue with a slash", Rule: "scheduler-queue", Edit: placedBy(v1beta1.SchedulerVolcano, inQueue("a/b"))},
	{Name: "a scheduler with a capital", Rule: "scheduler-name", Edit: placedBy(v1beta1.SchedulerVolcano, runningAs("Volcano"))},
	{Name: "the scheduler kept", Before: placedBy(v1beta1.SchedulerKAI), Edit: placedBy(v1beta1.SchedulerKAI)},
	{Name: "the scheduler changed", Rule: "scheduler-fixed", Before: placedBy(v1beta1.SchedulerKAI), Edit: placedBy(v1beta1.SchedulerVolcano)},
	{
		Name: "the queue changed", Rule: "scheduler-fixed",
		Before: placedBy(v1beta1.SchedulerKAI, inQueue("a")), Edit: placedBy(v1beta1.SchedulerKAI, inQueue("b")),
	},
	{Name: "the scheduler taken away", Rule: "scheduler-fixed", Before: placedBy(v1beta1.SchedulerKAI), Edit: spec(func(s *v1beta1.ComputeClusterSpec) { s.Scheduler = nil })},
	{Name: "the scheduler given later", Rule: "scheduler-fixed", Before: func(*cluster) {}, Edit: placedBy(v1beta1.SchedulerKAI)},
	{Name: "a template's own scheduler", Edit: template(func(t *tmpl, _ *container) { t.Spec.SchedulerName = "mine" })},
	{
		Name: "a template's own scheduler beside one", Rule: "scheduler-template",
		Edit: both(placedBy(v1beta1.SchedulerVolcano), template(func(t *tmpl, _ *container) { t.Spec.SchedulerName = "mine" })),
	},
}
