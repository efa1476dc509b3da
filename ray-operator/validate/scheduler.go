package validate

// schedulerRules are about who places a cluster's pods as one gang.
var schedulerRules = []Rule{
	{
		ID: "scheduler-template", Field: "NODE.template.spec.schedulerName", By: Policy,
		Refused: "schedulerName must not be set in a template with spec.scheduler", Remedy: "leave schedulerName out, or name it in spec.scheduler",
		Holds: "!has(variables.cluster.scheduler) || n.pod.?schedulerName.orValue('') == ''",
		inner: flag("schedulerName", func(n *node) bool { return n.cluster.Spec.Scheduler != nil && n.pod.SchedulerName != "" }),
	},
}
