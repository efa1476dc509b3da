// Command measure measures the dashboard proxy beside nginx.
//
// In: KUBECONFIG of a localkube up --control-plane-only, nginx and wrk, root, the repository as the working directory; what
// to measure, and how often. Out: a file with the figures of each round, as package dashboards has them. Both ends are real
// processes that speak TLS with one certificate, and hand on to one head, which is a process of its own. nginx asks nobody
// who a caller is, and the server does. It must never judge what it measures.
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/heliostat-dev/heliostat/tests/bench/beside"
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
	run := m.run
	switch {
	case *head != "":
		run, what = serveHead, head
	case !*isApart:
		run = func(ctx context.Context, _ string) error { return measureApart(ctx) }
	}
	beside.Main(func(ctx context.Context) error { return run(ctx, *what) })
}

func (m *measurement) run(ctx context.Context, what string) (err error) {
	if m.world, err = openWorld(ctx); err != nil {
		return err
	}
	defer m.end()
	switch what {
	case "rates":
		return beside.Rounds(ctx, m.rounds, m.out, m.rates)
	case "sockets":
		return beside.Rounds(ctx, m.rounds, m.out, m.sockets)
	case "busy":
		return beside.Rounds(ctx, m.rounds, m.out, m.busy)
	}
	return fmt.Errorf("measure %q: it is none of rates, sockets, busy", what)
}
