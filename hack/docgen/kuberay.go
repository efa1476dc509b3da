package main

import (
	"fmt"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
)

const openingOfKubeRay = `# KubeRay's fields

Generated from the rules by "make generate"; do not edit.

What ` + "`heliostat convert`" + ` makes of each field of ray.io/v1, and ` + "`heliostat convert --explain FIELD`" + ` prints.
[From KubeRay](../from-kuberay.md) says how to migrate. Below *template* and within whole Services everything is kept but what
is named.

*kept*: the same, maybe under another name. *changed*: another value or another effect. *dropped*: no counterpart. *refused*:
the object is not converted. *differs*: the result behaves otherwise.
`

// section is a table of fields whose rules have something in common.
type section struct {
	title string
	holds func(r *convert.Rule) bool
}

// sections are the tables of KubeRay's fields.
var sections = []section{
	{"Clusters: below spec of a RayCluster, rayClusterSpec, rayClusterConfig",
		func(r *convert.Rule) bool { return r.Kind == "" && !isKey(r) }},
	{"RayJob", func(r *convert.Rule) bool { return r.Kind == "RayJob" }},
	{"RayService", func(r *convert.Rule) bool { return r.Kind == "RayService" }},
	{"RayCronJob", func(r *convert.Rule) bool { return r.Kind == "RayCronJob" }},
	{"Labels and annotations", isKey},
}

func isKey(r *convert.Rule) bool { return strings.HasPrefix(r.Path, "metadata.") }

// kuberayPage returns the reference of what becomes of KubeRay's fields, a table for each kind.
func kuberayPage(rules []convert.Rule) string { return fieldsPage(openingOfKubeRay, sections, rules) }

const openingOfKubeflow = `# Kubeflow's fields

Generated from the rules by "make generate"; do not edit.

What ` + "`heliostat convert`" + ` makes of each field of Kubeflow's jobs, of Spark's and of Katib's, and ` + "`heliostat convert --explain KIND.FIELD`" + ` prints.
[From Kubeflow](../from-kubeflow.md) says how to migrate. ` + "`{}`" + ` stands for any role.

*kept*: the same, maybe under another name. *changed*: another value or another effect. *dropped*: no counterpart. *refused*:
the object is not converted. *differs*: the result behaves otherwise.
`

// kubeflowPage returns the reference of how the fields of Kubeflow's jobs are converted, a table for each kind.
func kubeflowPage(rules []convert.Rule) string {
	tables := []section{{"Every job of kubeflow.org", func(r *convert.Rule) bool { return r.Kind == convert.KubeflowJobs }}}
	for _, kind := range convert.Sources() {
		if kind.Group != "ray.io" && kind.Name != "ClusterTrainingRuntime" { // which has the fields of a TrainingRuntime
			tables = append(tables, section{kind.Name, func(r *convert.Rule) bool { return r.Kind == kind.Name }})
		}
	}
	tables = append(tables, section{"Job, in an Experiment", func(r *convert.Rule) bool { return r.Kind == "Job" }})
	return fieldsPage(openingOfKubeflow, tables, rules)
}

// fieldsPage returns a page with tables of rules.
func fieldsPage(opening string, tables []section, rules []convert.Rule) string {
	var text strings.Builder
	text.WriteString(opening)
	for _, section := range tables {
		var rows [][]string
		for i := range rules {
			if section.holds(&rules[i]) {
				rows = append(rows, fieldRow(&rules[i]))
			}
		}
		fmt.Fprintf(&text, "\n## %s\n\n", section.title)
		writeTable(&text, "| field | becomes | verdict | |", rows)
	}
	return text.String()
}

func fieldRow(r *convert.Rule) []string {
	to, verdict := "", string(r.Verdict)
	if r.To != "" {
		to = "`" + r.To + "`"
	}
	if r.Differs {
		verdict += ", differs"
	}
	return []string{"`" + r.Path + "`", to, verdict, r.Text}
}
