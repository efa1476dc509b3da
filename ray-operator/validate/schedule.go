package validate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// ScheduleRules are the rules about a schedule beside JobTemplateRules and Rules, which hold for the jobs and the
// clusters that it describes.
func ScheduleRules() []Rule { return slices.Concat(scheduleExpressions, scheduleRules) }

// JobTemplateRules are the rules about a job as they hold for those of a schedule: their fields and expressions lie
// below its jobTemplate. Those about changes are left out, because of a changed template other jobs are made.
func JobTemplateRules() []Rule {
	var all []Rule
	for _, rule := range ownOfJobs {
		if rule.IsOfChange || rule.jobChange != nil || rule.ID == "job-name" {
			continue
		}
		rule.Field = strings.ReplaceAll(rule.Field, "spec.", aboveJob+"spec.")
		if rule.Field == "spec" {
			rule.Field = aboveJob + "spec"
		}
		rule.Holds = strings.ReplaceAll(rule.Holds, "object.spec", "object."+aboveJob+"spec")
		rule.At = strings.ReplaceAll(rule.At, "'spec.", "'"+aboveJob+"spec.")
		all = append(all, rule)
	}
	return all
}

// Schedule returns all that is wrong with a schedule, but for what the CRD alone refuses: with its jobs first, which are refused where a ClusterJob would
// be, with the same words. Nothing of a schedule is immutable.
func Schedule(schedule *v1beta1.ClusterJobSchedule) Findings {
	job := &v1beta1.ClusterJob{Spec: schedule.Spec.JobTemplate.Spec}
	job.Name = "named-by-the-operator"
	found := Job(job)
	for i := range found {
		found[i].Path = aboveJob + found[i].Path
	}
	for i := range scheduleRules {
		scheduleRules[i].schedule(schedule, report{rule: &scheduleRules[i], found: &found})
	}
	return found
}

// aboveJob is what stands before the path of a field of the jobs that a schedule describes.
const aboveJob = "spec.jobTemplate."

var (
	schedulePath    = specPath.Child("schedule")
	jobTemplatePath = specPath.Child("jobTemplate")
	jobTemplateMeta = jobTemplatePath.Child("metadata")
)

// The form of a schedule: a word, or entries of five fields.
var (
	cronWord   = regexp.MustCompile(`^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$`)
	cronFields = []*regexp.Regexp{
		cronField(`[0-5]?[0-9]`),
		cronField(`[01]?[0-9]|2[0-3]`),
		cronField(`0?[1-9]|[12][0-9]|3[01]`),
		cronField(`(?i:0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)`),
		cronField(`(?i:0?[0-6]|sun|mon|tue|wed|thu|fri|sat)`),
	}
)

// cronField matches an entry of a field of cron, where these are its values.
func cronField(values string) *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`^([*?]|(%[1]s)(-(%[1]s))?)(/[1-9][0-9]?)?$`, values))
}

// isCron reports whether a text has the form of a schedule. Whether its ranges rise, and whether it ever comes, it does
// not say.
func isCron(text string) bool {
	fields := slices.DeleteFunc(strings.Split(text, " "), func(field string) bool { return field == "" })
	if cronWord.MatchString(text) || len(fields) != len(cronFields) {
		return cronWord.MatchString(text)
	}
	for i, entries := range fields {
		for entry := range strings.SplitSeq(entries, ",") {
			if !cronFields[i].MatchString(entry) {
				return false
			}
		}
	}
	return true
}

// goodCron is the counterpart of isCron.
func goodCron() string {
	checks := []string{fmt.Sprintf("f.size() == %d", len(cronFields))}
	for i, entry := range cronFields {
		checks = append(checks, fmt.Sprintf("f[%d].split(',').all(e, e.matches('%s'))", i, entry))
	}
	return "object.spec.schedule.matches('" + cronWord.String() + "') || " +
		"[object.spec.schedule.split(' ').filter(f, f != '')].all(f, " + strings.Join(checks, " && ") + ")"
}

const (
	ofJobLabels      = "object.spec.jobTemplate.?metadata.?labels.orValue({})"
	ofJobAnnotations = "object.spec.jobTemplate.?metadata.?annotations.orValue({})"
)

// scheduleRules are about a schedule as a whole, beside those of the CRD.
var scheduleRules = []Rule{
	{
		ID: "schedule-cron", Field: "spec.schedule", By: Policy, Holds: goodCron(),
		Refused: "a schedule must be five fields of cron (minute, hour, day of the month, month, day of the week from 0 to 6), or a word such as @daily",
		Remedy:  "correct it, such as 0 2 * * *",
		schedule: func(s *v1beta1.ClusterJobSchedule, bad report) {
			if s.Spec.Schedule != "" && !isCron(s.Spec.Schedule) {
				bad.at(schedulePath, s.Spec.Schedule)
			}
		},
	},
	{
		ID: "job-template-labels", Field: "spec.jobTemplate.metadata.labels", By: Policy,
		Refused: labelGrammar, Remedy: "correct the key or the value", Holds: fmt.Sprintf(goodLabels, ofJobLabels),
		schedule: func(s *v1beta1.ClusterJobSchedule, bad report) {
			labels := s.Spec.JobTemplate.Metadata.Labels
			keys(bad, jobTemplateMeta, "labels", labels, badLabels(labels))
		},
	},
	{
		ID: "job-template-annotations", Field: "spec.jobTemplate.metadata.annotations", By: Policy,
		Refused: "a key of an annotation must have Kubernetes' syntax",
		Remedy:  "use letters, digits, '-', '_' and '.', at most 63, with an optional DNS prefix and '/'",
		Holds:   fmt.Sprintf(goodAnnotations, ofJobAnnotations),
		schedule: func(s *v1beta1.ClusterJobSchedule, bad report) {
			keys(bad, jobTemplateMeta, "annotations", s.Spec.JobTemplate.Metadata.Annotations, badAnnotation)
		},
	},
}
