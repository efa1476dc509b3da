package main

import (
	"fmt"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const openingOfReasons = `# Reasons

Generated from the catalogue by "make generate"; do not edit.

Reasons of conditions, worker groups and events. Programs compare codes; messages are for people and may change. In a
message … stands for a name or text, and N for a number. A message about pods begins with their number and group, such as
"3 of 8 workers of gpu:". *Warning* needs a user, *Progress* resolves by itself, *Fine* needs nothing. If several apply, a
condition has the first in this list of the highest severity. A worker group has the reason of most of its workers.
`

// placeholders are what stands for names and numbers in texts of the catalogue.
var placeholders = strings.NewReplacer("%s", "…", "%d", "N")

// reasonsPage returns the reference of reasons: each code, when it is used, its message and its remedy.
func reasonsPage(sections []reason.Section) string {
	var text strings.Builder
	text.WriteString(openingOfReasons)
	for _, section := range sections {
		var rows [][]string
		for _, r := range section.Reasons {
			code := fmt.Sprintf("<a id=%q></a>`%s`", strings.ToLower(r.Code), r.Code)
			rows = append(rows, []string{code, r.Severity.String(), r.When, placeholders.Replace(r.Message), placeholders.Replace(remedies(r))})
		}
		fmt.Fprintf(&text, "\n## %s\n\n", section.Title)
		writeTable(&text, "| code | severity | when | message | remedy |", rows)
	}
	return text.String()
}

// remedies are all that a reason may end with, one per line.
func remedies(r reason.Reason) string {
	var all []string
	for _, c := range r.Cases {
		all = append(all, "*"+c.Kind+"*: "+c.Remedy)
	}
	switch {
	case r.Remedy != "" && len(all) > 0:
		all = append(all, "otherwise: "+r.Remedy)
	case r.Remedy != "":
		return r.Remedy
	}
	return strings.Join(all, "<br>")
}
