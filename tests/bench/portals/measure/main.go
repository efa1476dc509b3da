// Command measure measures the server for portals beside the API server of a local Kubernetes.
//
// In: KUBECONFIG and LOCALKUBE_NAME of a localkube up --control-plane-only, root, the repository as the working directory;
// what to measure, and how much. It makes the objects and the accounts of callers that it needs. Out: a file with the
// figures of each round, as package portals has them. Both ends are real processes that speak TLS, and are asked by the same
// program. It must never judge what it measures.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/bench/beside"
)

// measurement is a world, and how much of it is measured.
type measurement struct {
	*world
	objects, pods, requests, watchers, rate, rounds int
	during                                          time.Duration
	what, out, protocol                             string
	changes                                         *changes
}

// The protocols by which callers watch the server.
const (
	protocolHTTP2 = "HTTP/2"
	protocolHTTP1 = "HTTP/1.1"
)

func main() {
	m := &measurement{}
	flag.StringVar(&m.what, "what", "latency", "what to measure: latency, watch or memory")
	flag.StringVar(&m.out, "out", "", "file for the figures")
	flag.StringVar(&m.protocol, "protocol", protocolHTTP2, "protocol by which callers watch the server: HTTP/2 or HTTP/1.1")
	flag.IntVar(&m.objects, "objects", 5000, "how many objects of the three kinds there are")
	flag.IntVar(&m.requests, "requests", 1000, "how many requests of each sort go to each end, in each round")
	flag.IntVar(&m.watchers, "watchers", 1000, "how many callers watch")
	flag.IntVar(&m.rate, "rate", 100, "how many changes are made each second while they watch")
	flag.DurationVar(&m.during, "during", 20*time.Second, "how long changes are made that are counted")
	flag.IntVar(&m.rounds, "rounds", 3, "how often all is measured")
	flag.Parse()
	beside.Main(m.run)
}

func (m *measurement) run(ctx context.Context) error {
	if m.protocol != protocolHTTP2 && m.protocol != protocolHTTP1 {
		return fmt.Errorf("measure callers of protocol %q: it is neither %s nor %s", m.protocol, protocolHTTP2, protocolHTTP1)
	}
	var err error
	if m.world, err = openWorld(ctx); err != nil {
		return err
	}
	defer m.Close()
	if err := m.fill(ctx, m.objects); err != nil {
		return err
	}
	if m.changes, err = m.newChanges(ctx); err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := m.List(ctx, pods, client.HasLabels{v1beta1.LabelCluster}); err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	m.pods = len(pods.Items)
	switch m.what {
	case "latency":
		return beside.Rounds(ctx, m.rounds, m.out, m.latency)
	case "watch":
		return beside.Rounds(ctx, m.rounds, m.out, m.watching)
	case "memory":
		return beside.Rounds(ctx, m.rounds, m.out, m.holding)
	}
	return fmt.Errorf("measure %q: it is none of latency, watch, memory", m.what)
}
