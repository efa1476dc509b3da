package portals

import "testing"

func TestPage_IsHeldAgainstBothPromises(t *testing.T) {
	of := func(server, direct float64) []Latency {
		return []Latency{{Page: Pair{Server: Times{P99: server}, Direct: Times{P99: direct}}}}
	}
	for name, c := range map[string]struct {
		server, direct float64
		isKept         bool
	}{
		"as fast as the list": {20, 20, true}, "slower than the list": {21, 20, false}, "slower than is promised of any list": {50, 90, false},
	} {
		if _, _, isKept := Page(of(c.server, c.direct)); isKept != c.isKept {
			t.Errorf("%s is kept: %t", name, isKept)
		}
	}
}

func TestGet_IsTheRatioOfMedians(t *testing.T) {
	var rounds []Latency
	for _, server := range []float64{1, 3, 100} { // the one in the middle counts
		rounds = append(rounds, Latency{Get: Pair{Server: Times{P50: server}, Direct: Times{P50: 2}}})
	}
	if ratio, isKept := Get(rounds); ratio != 1.5 || !isKept {
		t.Errorf("the ratio is %v, kept: %t", ratio, isKept)
	}
}

func TestWatched_CountsWhatWatchesCost(t *testing.T) {
	good := Watching{
		Watchers: 10,
		Alone:    Phase{Changes: 100, APIServerCPU: 1},
		Direct:   Phase{Changes: 200, APIServerCPU: 6, Events: 200},
		Server:   Phase{Changes: 100, APIServerCPU: 1.5, ServerCPU: 0.5, Events: 100, Delays: Times{P99: 900}},
	}
	if direct, server := good.PerEvent(); direct != 2000 || server != 500 {
		t.Errorf("an event costs the API server %v µs, and the server %v", direct, server)
	}
	if reviews := good.Reviews(); reviews != 500 {
		t.Errorf("reviews cost %v µs", reviews)
	}
	late, lost, dear, broken := good, good, good, good
	late.Server.Delays.P99, lost.Server.Events, dear.Server.ServerCPU, broken.Server.Broken = 1000, 99, 0.6, 1
	for name, c := range map[string]struct {
		round  Watching
		isKept bool
	}{"good": {good, true}, "late": {late, false}, "lost": {lost, false}, "dear": {dear, false}, "broken": {broken, false}} {
		if _, _, isKept := Watched([]Watching{c.round}); isKept != c.isKept {
			t.Errorf("a round that is %s is kept: %t", name, isKept)
		}
	}
}

func TestHeld_CountsWatchersApart(t *testing.T) {
	for name, c := range map[string]struct {
		round  Holding
		isKept bool
	}{
		"little of both": {Holding{Watchers: 1024, Informers: 100, Server: 130, Watched: 194}, true},
		"much itself":    {Holding{Watchers: 1024, Informers: 100, Server: 131, Watched: 194}, false},
		"much each":      {Holding{Watchers: 1024, Informers: 100, Server: 130, Watched: 195}, false},
	} {
		if _, _, isKept := Held([]Holding{c.round}); isKept != c.isKept {
			t.Errorf("%s is kept: %t", name, isKept)
		}
	}
}
