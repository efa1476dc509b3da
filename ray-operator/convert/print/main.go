// Command print writes the reference of what becomes of KubeRay's fields.
//
// In: the rules of package convert. Out, on standard output: a page in Markdown with a table for each kind. It must never
// say anything that the rules do not.
package main

import (
	"fmt"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
)

func main() { fmt.Print(page(convert.Rules())) }

const opening = `# KubeRay's fields

Generated from the rules by "make generate"; do not edit.

What ` + "`heliostat convert`" + ` makes of each field of ray.io/v1, and ` + "`heliostat convert --explain FIELD`" + ` prints.
[From KubeRay](../from-kuberay.md) says how to migrate. Below *template* and within whole Services everything is kept but what
is named.

*kept*: the same, maybe under another name. *changed*: another value or another effect. *dropped*: no counterpart. *refused*:
the object is not converted. *differs*: the result behaves otherwise.
`

// sections are the tables of the page, by what their rules have in common.
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

func page(rules []convert.Rule) string {
	var text strings.Builder
	text.WriteString(opening)
	for _, section := range sections {
		fmt.Fprintf(&text, "\n## %s\n\n| field | becomes | verdict | |\n|---|---|---|---|\n", section.title)
		for i := range rules {
			if section.holds(&rules[i]) {
				text.WriteString(row(&rules[i]))
			}
		}
	}
	return text.String()
}

func row(r *convert.Rule) string {
	to, verdict := "", string(r.Verdict)
	if r.To != "" {
		to = "`" + r.To + "`"
	}
	if r.Differs {
		verdict += ", differs"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", r.Path, to, verdict, strings.ReplaceAll(r.Text, "|", `\|`))
}
