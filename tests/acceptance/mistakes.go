package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// leastMistakes is how many first mistakes are made, and promisedShown after how many seconds each shows at the latest.
	leastMistakes = 20
	promisedShown = 60.0
)

// firstMistakes makes mistakes on purpose, reads the one line that is shown, and follows its remedy.
var firstMistakes = scenario{
	name: live.MistakesLabel,
	promise: fmt.Sprintf("each of %d first mistakes is shown in one line within %.0f s, and following its remedy alone leads to Ready",
		leastMistakes, promisedShown),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.MistakesLabel, 1, func(ran []types.SpecReport) (Outcome, error) {
			made, err := entries[live.Mistake](ran, live.MistakesEntry)
			if err != nil {
				return Outcome{}, err
			}
			return judgeMistakes(made)
		})
	},
}

func judgeMistakes(made []live.Mistake) (Outcome, error) {
	samples, err := json.Marshal(made)
	slowest := 0.0
	for _, m := range made {
		slowest = max(slowest, m.Shown)
	}
	return Outcome{
		Measured: fmt.Sprintf("%d mistakes mended by their remedies, the slowest shown after %.1f s", len(made), slowest),
		Kept:     len(made) >= leastMistakes && slowest <= promisedShown, Samples: samples,
	}, err
}

func mistakesTable(samples json.RawMessage) string {
	made, err := parse[live.Mistake](samples)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	b.WriteString("Seconds from `kubectl apply` until the line is shown, and from the corrected `kubectl apply` until the object is ready.\n\n" +
		"| mistake | where | line | shown, s | mended, s |\n|---|---|---|---|---|\n")
	for _, m := range made {
		fmt.Fprintf(&b, "| %s | %s | `%s` | %.1f | %.1f |\n", escaped(m.Name), m.Where, escaped(strings.ReplaceAll(m.Line, "`", "'")), m.Shown, m.Mended)
	}
	return b.String()
}
