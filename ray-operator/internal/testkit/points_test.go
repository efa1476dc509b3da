package testkit

import (
	"fmt"
	"sync"
	"testing"
)

// forty are three points of each of forty sorts, and one more.
func forty() []point {
	all := []point{{name: "alone"}}
	for i := range 120 {
		all = append(all, point{name: fmt.Sprint(i), covers: fmt.Sprint(i % 40)})
	}
	return all
}

// sorts counts what the points of a sample cover, each of which may be there once.
func sorts(t *testing.T, some []point) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for _, p := range some {
		if seen[p.covers] {
			t.Errorf("%q is covered twice", p.covers)
		}
		seen[p.covers] = true
	}
	return seen
}

// Of many scenarios with the same points, all of what there is to cover is covered, the first one
// runs a point of each, and the others far fewer.
func TestScenariosThatArePlayedTogetherShareTheirPoints(t *testing.T) {
	const scenarios = 20
	all, covered, others := forty(), coverage{&sync.Map{}, &sync.Map{}}, 0
	for i := range scenarios {
		seen := sorts(t, Scenario{Name: fmt.Sprint("scenario ", i)}.sampled(samplePoints, all, covered))
		if !seen[""] || i == 0 && len(seen) != 40+1 {
			t.Errorf("scenario %d covers %d of 41", i, len(seen))
		}
		if i > 0 {
			others += len(seen) - 1
		}
	}
	if most := 40 * (scenarios - 1) / 8; others == 0 || others > most {
		t.Errorf("the other scenarios run %d points, at most %d are wanted", others, most)
	}
}

// Of what a test before has covered, the first scenario of another test runs about half, and not
// the same half as that of a third one.
func TestSampled_SharesPointsBetweenTests(t *testing.T) {
	var ever sync.Map
	all, seen := forty(), map[string]bool{}
	for i := range 12 {
		first := sorts(t, Scenario{Name: fmt.Sprint("scenario ", i)}.sampled(samplePoints, all, coverage{&sync.Map{}, &ever}))
		if i == 0 {
			continue
		}
		if len(first) < 40/4 || len(first) > 40*3/4 {
			t.Errorf("test %d covers %d of 41", i, len(first))
		}
		for covers := range first {
			seen[covers] = true
		}
	}
	if len(seen) != 40+1 {
		t.Errorf("the tests after the first one cover %d of 41", len(seen))
	}
}

func TestAShortScenarioRunsAllOfItsPoints(t *testing.T) {
	few := make([]point, short)
	for i := range few {
		few[i].covers = "the same"
	}
	if some := (Scenario{Name: "short"}).sampled(samplePoints, few, coverage{&sync.Map{}, &sync.Map{}}); len(some) != len(few) {
		t.Errorf("it runs %d of %d", len(some), len(few))
	}
}

func TestSampled_TakesAllOfAll(t *testing.T) {
	all, covered := forty(), coverage{&sync.Map{}, &sync.Map{}}
	for range 3 {
		if some := (Scenario{Name: "long"}).sampled(allPoints, all, covered); len(some) != len(all) {
			t.Errorf("it runs %d of %d", len(some), len(all))
		}
	}
}

// With no points a story is told once, and proves that the cache was left alone.
func TestPlay_TellsAStoryWithoutPointsOnce(t *testing.T) {
	told := 0
	t.Run("play", func(t *testing.T) {
		play(t, noPoints, Scenario{Name: "story", Run: func(w *World) {
			told++
			w.Create(Cluster("demo", Group("cpu", 1)))
			w.Settle()
			if !w.proving || len(w.proofs) == 0 {
				t.Error("nothing is kept to compare the cache with")
			}
		}})
	})
	if told != 1 {
		t.Errorf("the story was told %d times", told)
	}
}

func TestParseChoice_PrefersFlag(t *testing.T) {
	for _, c := range []struct {
		flag, setting string
		want          choice
	}{{"", "", samplePoints}, {"", "none", noPoints}, {"all", "none", allPoints}, {"sample", "all", samplePoints}} {
		if have, err := parseChoice(c.flag, c.setting); err != nil || have != c.want {
			t.Errorf("flag %q, setting %q: %q, %v, want %q", c.flag, c.setting, have, err, c.want)
		}
	}
	if _, err := parseChoice("", "few"); err == nil {
		t.Error("it takes any word")
	}
}
