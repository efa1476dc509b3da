// Command accept runs the scenarios of an area at full counts and writes what they
// showed: docs/results/<area>.json with commit, machine and raw samples, and from it the
// table docs/results/<area>.md.
//
// In: -area, the repository as the working directory, root, and the programs that make
// build makes. Out: the two files, also where a promise was not kept; the exit code tells
// of that. What a scenario showed is kept in .state/accept until the commit changes, so
// that a run that was stopped goes on where it was. It must never write the name of the
// machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	area := flag.String("area", "", "what to run: "+strings.Join(areaNames(), ", "))
	only := flag.String("scenarios", "", "which scenarios of it to play, by their names; of the others what was shown before counts (default: all)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *area, strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })); err != nil {
		fmt.Fprintln(os.Stderr, "accept:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, area string, only []string) error {
	scenarios, ok := areas[area]
	if !ok {
		return fmt.Errorf("there is no area %q; there are: %s", area, strings.Join(areaNames(), ", "))
	}
	commit, err := head(ctx)
	if err != nil {
		return err
	}
	result := Result{Area: area, Commit: commit, Machine: describeMachine(), Date: time.Now().UTC().Format(time.DateOnly)}
	state := filepath.Join(".state", "accept", area)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return fmt.Errorf("keep what was shown so far: %w", err)
	}
	var broken []error
	var unplayed []string
	for _, scenario := range scenarios {
		if len(only) > 0 && !slices.Contains(only, scenario.name) && !scenario.shown(filepath.Join(state, scenario.name+".json"), commit) {
			unplayed = append(unplayed, scenario.name)
			continue
		}
		outcome, err := scenario.once(ctx, filepath.Join(state, scenario.name+".json"), commit)
		if err != nil {
			return fmt.Errorf("scenario %s: %w", scenario.name, err)
		}
		if !outcome.Kept {
			broken = append(broken, fmt.Errorf("%s: promised: %s; measured: %s", scenario.name, outcome.Promise, outcome.Measured))
		}
		result.Outcomes = append(result.Outcomes, outcome)
	}
	if len(unplayed) > 0 {
		return errors.Join(append(broken, fmt.Errorf("no page is written, because these were not played for %s: %s", commit, strings.Join(unplayed, ", ")))...)
	}
	return errors.Join(append(broken, result.write(filepath.Join("docs", "results")))...)
}

func areaNames() []string {
	var names []string
	for name := range areas {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
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
