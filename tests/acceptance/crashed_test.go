package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestCrashesAreJudged(t *testing.T) {
	through := func(change func(*live.Crashed)) json.RawMessage {
		told := live.Crashed{
			Changes: apiUpgrades, Crashes: 190, Steps: map[string]map[int]int{"image": {1: 1}},
			Load: loadgen.Phase{Sorts: map[loadgen.Sort]loadgen.Count{loadgen.Fresh: {Sent: apiRequests - 10}, loadgen.Kept: {Sent: 10}}},
		}
		change(&told)
		return encoded(told)
	}
	all := func(*live.Crashed) {}
	for name, c := range map[string]struct {
		samples json.RawMessage
		failed  error
		kept    bool
	}{
		"all is well":         {through(all), nil, true},
		"the test failed":     {through(all), errors.New("exit status 1"), false},
		"a request is lost":   {through(func(told *live.Crashed) { told.Load.Sorts[loadgen.Kept] = loadgen.Count{Sent: 10, Failed: 1} }), nil, false},
		"too few requests":    {through(func(told *live.Crashed) { delete(told.Load.Sorts, loadgen.Kept) }), nil, false},
		"too few upgrades":    {through(func(told *live.Crashed) { told.Changes-- }), nil, false},
		"nobody was killed":   {through(func(told *live.Crashed) { told.Steps = nil }), nil, false},
		"one sort was spared": {through(func(told *live.Crashed) { told.Steps["code"] = nil }), nil, false},
	} {
		got, err := crashed(c.samples, c.failed)
		if err != nil || got.Kept != c.kept || !strings.Contains(got.Measured, "upgrades, the operator killed 190 times") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := crashed(json.RawMessage("{"), nil); err == nil {
		t.Errorf("half a text passed for samples: %+v", got)
	}
	if page := crashedTable(through(all)); !strings.Contains(page, "| image | 1 | 1 |") {
		t.Error(page)
	}
	if page := crashedTable(json.RawMessage("{")); strings.Contains(page, "|") {
		t.Error("no samples give a table: " + page)
	}
}
