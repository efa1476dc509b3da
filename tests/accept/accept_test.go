package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAScenarioIsPlayedOncePerCommit(t *testing.T) {
	played := 0
	s := scenario{name: "s", promise: "p", play: func(context.Context, string) (Outcome, error) {
		played++
		return Outcome{Measured: "m", Kept: played != 2}, nil
	}}
	state := filepath.Join(t.TempDir(), "s.json")
	// The second commit's promise is broken at first, so it is played again.
	for i, step := range []struct {
		commit string
		played int
	}{{"a", 1}, {"a", 1}, {"b", 2}, {"b", 3}, {"b", 3}, {"b" + changed, 4}, {"b" + changed, 5}} {
		outcome, err := s.once(t.Context(), state, step.commit)
		if err != nil || outcome.Scenario != "s" || outcome.Promise != "p" || played != step.played {
			t.Errorf("step %d: %+v, %v after %d plays, want %d", i, outcome, err, played, step.played)
		}
	}
	s.play = func(context.Context, string) (Outcome, error) { return Outcome{}, errors.New("no root") }
	if _, err := s.once(t.Context(), state, "c"); err == nil {
		t.Error("what showed nothing passed for an outcome")
	}
}

func TestAResultIsWrittenAsDataAndAsPage(t *testing.T) {
	dir := t.TempDir()
	samples := `[{"byHand":{"listed":10,"ready":11},"operator":{"unlisted":10,"listed":10.25,"ready":11.5}}]`
	result := Result{Area: "first-light", Commit: "abc", Machine: describeMachine(), Outcomes: []Outcome{
		{Scenario: "start", Promise: "soon", Measured: "late", Samples: json.RawMessage(samples)},
	}}
	if err := result.write(dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "first-light.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Commit abc", "| start | soon | late | **no** |", "| 1 | 10.00 | 11.00 | 10.25 | 11.50 | 1.25 |"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "first-light.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read Result
	if err := json.Unmarshal(text, &read); err != nil || read.Machine.Cores < 1 || read.Machine.MemoryGiB < 1 || read.Machine.Kernel == "" {
		t.Errorf("read back %+v, %v", read, err)
	}
	if host, _ := os.Hostname(); host != "" && strings.Contains(string(text), host) {
		t.Errorf("the name of the machine, %s, is in the result", host)
	}
}
