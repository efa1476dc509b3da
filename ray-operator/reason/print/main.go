// Command print writes the reference of reasons.
//
// In: the catalogue. Out, on standard output: a page in Markdown with each code, when it
// is used, its message and its remedy. It must never say anything that the catalogue
// does not.
package main

import (
	"fmt"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func main() { fmt.Print(page(reason.Sections())) }

const opening = `# Reasons

Generated from the catalogue by "make generate"; do not edit.

Reasons of conditions, worker groups and events. Programs compare codes; messages are for people and may change. In a
message … stands for a name or text, and N for a number. A message about pods begins with their number and group, such as
"3 of 8 workers of gpu:". *Warning* needs a user, *Progress* resolves by itself, *Fine* needs nothing. If several apply, a
condition has the first in this list of the highest severity. A worker group has the reason of most of its workers.
`

func page(sections []reason.Section) string {
	var text strings.Builder
	text.WriteString(opening)
	for _, section := range sections {
		fmt.Fprintf(&text, "\n## %s\n\n| code | severity | when | message | remedy |\n|---|---|---|---|---|\n", section.Title)
		for _, r := range section.Reasons {
			fmt.Fprintf(&text, "| <a id=\"%s\"></a>`%s` | %s | %s | %s | %s |\n",
				strings.ToLower(r.Code), r.Code, r.Severity, cell(r.When), cell(r.Message), remedies(r))
		}
	}
	return text.String()
}

// remedies are all that a reason may end with, one per line.
func remedies(r reason.Reason) string {
	var all []string
	for _, c := range r.Cases {
		all = append(all, "*"+c.Kind+"*: "+cell(c.Remedy))
	}
	if r.Remedy != "" {
		rest := cell(r.Remedy)
		if len(all) > 0 {
			rest = "otherwise: " + rest
		}
		all = append(all, rest)
	}
	return strings.Join(all, "<br>")
}

// cell makes a text fit for a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("%s", "…", "%d", "N", "|", `\|`).Replace(text)
}
