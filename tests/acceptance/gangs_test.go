package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"

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

func TestGangTimes_AreJudged(t *testing.T) {
	restarts := func(slow int) []float64 {
		all := slices.Repeat([]float64{0.5}, live.GangRestartsMeasured)
		for i := range slow {
			all[i] = 3
		}
		return all
	}
	starts := func(seconds float64) []float64 { return slices.Repeat([]float64{seconds}, live.GangStartsMeasured) }
	for name, c := range map[string]struct {
		times live.GangTimes
		kept  bool
	}{
		"one slow restart of twenty is fine": {live.GangTimes{Restarts: restarts(1), Starts: starts(6), ByHand: starts(5)}, true},
		"two are not":                        {live.GangTimes{Restarts: restarts(2), Starts: starts(6), ByHand: starts(5)}, false},
		"few restarts are not":               {live.GangTimes{Restarts: []float64{0.5}, Starts: starts(6), ByHand: starts(5)}, false},
		"late starts are not":                {live.GangTimes{Restarts: restarts(0), Starts: starts(7), ByHand: starts(5)}, false},
		"no starts by hand are not":          {live.GangTimes{Restarts: restarts(0), Starts: starts(6)}, false},
	} {
		got, err := judgeGangTimes(reported(live.GangTimesEntry, c.times))
		if err != nil || got.Kept != c.kept {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := judgeGangTimes(nil); err == nil {
		t.Errorf("nothing passed for times: %+v", got)
	}
}

func TestGangPods_AreJudged(t *testing.T) {
	starts := func(one live.GangStart) []live.GangStart {
		return slices.Repeat([]live.GangStart{one}, live.GangStartsMeasured)
	}
	for name, c := range map[string]struct {
		pods []live.GangStart
		kept bool
	}{
		"pods that take five times as long are": {starts(live.GangStart{Start: 5, Restart: 1}), true},
		"quicker ones are not":                  {starts(live.GangStart{Start: 4, Restart: 9}), false},
		"one start of pods is not":              {[]live.GangStart{{Start: 5, Restart: 1}}, false},
	} {
		got, err := judgeGangPods(reported(live.GangPodsEntry, live.GangPods{Of: "JobSet", Gangs: starts(live.GangStart{Start: 1, Restart: 0.5}), Pods: c.pods}))
		if err != nil || got.Kept != c.kept || !strings.Contains(got.Measured, "JobSet") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestSparkTimes_AreJudged(t *testing.T) {
	times := func(first, work float64, runs int) live.SparkTimes {
		of := func(value float64) []float64 { return slices.Repeat([]float64{value}, runs) }
		return live.SparkTimes{Firsts: of(first), FirstsByHand: of(10), Works: of(work), WorksOfLocal: of(20)}
	}
	for name, c := range map[string]struct {
		times live.SparkTimes
		kept  bool
	}{
		"as soon and as quick is fine": {times(13, 23, live.SparkRunsMeasured), true},
		"a late first task is not":     {times(13.1, 20, live.SparkRunsMeasured), false},
		"slow work is not":             {times(10, 23.1, live.SparkRunsMeasured), false},
		"few runs are not":             {times(10, 20, live.SparkRunsMeasured-1), false},
	} {
		got, err := judgeSparkTimes(reported(live.SparkTimesEntry, c.times))
		if err != nil || got.Kept != c.kept {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := judgeSparkTimes(nil); err == nil {
		t.Errorf("nothing passed for times: %+v", got)
	}
}

// reported is the report of a spec with an entry.
func reported(name string, entry any) []types.SpecReport {
	return []types.SpecReport{{ReportEntries: types.ReportEntries{{Name: name, Value: types.ReportEntryValue{AsJSON: string(encoded(entry))}}}}}
}
