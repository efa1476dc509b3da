package testkit

import (
	"fmt"
	"sync"
	"testing"
)

// Of many scenarios with the same points, all of what there is to cover is covered, the first one
// runs a point of each, and the others far fewer.
func TestScenariosThatArePlayedTogetherShareTheirPoints(t *testing.T) {
	const kinds, each, scenarios = 40, 3, 20
	all := []point{{name: "alone"}}
	for i := range kinds * each {
		all = append(all, point{name: fmt.Sprint(i), covers: fmt.Sprint(i % kinds)})
	}
	var covered sync.Map
	others := 0
	for i := range scenarios {
		some := Scenario{Name: fmt.Sprint("scenario ", i)}.sampled(all, &covered)
		seen := map[string]bool{}
		for _, p := range some {
			if seen[p.covers] {
				t.Errorf("scenario %d covers %q twice", i, p.covers)
			}
			seen[p.covers] = true
		}
		if !seen[""] || i == 0 && len(seen) != kinds+1 {
			t.Errorf("scenario %d runs %d points of %d", i, len(some), len(all))
		}
		if i > 0 {
			others += len(some) - 1
		}
	}
	if most := kinds * (scenarios - 1) / 4; others == 0 || others > most {
		t.Errorf("the other scenarios run %d points, at most %d are wanted", others, most)
	}
}

func TestAShortScenarioRunsAllOfItsPoints(t *testing.T) {
	few := make([]point, short)
	for i := range few {
		few[i].covers = "the same"
	}
	var covered sync.Map
	if some := (Scenario{Name: "short"}).sampled(few, &covered); len(some) != len(few) {
		t.Errorf("it runs %d of %d", len(some), len(few))
	}
}
