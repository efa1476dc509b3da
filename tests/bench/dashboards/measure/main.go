// Command measure measures the dashboard proxy beside nginx.
//
// In: KUBECONFIG of a localkube up --control-plane-only, nginx and wrk, root, the repository as the working directory; what
// to measure, and how often. Out: a file with the figures of each round, as package dashboards has them. Both ends are real
// processes that speak TLS with one certificate, and hand on to one head, which is a process of its own. nginx asks nobody
// who a caller is, and the server does. It must never judge what it measures.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// measurement is a world, and how much of it is measured.
type measurement struct {
	*world
	rounds int
	out    string
}

func main() {
	m := &measurement{}
	what := flag.String("what", "rates", "what to measure: rates, sockets or busy")
	head := flag.String("head", "", "be the head at this address, and measure nothing")
	isApart := flag.Bool("apart", false, "be where each address is loopback; by default this program starts itself there")
	flag.IntVar(&m.rounds, "rounds", 3, "how often all is measured")
	flag.StringVar(&m.out, "out", "", "file for the figures")
	flag.Parse()
	log.SetLogger(logr.Discard()) // of the client library; what fails comes back as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := m.run
	switch {
	case *head != "":
		run, what = serveHead, head
	case !*isApart:
		run = func(ctx context.Context, _ string) error { return measureApart(ctx) }
	}
	if err := run(ctx, *what); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func (m *measurement) run(ctx context.Context, what string) (err error) {
	dir, err := os.MkdirTemp("", "dashboards")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	build := exec.CommandContext(ctx, "go", "build", "-o", "bin/server", "./apiserver/cmd/server")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the server: %w: %s", err, out)
	}
	if m.world, err = openWorld(ctx, dir); err != nil {
		return err
	}
	defer m.end()
	switch what {
	case "rates":
		return rounds(ctx, m, m.rates)
	case "sockets":
		return rounds(ctx, m, m.sockets)
	case "busy":
		return rounds(ctx, m, m.busy)
	}
	return fmt.Errorf("measure %q: it is none of rates, sockets, busy", what)
}

// rounds measures as often as is asked for, and writes the figures.
func rounds[R any](ctx context.Context, m *measurement, measure func(context.Context) (R, error)) error {
	var all []R
	for i := range m.rounds {
		one, err := measure(ctx)
		if err != nil {
			return fmt.Errorf("measure round %d: %w", i+1, err)
		}
		fmt.Printf("round %d: %+v\n", i+1, one)
		all = append(all, one)
	}
	text, err := json.Marshal(all)
	if err == nil && m.out != "" {
		err = os.WriteFile(m.out, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("keep the figures: %w", err)
	}
	return nil
}
