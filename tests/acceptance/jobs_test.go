package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestSubmissionsAreJudgedByTheirEffect(t *testing.T) {
	const want = realWaves * live.SubmissionsWave
	for _, c := range []struct {
		counted live.Submissions
		kept    bool
	}{
		{live.Submissions{Jobs: want, Kills: 3}, true},
		{live.Submissions{Jobs: want - 1, Kills: 3}, false},
		{live.Submissions{Jobs: want}, false},
		{live.Submissions{Jobs: want, Kills: 3, Doubled: 1}, false},
		{live.Submissions{Jobs: want, Kills: 3, Lost: 1}, false},
	} {
		if got, err := tally([]live.Submissions{c.counted}); err != nil || got.Kept != c.kept {
			t.Errorf("%+v: %+v, %v", c.counted, got, err)
		}
	}
	if got, err := tally(nil); err == nil {
		t.Errorf("nothing passed for a count: %+v", got)
	}
}

func TestACountOfManySubmissionsIsRead(t *testing.T) {
	for _, c := range []struct {
		output string
		failed error
		kept   bool
	}{
		{"    submissions_test.go:9: 10000 jobs, 31 operators killed: 0 doubled, 0 lost\n", nil, true},
		{"10000 jobs: 1 doubled, 0 lost", nil, false},
		{"10000 jobs: 0 doubled, 10 lost", nil, false},
		{"10000 jobs: 0 doubled, 0 lost", errors.New("exit status 1"), false},
	} {
		if got, err := doubledOrLost(c.output, c.failed); err != nil || got.Kept != c.kept {
			t.Errorf("%q: %+v, %v", c.output, got, err)
		}
	}
	if got, err := doubledOrLost("ok", nil); err == nil {
		t.Errorf("nothing passed for a count: %+v", got)
	}
}

func TestJobsHaveATable(t *testing.T) {
	if page := jobTable(json.RawMessage(`[{"byHand":10,"operator":12.5}]`)); !strings.Contains(page, "| 1 | 10.00 | 12.50 |") {
		t.Error(page)
	}
	if page := jobTable(json.RawMessage(`[]`)); strings.Contains(page, "|") {
		t.Error("no round gives a table: " + page)
	}
}
