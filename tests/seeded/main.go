// Command seeded asks which layer of the tests finds a fault in the product, for a list of faults.
//
// In: the rows in faults/*.yaml, a checkout whose product is changed, and the Go toolchain; for the
// layers that need a Kubernetes what tests/run.sh needs. Out: docs/results/seeded-faults.json and
// .md, which name the layer and the test that found each fault, or say that it survived.
//
// It must never change the checkout itself: each fault is written into a scratch worktree of its
// commit and taken out again. A run that was stopped goes on where it was: what the results hold
// of an unchanged row is not tried again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings say what a run tries.
type settings struct {
	area, only string
	layers     []string
	tree, as   string
	again      bool
	timeout    time.Duration
}

func main() {
	var set settings
	var layers string
	flag.StringVar(&set.area, "area", "", "try only the faults of this area")
	flag.StringVar(&set.only, "only", "", "try only the faults with these ids, separated by commas")
	flag.StringVar(&layers, "layers", strings.Join(layerNames(), ","), "the layers to ask")
	flag.StringVar(&set.tree, "tree", ".", "the checkout whose commit is tried")
	flag.StringVar(&set.as, "as", "after", "the column of the results: before or after")
	flag.BoolVar(&set.again, "again", false, "try again what the results hold")
	flag.DurationVar(&set.timeout, "timeout", 3*time.Minute, "how long the unit tests of one package may take")
	flag.Parse()
	set.layers = strings.Split(layers, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, set); err != nil {
		fmt.Fprintln(os.Stderr, "seeded:", err)
		os.Exit(1)
	}
}

func (s settings) check() error {
	for _, name := range s.layers {
		if !slices.Contains(layerNames(), name) {
			return fmt.Errorf("there is no layer %q; there are: %s", name, strings.Join(layerNames(), ", "))
		}
	}
	if s.as != "before" && s.as != "after" {
		return fmt.Errorf("-as is %q, want before or after", s.as)
	}
	return nil
}

// buildAlike has what is compiled here and by make be found in Go's cache by either.
func buildAlike() error {
	flags := os.Getenv("GOFLAGS")
	if !strings.Contains(flags, "-trimpath") {
		flags = strings.TrimSpace(flags + " -trimpath")
	}
	return errors.Join(os.Setenv("CGO_ENABLED", "0"), os.Setenv("GOFLAGS", flags))
}

// chosen reports whether a run tries a fault.
func (s settings) chosen(fault Fault) bool {
	named := s.only == "" || slices.Contains(strings.Split(s.only, ","), fault.ID)
	return named && (s.area == "" || s.area == fault.Area)
}

func run(ctx context.Context, set settings) (err error) {
	if err := errors.Join(set.check(), buildAlike()); err != nil {
		return err
	}
	faults, err := readFaults("tests/seeded/faults")
	if err != nil {
		return err
	}
	results, err := readResults(resultsFile)
	if err != nil {
		return err
	}
	scratch, err := newScratch(ctx, set.tree)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scratch.remove()) }()
	var wrong []error
	for _, fault := range faults {
		if !set.chosen(fault) {
			continue
		}
		known := results.of(fault, set.as)
		if set.again {
			known = Outcome{}
		}
		outcome, err := try(ctx, scratch, fault, set, known)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("try %s: %w", fault.ID, err))
			continue
		}
		fmt.Printf("%-28s %s\n", fault.ID, outcome)
		results.put(fault, set.as, outcome)
		if err := results.write(faults); err != nil {
			return err
		}
	}
	return errors.Join(append(wrong, ctx.Err(), results.write(faults))...)
}

// try asks the layers, cheapest first, until one finds the fault. It asks no layer twice.
func try(ctx context.Context, scratch *scratch, fault Fault, set settings, known Outcome) (Outcome, error) {
	outcome := known
	if outcome.Layer != "" {
		return outcome, nil
	}
	undo, err := scratch.apply(fault)
	var away *notThereError
	switch {
	case errors.As(err, &away):
		return Outcome{Commit: scratch.commit, Away: away.Error()}, nil
	case err != nil:
		return Outcome{}, err
	}
	outcome.Commit, outcome.Away = scratch.commit, ""
	err = ask(ctx, scratch, fault, set, &outcome)
	return outcome, errors.Join(err, undo())
}

func ask(ctx context.Context, scratch *scratch, fault Fault, set settings, outcome *Outcome) error {
	if err := scratch.build(ctx, fault); err != nil {
		return fmt.Errorf("a fault must compile: %w", err)
	}
	for _, layer := range layers() {
		if !slices.Contains(set.layers, layer.name) || slices.Contains(outcome.Missed, layer.name) || !layer.concerns(fault) {
			continue
		}
		began := time.Now()
		found, err := layer.find(ctx, scratch, fault, set.timeout)
		if err := errors.Join(err, ctx.Err()); err != nil {
			return fmt.Errorf("ask the layer %s: %w", layer.name, err)
		}
		outcome.Seconds += time.Since(began).Round(100 * time.Millisecond).Seconds()
		if found != nil {
			outcome.Layer, outcome.Test = layer.name, found.test
			return nil
		}
		outcome.Missed = append(outcome.Missed, layer.name)
	}
	return nil
}
