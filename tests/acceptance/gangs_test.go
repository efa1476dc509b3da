package main

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestGangs_AreCounted(t *testing.T) {
	seconds := func(f live.GangFault) float64 { return f.Seconds }
	done := []live.GangFault{{Fault: "SIGKILL", Named: "worker/3", Seconds: 1.25}, {Fault: "node cut off", Named: "worker/0", Seconds: 38.5}}
	for name, c := range map[string]struct {
		least int
		kept  bool
	}{"as many as promised are kept": {2, true}, "fewer are not": {3, false}} {
		got, err := counted(done, c.least, "faults, at most", seconds)
		if err != nil || got.Kept != c.kept || !strings.Contains(got.Measured, "2 faults, at most 38.5 s") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := counted(nil, 1, "faults, at most", seconds); err == nil {
		t.Errorf("nothing passed for faults: %+v", got)
	}
	if page := gangFaultsTable(encoded(done)); !strings.Contains(page, "| SIGKILL | worker/3 | 1.2 |") {
		t.Error(page)
	}
	if page := gangEndsTable(encoded([]live.GangEnd{{Way: "stopped", Seconds: 4}})); !strings.Contains(page, "| stopped | 4.0 |") {
		t.Error(page)
	}
}
