package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/internal/attackers"
	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestHostileTenants_AreJudged(t *testing.T) {
	good := live.Tenants{
		Honest: besideHonest, Objects: besideObjects, Seconds: besideSeconds, Calm: live.Reactions{Edits: 9, P99: 10}, Beside: live.Reactions{Edits: 9, P99: 15},
		Memory: 100, MemoryLimit: 512, Asked: map[string]int64{live.HostileRedis: 1, live.HostileSentinel: 1, live.HostileGCS: 1, live.HostileAutoscaler: 1, live.HostileAPI: 1},
	}
	short, late := good, good
	short.Seconds = 10
	late.Beside.P99 = 16
	for name, c := range map[string]struct {
		told   live.Tenants
		failed error
		kept   bool
		says   string
	}{
		"all kept":    {good, nil, true, "memory 100 MiB of 512"},
		"too short":   {short, nil, false, "too few or too short"},
		"late":        {late, nil, false, "honest clusters waited"},
		"test failed": {good, errors.New("exit status 1"), false, "exit status 1"},
	} {
		if got, err := besideHostile(encoded(c.told), c.failed); err != nil || got.Kept != c.kept || !strings.Contains(got.Measured, c.says) {
			t.Errorf("%s: %+v, %v: want %v and %q", name, got, err, c.kept, c.says)
		}
	}
	if got, err := besideHostile(json.RawMessage("no JSON"), nil); err == nil {
		t.Errorf("what is no JSON passed for figures: %+v", got)
	}
}

func TestHostileCallers_AreJudged(t *testing.T) {
	good := func() live.Callers {
		siege := func() live.Siege {
			s := live.Siege{Report: attackers.Report{Requests: 6000, Seconds: 60, Answers: map[string]map[string]int{attackers.Refused: {"401": 6000}}}, Waits: map[string]live.Waits{}}
			for _, sort := range attackers.Sorts() {
				s.Answers[sort] = map[string]int{"401": 1}
			}
			for _, listener := range attackers.Listeners() {
				s.Waits[listener] = live.Waits{Requests: 9, P99: 10}
			}
			return s
		}
		return live.Callers{Anonymous: callersAnonymous, Accounts: callersAccounts, Seconds: callersSeconds, Calm: siege(), Beside: siege(), Memory: 300, MemoryLimit: 768}
	}
	short, ended := good(), good()
	short.Seconds, ended.HasEnded = 10, true
	for name, c := range map[string]struct {
		measured live.Callers
		kept     bool
		says     string
	}{
		"all kept":  {good(), true, "memory 300 MiB of 768"},
		"too short": {short, false, "too few or too short"},
		"ended":     {ended, false, "the server ended"},
	} {
		if got, err := besideCallers(encoded(c.measured), nil); err != nil || got.Kept != c.kept || !strings.Contains(got.Measured, c.says) {
			t.Errorf("%s: %+v, %v: want %v and %q", name, got, err, c.kept, c.says)
		}
	}
}

func TestCallersTable_HasEachSort(t *testing.T) {
	figures := live.Callers{Beside: live.Siege{Report: attackers.Report{Answers: map[string]map[string]int{attackers.Sorts()[0]: {"none": 2, "401": 30}}}}}
	table := callersTable(encoded(figures))
	if !strings.Contains(table, "| "+attackers.Sorts()[0]+" | 401: 30, none: 2 |\n") || strings.Count(table, "\n") != len(attackers.Sorts())+4 {
		t.Error(table)
	}
}

func TestBusyNeighbours_AreJudged(t *testing.T) {
	good := func() live.Neighbours {
		edits := live.Reactions{Edits: 9, P99: 12}
		return live.Neighbours{
			Honest: besideHonest, Grown: grownWorkers, Refused: refusedWorkers, Calm: live.Reactions{Edits: 9, P99: 10},
			Beside: map[string]live.Reactions{live.NeighbourGrows: edits, live.NeighbourRefused: edits, live.NeighbourHangs: edits},
		}
	}
	few, late, untried := good(), good(), good()
	few.Grown = 10
	late.Beside[live.NeighbourRefused] = live.Reactions{Edits: 9, P99: 13}
	delete(untried.Beside, live.NeighbourHangs)
	for name, c := range map[string]struct {
		measured live.Neighbours
		kept     bool
		says     string
	}{
		"all kept":         {good(), true, "a cluster that grows: p50 0 ms and p99 12 ms"},
		"too few workers":  {few, false, "too few"},
		"late":             {late, false, "honest clusters waited beside a quota that refuses"},
		"one of them left": {untried, false, "nothing was edited beside a webhook that hangs"},
	} {
		if got, err := besideBusy(encoded(c.measured), nil); err != nil || got.Kept != c.kept || !strings.Contains(got.Measured, c.says) {
			t.Errorf("%s: %+v, %v: want %v and %q", name, got, err, c.kept, c.says)
		}
	}
}
