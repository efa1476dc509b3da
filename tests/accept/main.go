// Command accept runs the scenarios of an area at full counts and writes what they
// showed: docs/results/<area>.json with commit, machine and raw samples of each, and from
// it the page docs/results/<area>.md.
//
// In: -area, the repository as the working directory, root, and the programs that make
// build makes. Out: the two files, after each scenario; the exit code tells whether all of
// the area was shown for the code as it is, and kept. What the files say of a scenario
// counts as long as nothing but documentation has changed since, so that an area can be
// played in parts, and goes on where a run was stopped. It must never write the name of
// the machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
	if unknown := slices.IndexFunc(only, func(name string) bool { return !slices.Contains(namesOf(scenarios), name) }); unknown >= 0 {
		return fmt.Errorf("there is no scenario %q; there are: %s", only[unknown], strings.Join(namesOf(scenarios), ", "))
	}
	state := filepath.Join(".state", "accept", area)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return fmt.Errorf("make a directory for reports: %w", err)
	}
	result, err := read(area)
	if err != nil {
		return err
	}
	for _, scenario := range scenarios {
		if len(only) > 0 && !slices.Contains(only, scenario.name) {
			continue
		}
		if before, found := result.of(scenario.name); found && before.Kept && holds(ctx, before.Commit) {
			fmt.Printf("%s: shown before: %s\n", scenario.name, before.Measured)
			continue
		}
		outcome, err := scenario.once(ctx, state)
		if err != nil {
			return fmt.Errorf("scenario %s: %w", scenario.name, err)
		}
		result.put(outcome)
		if err := result.write(results); err != nil {
			return err
		}
	}
	return result.verdict(func(commit string) bool { return holds(ctx, commit) })
}

func areaNames() []string {
	var names []string
	for name := range areas {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func namesOf(scenarios []scenario) []string {
	names := make([]string, 0, len(scenarios))
	for _, scenario := range scenarios {
		names = append(names, scenario.name)
	}
	return names
}

// changed marks a commit whose code was changed since.
const changed = "+changes"

// code is what outcomes depend on: all files but documentation, as arguments of git.
func code() []string { return []string{"--", ".", ":!docs", ":!*.md"} }

// head is the commit, with a mark where the tree's code differs from it.
func head(ctx context.Context) (string, error) {
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("find the commit: %w: run it in the repository", err)
	}
	changes, err := exec.CommandContext(ctx, "git", append([]string{"status", "--porcelain"}, code()...)...).Output()
	if err != nil {
		return "", fmt.Errorf("look for changes since the commit: %w", err)
	}
	name := strings.TrimSpace(string(commit))
	if len(changes) > 0 {
		name += changed
	}
	return name, nil
}

// holds tells whether what was shown for a commit holds for the tree: its code is the same.
func holds(ctx context.Context, commit string) bool {
	if commit == "" || strings.HasSuffix(commit, changed) {
		return false
	}
	return exec.CommandContext(ctx, "git", append([]string{"diff", "--quiet", commit}, code()...)...).Run() == nil
}
