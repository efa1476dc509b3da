package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// survived is a count of which nothing is wrong.
func survived() live.Memory {
	memory := live.Memory{Store: "redis", Recorded: 2 * storeRounds, Asked: 80, Tasks: 1000, Requests: 9000}
	for range storeRounds {
		memory.Recoveries = append(memory.Recoveries,
			live.Recovery{How: live.InPlace, Listed: 9, Ready: 12.5, Answered: 9}, live.Recovery{How: live.NewPod, Created: 0.2, Listed: 6, Ready: 10, Answered: 9})
	}
	memory.ByHand = []live.Recovery{{How: live.NewPod, Created: 0.1, Listed: 6, Ready: 10, Answered: 9}}
	return memory
}

func TestWhatHeadsRememberIsJudged(t *testing.T) {
	for _, c := range []struct {
		spoil func(*live.Memory)
		kept  bool
		says  string
	}{
		{func(*live.Memory) {}, true, "back after 6.0 s, by hand 6.0 s"},
		{func(m *live.Memory) { m.Failed = 1 }, false, "a request failed"},
		{func(m *live.Memory) { m.Recoveries[1].Created = 3 }, false, "a pod came after 3.0 s"},
		{func(m *live.Memory) { m.ByHand = nil }, false, "NaN"},
		{func(m *live.Memory) { m.Recoveries, m.Recorded = m.Recoveries[2:], m.Recorded-2 }, false, "38 recoveries"},
	} {
		memory := survived()
		c.spoil(&memory)
		if got, err := remembered([]live.Memory{memory}, storeRounds); err != nil || got.Kept != c.kept || !strings.Contains(got.Measured, c.says) {
			t.Errorf("%+v, %v: want %v and %q", got, err, c.kept, c.says)
		}
	}
	if got, err := remembered(nil, storeRounds); err == nil {
		t.Errorf("nothing passed for a count: %+v", got)
	}
}

func TestTroublesAreJudged(t *testing.T) {
	good, late := live.StoreFault{Fault: "full", Reason: "StoreFull", Back: 12}, live.StoreFault{Fault: "stopped", Back: 21}
	if got, err := borne([]live.StoreFault{good}); err != nil || !got.Kept {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := borne([]live.StoreFault{good, late}); err != nil || got.Kept || !strings.Contains(got.Measured, "21.0 s (stopped)") {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := borne(nil); err == nil {
		t.Errorf("nothing passed for troubles: %+v", got)
	}
	if page := faultsTable(encoded([]live.StoreFault{good})); !strings.Contains(page, "| full | `StoreFull` | 0.0 | 0 | 12.0 | 0 |") {
		t.Error(page)
	}
}

func TestRecoveriesHaveATable(t *testing.T) {
	page := memoryTable(encoded(survived()))
	for _, want := range []string{
		"| container killed | 20 | Ready | 12.5 | 12.5 | 12.5 |", "| pod deleted | 20 | created | 0.2 | 0.2 | 0.2 |",
		"| deleted and made again by hand | 1 | answered | 9.0 | 9.0 | 9.0 |", "| 11–12 |  |  |", "| 12–13 | " + strings.Repeat("▇", 20) + " |  |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	if page := memoryTable(encoded(live.Memory{})); strings.Contains(page, "▇") {
		t.Error("no recovery gives a table: " + page)
	}
	if page := memoryTable(json.RawMessage("[]")); strings.Contains(page, "|") {
		t.Error("no memory gives a table: " + page)
	}
}
