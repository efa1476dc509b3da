// Command fleet measures what the operator costs and how fast it is with many clusters,
// beside a floor: a program that does nothing but the API writes that are needed.
//
// In: how many clusters and rounds, the repository as the working directory, and the
// programs that make build makes. Each run has a fresh, real etcd, API server, controller
// manager and scheduler; only the kubelets are stood for, by a program that says of every
// pod that it is ready 200 ms after it was bound. Out: docs/results/fleet-<n>.json with the
// figures of each run, and from it the table fleet-<n>.md. What was measured is kept in
// .state/bench-fleet until the commit changes, so that a run that was stopped goes on. It
// must never compare contenders that were not measured in the same manner.
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
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// options are what one can ask for.
type options struct {
	clusters, rounds    int
	settle              time.Duration
	idle                time.Duration
	contenders, layouts []string
	kubernetes, out     string
	// other names the file of an operator that is measured beside ours, empty for none.
	other string
	// state is where programs and what was measured are kept between runs.
	state   string
	profile bool
}

func main() {
	o := options{state: filepath.Join(".state", "bench-fleet")}
	flag.IntVar(&o.clusters, "n", 500, "how many clusters, each of a head and three workers")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each contender is measured in each layout")
	flag.DurationVar(&o.settle, "settle", 75*time.Second, "how long a fleet is left alone once it is ready, before it grows and the operator is restarted")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long what the contender asks for at rest is counted")
	flag.StringVar(&o.other, "other", "", "file of an operator that is measured beside ours; docs/benchmarks-others.md says what it contains")
	flag.StringVar(&o.kubernetes, "kubernetes", "", "directory of Kubernetes' programs, as bin/localkube build prints it")
	flag.StringVar(&o.out, "out", "docs/results", "directory for the results")
	flag.BoolVar(&o.profile, "profile", false, "instead, run the operator once under profilers; writes to .state/bench-fleet/profile")
	chosen := flag.String("contenders", "", "what to measure; all where it is empty")
	places := flag.String("layouts", strings.Join(usualLayouts(), ","), "where the clusters are: "+Spread+" is ten in a namespace, "+One+" is all in one, "+Mixed+" has jobs, services and idle policies")
	within := flag.Bool("inside", false, "the program runs in a network namespace of its own, where all addresses may be used")
	flag.Parse()
	log.SetLogger(logr.Discard()) // of the client library; what fails comes back as an error
	o.layouts = strings.Split(*places, ",")
	if *chosen != "" {
		o.contenders = strings.Split(*chosen, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	act := func() error { return run(ctx, o) }
	if slices.Contains(o.layouts, Mixed) && !o.profile {
		act = func() error { return inside(ctx) }
		if *within {
			act = func() error { return errors.Join(settle(ctx), run(ctx, o)) }
		}
	}
	if err := act(); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// check refuses what cannot be measured. The other operator, where there is one, is among those that are known.
func (o options) check(known []string) error {
	for _, choice := range []struct{ given, known []string }{
		{o.contenders, known}, {o.layouts, layouts()},
	} {
		for _, name := range choice.given {
			if !slices.Contains(choice.known, name) {
				return fmt.Errorf("there is no %q; there are: %s", name, strings.Join(choice.known, ", "))
			}
		}
	}
	if o.clusters < 1 || o.rounds < 1 {
		return fmt.Errorf("%d clusters in %d rounds: give at least one of each", o.clusters, o.rounds)
	}
	if _, err := os.Stat(filepath.Join(o.kubernetes, "kube-apiserver")); err != nil {
		return fmt.Errorf("find Kubernetes' programs: %w: bin/localkube build builds them and prints their directory", err)
	}
	return nil
}

func run(ctx context.Context, o options) error {
	var other *other
	known := contenders()
	if o.other != "" {
		var err error
		if other, err = readOther(o.other); err != nil {
			return err
		}
		known = append(known, other.Name)
	}
	if len(o.contenders) == 0 {
		o.contenders = known
	}
	if err := o.check(known); err != nil {
		return err
	}
	b, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	b.other = other
	if o.profile {
		return b.profile(ctx, filepath.Join(o.state, "profile"))
	}
	result, err := b.rounds(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s", result.page())
	return result.write(o.out)
}

// prepare builds the programs, renders the chart and has the operator make the objects
// that the floor makes too.
func prepare(ctx context.Context, o options) (*bench, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the repository: %w", err)
	}
	built, err := filepath.Abs(filepath.Join(o.state, "bin"))
	if err == nil {
		err = os.MkdirAll(built, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("make a directory for programs: %w", err)
	}
	b := &bench{clusters: o.clusters, settle: o.settle, idle: o.idle, kubernetes: o.kubernetes, built: built, mould: filepath.Join(built, "mould.json"), scratch: scratch()}
	if b.chart, err = readChart(ctx, root); err != nil {
		return nil, err
	}
	if err := b.build(ctx, root, o.profile); err != nil {
		return nil, err
	}
	if o.profile {
		return b, nil
	}
	fmt.Println("the operator makes one cluster, so that the floor can make the same")
	return b, b.cast(ctx)
}

// scratch is a directory in memory, where there is one.
func scratch() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return os.TempDir()
}
