package convert

// cronRules are about a RayCronJob beside its jobs.
var cronRules = []Rule{
	{
		Kind: kindCron, Path: "spec.schedule", To: "schedule", Verdict: Kept,
		Text: "@every is refused: it has no times of its own. A time of day that a change of clocks skips or repeats comes once.",
	},
	{Kind: kindCron, Path: "spec.timeZone", To: "timeZone", Verdict: Kept, Text: "The default is UTC."},
	{Kind: kindCron, Path: "spec.suspend", To: "suspend", Verdict: Kept},
	{
		Kind: kindCron, Path: "spec.jobTemplate", To: "jobTemplate.spec", Verdict: Kept, Whole: true,
		Text: "As the spec of a RayJob, with a row for each of its fields that is not kept. Of jobs that have ended, " +
			"successfulJobsHistoryLimit and failedJobsHistoryLimit keep the latest.",
	},
}
