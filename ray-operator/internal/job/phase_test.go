package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit/golden"
)

// TestPhases: the table has no phase twice, none without a way to an end, and no way out of one.
func TestPhases(t *testing.T) {
	seen, phases := map[Move]bool{}, map[string]bool{}
	for _, move := range Moves() {
		way := Move{From: move.From, To: move.To}
		if seen[way] || !Reachable("", move.To) {
			t.Errorf("the move %+v", move)
		}
		seen[way] = true
		phases[move.To] = true
	}
	for phase := range phases {
		for other := range phases {
			if is, may := Reachable(phase, other), phase == other || !isEndPhase(phase); is != may && (isEndPhase(phase) || isEndPhase(other)) {
				t.Errorf("there is a way from %s to %s: %v", phase, other, is)
			}
		}
	}
}

const opening = `# Phases of a ClusterJob

Generated from the job controller's table by "make generate"; do not edit.

` + "`status.phase`" + ` is one word for people; programs read conditions (` + "`Complete`, `Failed`, `Suspended`, `Ready`" + `). Where a phase is
short, nobody may ever see it: a job can be told to be Succeeded right after Submitting.

`

// TestGenerated_Phases: the page has each move in the diagram of states, for Mermaid, and in a table.
func TestGenerated_Phases(t *testing.T) {
	diagram, table := "```mermaid\nstateDiagram-v2\n", "| from | to | when |\n|---|---|---|\n"
	for _, move := range Moves() {
		from, origin := move.From, move.From
		if from == "" {
			from, origin = "(new)", "[*]"
		}
		diagram += fmt.Sprintf("  %s --> %s: %s\n", origin, move.To, strings.NewReplacer(":", " is", ";", ",").Replace(move.When))
		table += fmt.Sprintf("| %s | %s | %s |\n", from, move.To, strings.ReplaceAll(move.When, "|", `\|`))
	}
	for _, end := range ends {
		diagram += fmt.Sprintf("  %s --> [*]\n", end)
	}
	golden.Generated(t, "docs/reference/job-phases.md", opening+diagram+"```\n\n"+table)
}
