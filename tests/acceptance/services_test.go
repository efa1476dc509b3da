package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// through is a change of which nothing is wrong.
func through(round int) live.Upgraded {
	seen := func(longest float64, bars ...int64) loadgen.Phase {
		latency := loadgen.Latency{Max: longest, Histogram: append(bars, make([]int64, len(loadgen.Bounds())+1-len(bars))...)}
		return loadgen.Phase{Sorts: map[loadgen.Sort]loadgen.Count{loadgen.Fresh: {Sent: 100, Answered: 100, Latency: latency}}}
	}
	return live.Upgraded{
		Change: "code", Round: round, Clusters: 2, Kills: 1, Seconds: float64(round), Switch: 30, Both: 80,
		Loads: []live.NodeLoad{{Node: "node1", Calm: seen(50, 0, 99), During: seen(80, 1, 97)}},
	}
}

func TestUpgradesAreJudged(t *testing.T) {
	var good []live.Upgraded
	for round := range serveRounds {
		good = append(good, through(round))
	}
	late := through(7)
	late.Both = 100
	for _, c := range []struct {
		told []live.Upgraded
		kept bool
		says string
	}{
		{good, true, "20 changes, 0 of 2000 requests failed"},
		{good[1:], false, "19 changes"},
		{append(good[1:len(good):len(good)], late), false, "round 7: two clusters were alive for 70.0 s"},
	} {
		if got, err := lossless(c.told, serveRounds); err != nil || got.Kept != c.kept || !strings.Contains(got.Measured, c.says) {
			t.Errorf("%+v, %v: want %v and %q", got, err, c.kept, c.says)
		}
	}
	if got, err := lossless(nil, serveRounds); err == nil {
		t.Errorf("nothing passed for upgrades: %+v", got)
	}
	page := upgradesTable(encoded(good))
	for _, row := range []string{
		"20 changes of 0 to 19 s, median 10 s; the operator was killed 20 times; two clusters lived 50.0 s longer",
		"| fresh, calm | 2000 | 0 | 0 | 1980 | 0 |", "| fresh, change | 2000 | 0 | 20 | 1940 | 0 |",
	} {
		if !strings.Contains(page, row) {
			t.Errorf("%q is not in %s", row, page)
		}
	}
	for _, none := range []string{"{}", "[]"} {
		if page := upgradesTable(json.RawMessage(none)); strings.Contains(page, "|") {
			t.Error("no upgrades give a table: " + page)
		}
	}
}

// TestWarm_JudgesTheMedian: of all rounds' ratios of half of the requests, the one in the middle counts.
func TestWarm_JudgesTheMedian(t *testing.T) {
	timed := func(ratio float64) live.Upgraded {
		one := through(0)
		one.Kills = 0
		for sort, count := range one.Loads[0].Calm.Sorts {
			count.Latency.P50 = 10
			one.Loads[0].Calm.Sorts[sort] = count
		}
		for sort, count := range one.Loads[0].During.Sorts {
			count.Latency.P50 = 10 * ratio
			one.Loads[0].During.Sorts[sort] = count
		}
		return one
	}
	for _, c := range []struct {
		told []live.Upgraded
		kept bool
		says string
	}{
		{[]live.Upgraded{timed(1.5), timed(9), timed(1)}, true, "1.50 times as long"},
		{[]live.Upgraded{timed(1.6), timed(9), timed(1)}, false, "1.60 times as long"},
	} {
		if got, err := warm(c.told, len(c.told)); err != nil || got.Kept != c.kept || !strings.Contains(got.Measured, c.says) {
			t.Errorf("%+v, %v: want %v and %q", got, err, c.kept, c.says)
		}
	}
	if got, err := warm([]live.Upgraded{through(0)}, 1); err == nil {
		t.Errorf("nothing timed passed: %+v", got)
	}
}

func TestBadVersionsAreJudged(t *testing.T) {
	good := live.TakenBack{Cause: "no image", Told: 2, Seconds: 30, Reason: "ImagePullFailed", Same: true, Sent: 100}
	other := good
	other.Same = false
	if got, err := takenBack([]live.TakenBack{good}); err != nil || !got.Kept {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := takenBack([]live.TakenBack{good, other}); err != nil || got.Kept || !strings.Contains(got.Measured, "1 of them not as promised; no image") {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := takenBack(nil); err == nil {
		t.Errorf("nothing passed for bad versions: %+v", got)
	}
	if page := badTable(encoded([]live.TakenBack{good})); !strings.Contains(page, "| no image | `ImagePullFailed` | 2.0 | 30.0 | 100 | 0 |") {
		t.Error(page)
	}
}

func TestRequestsAreCounted(t *testing.T) {
	said := "many_test.go:44: 204800 requests in 4000 upgrades, none lost"
	for _, c := range []struct {
		output string
		failed error
		kept   bool
	}{{said, nil, true}, {said, errors.New("exit status 1"), false}, {"204 requests in 4 upgrades, none lost", nil, false}, {"a request is lost", nil, false}} {
		if got := countedRequests(c.output, c.failed); got.Kept != c.kept {
			t.Errorf("%q, %v: %+v", c.output, c.failed, got)
		}
	}
}

func TestDividedRequestsAreJudged(t *testing.T) {
	good := live.Divided{Gateway: "Traefik", Percent: 10, Asked: 100, New: 12, Sent: 1000, Seconds: 100}
	for name, test := range map[string]struct {
		edit func(*live.Divided)
		kept bool
	}{
		"as promised":       {func(*live.Divided) {}, true},
		"far from it":       {func(d *live.Divided) { d.New = 14 }, false},
		"a lost request":    {func(d *live.Divided) { d.Failed = 1 }, false},
		"none was sent":     {func(d *live.Divided) { d.Sent = 0 }, false},
		"not in an upgrade": {func(d *live.Divided) { d.Percent, d.New = 100, 100 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			told := good
			test.edit(&told)
			if got, err := divided([]live.Divided{told}); err != nil || got.Kept != test.kept {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	if _, err := divided(nil); err == nil {
		t.Error("nothing was measured, and that is well")
	}
}
