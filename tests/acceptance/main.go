// Command accept runs the scenarios of an area at full counts and writes what they
// showed: docs/results/<area>.json with commit, machine and tables of each, and from
// it the page docs/results/<area>.md. Raw samples stay in .state/accept/<area>.
//
// In: -area, or -list to print all scenarios; the repository as the working directory, root, and the programs that make
// build makes. Out: these files, after each scenario; the exit code reports whether all of
// the area was shown for the code as it is, and kept. What the results say of a scenario
// counts as long as neither its promise nor what it is about has changed since, so that an
// area can be played in parts, and goes on where a run was stopped. It must never write the
// name of the machine.
package main

import (
	"context"
	"crypto/sha256"
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
	list := flag.Bool("list", false, "print the scenarios of all areas and play none")
	flag.Parse()
	if *list {
		fmt.Println(strings.Join(listScenarios(), "\n"))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *area, strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })); err != nil {
		fmt.Fprintln(os.Stderr, "accept:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, area string, only []string) error {
	scenarios, err := asked(area, only)
	if err != nil {
		return err
	}
	state := filepath.Join(".state", "accept", area)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return fmt.Errorf("make a directory for reports: %w", err)
	}
	_, code, err := head(ctx)
	if err != nil {
		return err
	}
	result, err := read(area)
	if err != nil {
		return err
	}
	for _, scenario := range scenarios {
		if before, found := result.shown(scenario, code); found {
			fmt.Printf("%s: shown before: %s\n", scenario.name, before.Measured)
			continue
		}
		if err := result.play(ctx, scenario, state, results); err != nil {
			return err
		}
	}
	return result.verdict(scenarios, code)
}

// asked are those of an area's scenarios that are asked for, all if none is named.
func asked(area string, only []string) ([]scenario, error) {
	scenarios, ok := areas[area]
	if !ok {
		return nil, fmt.Errorf("there is no area %q; there are: %s", area, strings.Join(areaNames(), ", "))
	}
	if len(only) == 0 {
		return scenarios, nil
	}
	chosen := slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return !slices.Contains(only, s.name) })
	if len(chosen) < len(only) {
		return nil, fmt.Errorf("there are not all of the scenarios %s; there are: %s", strings.Join(only, ", "), strings.Join(namesOf(scenarios), ", "))
	}
	return chosen, nil
}

func areaNames() []string {
	var names []string
	for name := range areas {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// listScenarios returns "AREA SCENARIO" for each scenario of each area.
func listScenarios() []string {
	var lines []string
	for _, area := range areaNames() {
		for _, name := range namesOf(areas[area]) {
			lines = append(lines, area+" "+name)
		}
	}
	return lines
}

func namesOf(scenarios []scenario) []string {
	names := make([]string, 0, len(scenarios))
	for _, scenario := range scenarios {
		names = append(names, scenario.name)
	}
	return names
}

// changed marks a commit with changes since.
const changed = "+changes"

// subject is what outcomes are of, and what it ran on: tests may change, as long as a scenario's
// promise stays, and so may documentation.
var subject = []string{"--", "go.mod", "go.sum", "ray-operator", "apiserver", "cli", "python", "dashboard-proxy", "portal", "web", "proto", "helm-chart", "images", "examples", "tests/imagebuild", "tests/localkube", ":!*.md", ":!*_test.go"}

// head is the commit, with a mark where the tree differs from it in more than documentation, and
// the SHA-256 of the subject: of its files' names, modes and contents.
func head(ctx context.Context) (commit, code string, err error) {
	git := func(arguments ...string) (out []byte) {
		if err == nil {
			out, err = exec.CommandContext(ctx, "git", arguments...).Output()
		}
		return out
	}
	commit = strings.TrimSpace(string(git("rev-parse", "--short=12", "HEAD")))
	changes := git("status", "--porcelain", "--", ".", ":!docs", ":!*.md")
	files := git(append([]string{"ls-files", "--stage"}, subject...)...)
	unstaged := git(append([]string{"diff"}, subject...)...)
	untracked := git(append([]string{"ls-files", "--others", "--exclude-standard"}, subject...)...)
	if err != nil {
		return "", "", fmt.Errorf("find the commit and what changed since: %w: run it in the repository", err)
	}
	if len(changes) > 0 {
		commit += changed
	}
	return commit, fmt.Sprintf("%x", sha256.Sum256(slices.Concat(files, unstaged, untracked))), nil
}
