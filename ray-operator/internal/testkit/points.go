package testkit

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"sync"
	"testing"
)

// pointsSetting sets the points of every package at once, where a flag would fail those that do not know it.
const pointsSetting = "HELIOSTAT_POINTS"

var points = &selection{flag: flag.String("points", "", `which points of disturbance a Scenario is run with: "all", "sample" or "none"; `+
	`by default what `+pointsSetting+` names, and else "sample"`)}

// selection selects the points of all scenarios of a process.
type selection struct {
	flag *string
	// ever is what points cover that were run.
	ever sync.Map
}

// choice is which points of disturbance a Scenario is run with.
type choice string

// What a choice may be.
const (
	allPoints    choice = "all"
	samplePoints choice = "sample"
	noPoints     choice = "none"
)

// choice returns what the flag or the environment chooses. It reads the environment while a test runs, because Go's
// test cache takes no note of what is read before.
func (s *selection) choice(t *testing.T) choice {
	t.Helper()
	of, err := parseChoice(*s.flag, os.Getenv(pointsSetting))
	if err != nil {
		t.Fatal(err)
	}
	return of
}

func parseChoice(flag, setting string) (choice, error) {
	of := cmp.Or(choice(flag), choice(setting), samplePoints)
	if !slices.Contains([]choice{allPoints, samplePoints, noPoints}, of) {
		return "", fmt.Errorf("read points %q: want %q, %q or %q", of, allPoints, samplePoints, noPoints)
	}
	return of, nil
}

// short is up to how many points a scenario has to be run with all of them even in a sample, and visits how many
// visits of the past there are in one. Of scenarios that are played together, the first one and one in sharers run a
// point of those that cover the same. Where a test before has covered it, one in plays of these first ones does.
const short, visits, sharers, plays = 30, 12, 16, 2

// coverage is what points cover that were run: together in the same play, and ever in any play of the process.
type coverage struct{ together, ever *sync.Map }

// oneIn returns of how many scenarios one runs a point that covers something, and notes that it is covered now.
func (c coverage) oneIn(covers string) uint32 {
	_, before := c.ever.LoadOrStore(covers, true)
	if _, together := c.together.LoadOrStore(covers, true); together {
		return sharers
	}
	if before {
		return plays
	}
	return 1
}

// point is one way to disturb a scenario.
type point struct {
	name    string
	disturb func(*World)
	// covers names what the point is one of several to cover, empty if it is the only one.
	covers string
	// forgets: what nobody else knows, such as the output of a head that is gone, is lost.
	forgets bool
}

// pointsOf are all ways to disturb a scenario, after its undisturbed run.
func (s Scenario) pointsOf(plain *World) []point {
	all := s.whole(plain)
	for i, call := range plain.operator.calls {
		modes := []Mode{Fail}
		if call.write {
			modes = []Mode{Fail, LoseReply, KillBefore, KillAfter}
		}
		for _, mode := range modes {
			all = append(all, point{
				name: fmt.Sprintf("call-%d-%s", i+1, mode), covers: fmt.Sprintf("%s %s", call.what, mode),
				disturb: func(w *World) { w.operator.fault = Fault{i + 1, mode} },
			})
		}
	}
	return all
}

// whole are the disturbances that go through the whole of a scenario.
func (s Scenario) whole(plain *World) []point {
	all := []point{{name: "status-wiped", forgets: true, disturb: func(w *World) { w.trouble.wipe = wipeStatus }}}
	if !s.KeepRecord {
		all = append(all, point{name: "record-removed", disturb: func(w *World) { w.trouble.wipe = removeRecord }})
	}
	if len(plain.Jobs.begun) > 0 {
		all = append(all,
			point{name: "submission-lost", disturb: func(w *World) { w.Jobs.lossy = loseRequest }},
			point{name: "submission-reply-lost", disturb: func(w *World) { w.Jobs.lossy = loseReply }},
		)
	}
	kinds, classes := []string{""}, []class{}
	for _, event := range plain.revisions {
		kind := kindOf(event.Object)
		if kind == "Secret" || kind == "Event" {
			continue // no cache holds these
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		if of := (class{kind, event.Type}); !slices.Contains(classes, of) {
			classes = append(classes, of)
		}
	}
	for _, kind := range kinds {
		for by := 1; by <= 3; by++ {
			behind := late{kind, by, s.Waits}
			all = append(all, point{
				name: fmt.Sprintf("late-%s-%d", kind, by), covers: "late " + kind, disturb: func(w *World) { w.trouble.behind = behind },
			})
		}
	}
	for _, unseen := range classes {
		name := fmt.Sprintf("unseen-%s-%s", unseen.kind, unseen.event)
		all = append(all, point{name: name, covers: name, disturb: func(w *World) { w.trouble.unseen = &unseen }})
	}
	return all
}

// sampled are the points to run of a choice: in a sample, all of them for a short scenario. Of another, those that
// nothing else covers, and of those that cover the same, such as a kind of call that goes wrong in a way, one, which
// differs from scenario to scenario, or none where another scenario had one.
func (s Scenario) sampled(of choice, all []point, covered coverage) []point {
	switch {
	case of == noPoints:
		return nil
	case of == allPoints || len(all) <= short:
		return all
	}
	same := map[string]int{}
	for _, p := range all {
		same[p.covers]++
	}
	chosen, seen := map[string]int{}, map[string]int{}
	for covers, count := range same {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(s.Name + covers)) // a hash takes everything
		chosen[covers] = int(hash.Sum32() % (uint32(count) * covered.oneIn(covers)))
	}
	var some []point
	for _, p := range all {
		if p.covers == "" || chosen[p.covers] == seen[p.covers] {
			some = append(some, p)
		}
		seen[p.covers]++
	}
	return some
}
