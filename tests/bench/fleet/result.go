package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// Result is what all runs showed on one machine.
type Result struct {
	Clusters int          `json:"clusters"`
	Command  string       `json:"command"`
	Commit   string       `json:"commit"`
	Date     string       `json:"date"`
	Machine  live.Machine `json:"machine"`
	Samples  []Sample     `json:"samples"`
}

// rounds measures everything that was asked for. Who begins alternates from round to
// round, so that neither gains from what the machine does meanwhile.
func (b *bench) rounds(ctx context.Context, o options) (Result, error) {
	commit, err := head(ctx)
	if err != nil {
		return Result{}, err
	}
	r := Result{
		Clusters: o.clusters, Commit: commit, Machine: live.DescribeMachine(), Date: time.Now().UTC().Format(time.DateOnly),
		Command: o.command(),
	}
	for round := range o.rounds {
		order := slices.Clone(o.contenders)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, layout := range o.layouts {
			for _, contender := range order {
				if layout == Mixed && contender != Operator {
					continue // the others know of clusters alone
				}
				file := filepath.Join(o.state, fmt.Sprintf("%d-%s-%s-%d.json", o.clusters, layout, contender, round))
				sample, err := kept(file, commit, func() (Sample, error) { return b.measure(ctx, contender, layout) })
				if err != nil {
					return r, fmt.Errorf("measure %s, %s, round %d: %w", contender, layout, round+1, err)
				}
				sample.Round = round + 1
				fmt.Println(sample.line())
				r.Samples = append(r.Samples, sample)
			}
		}
	}
	return r, nil
}

// command is how to run the same again.
func (o options) command() string {
	text := fmt.Sprintf("make bench-fleet N=%d ROUNDS=%d", o.clusters, o.rounds)
	for _, choice := range []struct {
		name         string
		given, usual []string
	}{{"CONTENDERS", o.contenders, contenders()}, {"LAYOUTS", o.layouts, usualLayouts()}} {
		if !slices.Equal(choice.given, choice.usual) {
			text += fmt.Sprintf(" %s=%s", choice.name, strings.Join(choice.given, ","))
		}
	}
	return text
}

// changed marks a commit whose tree was changed since.
const changed = "+changes"

// head is the commit, with a mark where the tree differs from it in more than results.
func head(ctx context.Context) (string, error) {
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("find the commit: %w: run it in the repository", err)
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".", ":!docs/results").Output()
	if err != nil {
		return "", fmt.Errorf("look for changes since the commit: %w", err)
	}
	name := strings.TrimSpace(string(commit))
	if len(changes) > 0 {
		name += changed
	}
	return name, nil
}

// kept gives the sample that was kept of the commit, or measures and keeps it.
func kept(file, commit string, measure func() (Sample, error)) (Sample, error) {
	var before struct {
		Commit string
		Sample Sample
	}
	text, err := os.ReadFile(file)
	switch {
	case err == nil && json.Unmarshal(text, &before) == nil && before.Commit == commit && !strings.HasSuffix(commit, changed):
		return before.Sample, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Sample{}, fmt.Errorf("read what was measured before: %w", err)
	}
	if before.Sample, err = measure(); err != nil {
		return Sample{}, err
	}
	before.Commit = commit
	if text, err = json.Marshal(before); err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		return Sample{}, fmt.Errorf("keep what was measured: %w", err)
	}
	return before.Sample, nil
}

// write writes the JSON file and the page.
func (r Result) write(dir string) error {
	return live.WriteResult(dir, fmt.Sprintf("fleet-%d", r.Clusters), r, r.page())
}
