// Command print writes the reference of a job's phases.
//
// In: the moves that the job controller knows. Out, on standard output: a page in Markdown
// with the diagram of states and a table of the moves. It must never say anything that the
// controller does not know.
package main

import (
	"fmt"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
)

func main() { fmt.Print(page(job.Diagram(), job.Moves())) }

const opening = `# Phases of a ClusterJob

Generated from the job controller's table by "make generate"; do not edit.

` + "`status.phase`" + ` is one word for people; programs read conditions (` + "`Complete`, `Failed`, `Suspended`, `Ready`" + `). Where a phase is
short, nobody may ever see it: a job can be told to be Succeeded right after Submitting.

`

func page(diagram string, moves []job.Move) string {
	var text strings.Builder
	text.WriteString(opening + diagram + "\n| from | to | when |\n|---|---|---|\n")
	for _, move := range moves {
		from := move.From
		if from == "" {
			from = "(new)"
		}
		fmt.Fprintf(&text, "| %s | %s | %s |\n", from, move.To, strings.ReplaceAll(move.When, "|", `\|`))
	}
	return text.String()
}
