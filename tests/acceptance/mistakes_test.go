package main

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestJudgeMistakes_WantsAllInTime(t *testing.T) {
	made := make([]live.Mistake, leastMistakes)
	for name, c := range map[string]struct {
		edit func() []live.Mistake
		kept bool
	}{
		"all in time": {func() []live.Mistake { return made }, true},
		"one missing": {func() []live.Mistake { return made[1:] }, false},
		"one late":    {func() []live.Mistake { return append([]live.Mistake{{Shown: promisedShown + 1}}, made...) }, false},
	} {
		outcome, err := judgeMistakes(c.edit())
		if err != nil || outcome.Kept != c.kept {
			t.Errorf("%s: %v, %v", name, outcome.Kept, err)
		}
	}
	outcome, err := judgeMistakes([]live.Mistake{{Name: "a|b", Where: "kubectl apply", Line: "no", Shown: 1, Mended: 12.25}})
	if page := mistakesTable(outcome.Samples); err != nil || !strings.Contains(page, "| kubectl apply | `no` | 1.0 | 12.2 |") {
		t.Errorf("the page is %q: %v", page, err)
	}
}
