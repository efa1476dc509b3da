// Command mutation asks what the tests of a package would notice: it changes the package
// in small ways, one at a time, and runs the package's own tests against each change.
//
// In: packages, the Go toolchain, and reasons.yaml, which says of a change why no test
// notices it. Out: how many changes were noticed, and those that were not; with -results
// also docs/results/mutation.json and .md. It exits with 1 where a package is below the
// promised share, or a survivor has no reason.
//
// It must never write into the package: changed code is an overlay of the build, and all
// changes are in one test binary, chosen by a variable of its environment, because a link
// for each would take hours. What a binary showed is kept in .state/mutation, so a run
// that was stopped goes on where it was.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const (
	// state holds what is known of each package, and its test binary.
	state = ".state/mutation"
	// promised is the least share of mutants, in percent, that tests must notice.
	promised = 90.0
)

// purePackages are those whose share is promised, smallest first.
func purePackages() []string {
	const internal = "ray-operator/internal/"
	return []string{
		internal + "upgrade", internal + "scale", internal + "gang", internal + "autoscale", internal + "serveconfig", "ray-operator/naming",
		internal + "desired", internal + "desired/pod", internal + "rights", internal + "diagnose", "ray-operator/validate", "ray-operator/reason",
	}
}

func main() {
	results := flag.String("results", "", "directory to write mutation.json and mutation.md to")
	again := flag.Bool("survivors", false, "try only what survived the last time, and trust the rest")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = purePackages()
	}
	if err := run(ctx, packages, *again, *results); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, packages []string, again bool, results string) error {
	known, err := readReasons("tests/mutation/reasons.yaml")
	if err != nil {
		return err
	}
	summary, err := describe(ctx, packages)
	if err != nil {
		return err
	}
	var wrong []error
	for _, name := range packages {
		outcome, err := try(ctx, name, settings{dir: filepath.Join(state, flat(name)), again: again, shortest: 5 * time.Second})
		if err != nil {
			return fmt.Errorf("mutate %s: %w", name, err)
		}
		report := judge(name, outcome, known[name])
		fmt.Println(report.line())
		wrong = append(wrong, report.wrong()...)
		summary.Packages = append(summary.Packages, report)
	}
	if results != "" {
		slices.SortFunc(summary.Packages, byName)
		wrong = append(wrong, summary.write(results))
	}
	return errors.Join(wrong...)
}
