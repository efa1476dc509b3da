package main

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
)

func TestPage(t *testing.T) {
	have := page("a diagram\n", []job.Move{{From: "", To: "Pending", When: "made"}, {From: "Pending", To: "Running", When: "this|that"}})
	want := "a diagram\n\n| from | to | when |\n|---|---|---|\n| (new) | Pending | made |\n| Pending | Running | this\\|that |\n"
	if rest, ok := strings.CutPrefix(have, opening); !ok || rest != want {
		t.Errorf("%q, want %q", rest, want)
	}
}

func TestEveryMoveIsDrawn(t *testing.T) {
	text := page(job.Diagram(), job.Moves())
	for _, move := range job.Moves() {
		if !strings.Contains(text, " --> "+move.To+": ") || !strings.Contains(text, "| "+move.To+" | ") {
			t.Errorf("the move %+v is missing", move)
		}
	}
}
