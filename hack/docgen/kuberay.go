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

// sections are the tables of KubeRay's fields, by what their rules have in common.
var sections = []struct {
	title string
	holds func(r *convert.Rule) bool
}{
	{"Clusters: below spec of a RayCluster, rayClusterSpec, rayClusterConfig",
		func(r *convert.Rule) bool { return r.Kind == "" && !isKey(r) }},
	{"RayJob", func(r *convert.Rule) bool { return r.Kind == "RayJob" }},
	{"RayService", func(r *convert.Rule) bool { return r.Kind == "RayService" }},
	{"RayCronJob", func(r *convert.Rule) bool { return r.Kind == "RayCronJob" }},
	{"Labels and annotations", isKey},
}

func isKey(r *convert.Rule) bool { return strings.HasPrefix(r.Path, "metadata.") }

// kuberayPage returns the reference of what becomes of KubeRay's fields, a table for each kind.
func kuberayPage(rules []convert.Rule) string {
	var text strings.Builder
	text.WriteString(openingOfKubeRay)
	for _, section := range sections {
		var rows [][]string
		for i := range rules {
			if section.holds(&rules[i]) {
				rows = append(rows, kuberayRow(&rules[i]))
			}
		}
		fmt.Fprintf(&text, "\n## %s\n\n", section.title)
		writeTable(&text, "| field | becomes | verdict | |", rows)
	}
	return text.String()
}

func kuberayRow(r *convert.Rule) []string {
	to, verdict := "", string(r.Verdict)
	if r.To != "" {
		to = "`" + r.To + "`"
	}
	if r.Differs {
		verdict += ", differs"
	}
	return []string{"`" + r.Path + "`", to, verdict, r.Text}
}
