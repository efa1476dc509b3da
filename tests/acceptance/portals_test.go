package main

import (
	"errors"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestSaidBy_CountsWhatTestsSaid(t *testing.T) {
	output := "    a_test.go:1: 3000 decisions, answers by code: map[200:5]\n    b_test.go:2: 3000 decisions, answers by code: map[403:7]\n"
	outcome, err := saidBy(output, answersByCode, 2, nil)
	if want := "3000 decisions, answers by code: map[200:5]; 3000 decisions, answers by code: map[403:7]"; err != nil || outcome.Measured != want || !outcome.Kept {
		t.Errorf("it is %+v (%v)", outcome, err)
	}
	if outcome, err := saidBy(output, answersByCode, 2, errors.New("failed")); err != nil || outcome.Kept {
		t.Errorf("a test that failed is %+v (%v)", outcome, err)
	}
	if _, err := saidBy(output, answersByCode, 3, nil); err == nil {
		t.Error("a test that said nothing is taken")
	}
}

func TestFollowed_IsKeptByteForByte(t *testing.T) {
	good := live.Followed{Lines: portalLines, Bytes: 9, Kills: portalKills, IsSame: true}
	for name, c := range map[string]struct {
		change func(*live.Followed)
		specs  int
		want   bool
	}{
		"all of it":       {func(*live.Followed) {}, portalPrograms, true},
		"a program less":  {func(*live.Followed) {}, portalPrograms - 1, false},
		"a line less":     {func(f *live.Followed) { f.Lines-- }, portalPrograms, false},
		"never killed":    {func(f *live.Followed) { f.Kills = 0 }, portalPrograms, false},
		"not as the file": {func(f *live.Followed) { f.IsSame = false }, portalPrograms, false},
	} {
		one := good
		c.change(&one)
		if outcome, err := followed([]live.Followed{one}, c.specs); err != nil || outcome.Kept != c.want {
			t.Errorf("%s: %+v (%v)", name, outcome, err)
		}
	}
	if _, err := followed(nil, portalPrograms); err == nil {
		t.Error("specs that followed nothing are taken")
	}
}

func TestWatched_IsKeptWithEachChange(t *testing.T) {
	for name, c := range map[string]struct {
		seen    map[string]int
		seconds float64
		want    bool
	}{
		"all":        {map[string]int{"kubectl": 500, "python": 500}, portalWatch, true},
		"one less":   {map[string]int{"kubectl": 500, "python": 499}, portalWatch, false},
		"one client": {map[string]int{"kubectl": 500}, portalWatch, false},
		"too short":  {map[string]int{"kubectl": 500, "python": 500}, portalWatch - 1, false},
	} {
		outcome, err := watched([]live.Watched{{Seconds: c.seconds, Made: 500, Seen: c.seen}})
		if err != nil || outcome.Kept != c.want {
			t.Errorf("%s: %+v (%v)", name, outcome, err)
		}
	}
	if _, err := watched(nil); err == nil {
		t.Error("specs that watched nothing are taken")
	}
}

func TestReaders_AreKeptWithinBounds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*live.Outputs)
		want   bool
	}{
		"at the bounds": {func(*live.Outputs) {}, true},
		"too slow":      {func(o *live.Outputs) { o.Server = []float64{79} }, false},
		"too much CPU":  {func(o *live.Outputs) { o.Many = []float64{1.2} }, false},
		"two requests":  {func(o *live.Outputs) { o.Requests = []int{1, 2} }, false},
		"too small":     {func(o *live.Outputs) { o.Bytes = 1 }, false},
		"too few":       {func(o *live.Outputs) { o.Readers = 99 }, false},
	} {
		one := live.Outputs{Bytes: 100e6, Head: []float64{100}, Server: []float64{80}, Readers: 100, Requests: []int{1}, One: []float64{1}, Many: []float64{1.1}}
		c.change(&one)
		if outcome, err := readers([]live.Outputs{one}); err != nil || outcome.Kept != c.want {
			t.Errorf("%s: %+v (%v)", name, outcome, err)
		}
	}
	if _, err := readers([]live.Outputs{{}}); err == nil {
		t.Error("a spec that measured nothing is taken")
	}
}
