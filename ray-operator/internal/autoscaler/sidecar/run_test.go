package sidecar

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/protocoltest"
)

const secret = "the-cluster's-token"

// runningSidecar is the whole autoscaler, on ports of its own, with a head that wants the token.
type runningSidecar struct {
	head            *fakehead.Head
	listen, metrics string
	end             func() error
}

func run(t *testing.T) runningSidecar {
	t.Helper()
	return runOn(t, free(t), free(t), io.Discard)
}

func runOn(t *testing.T, listen, metrics string, log io.Writer) runningSidecar {
	t.Helper()
	head := guarded(t)
	return runWith(t, head, Config{
		GCS: head.Address(), Listen: listen, Metrics: metrics, Clock: clock.RealClock{}, Log: slog.New(slog.NewTextHandler(log, nil)),
		Token: func() (string, error) { return secret, nil },
	})
}

// guarded is a head that wants the token.
func guarded(t *testing.T) *fakehead.Head {
	t.Helper()
	head, err := fakehead.Start(clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(head.Close)
	head.SetToken(secret)
	head.Join(fakehead.Member{Instance: "the head's", Head: true})
	return head
}

func runWith(t *testing.T, head *fakehead.Head, cfg Config) runningSidecar {
	t.Helper()
	p := runningSidecar{head: head, listen: cfg.Listen, metrics: cfg.Metrics}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	p.end = func() error {
		stop()
		return <-ended
	}
	t.Cleanup(stop)
	return p
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // nobody came
	return listener.Addr().String()
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	}); err != nil {
		t.Fatal(last)
	}
}

// connect is an operator that has the autoscaler's ear.
func (p runningSidecar) connect(t *testing.T) *protocoltest.Operator {
	t.Helper()
	var operator *protocoltest.Operator
	eventually(t, func() (err error) {
		operator, err = protocoltest.Connect(t.Context(), p.listen, "head", secret)
		return err
	})
	t.Cleanup(operator.Close)
	return operator
}

func (p runningSidecar) get(t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.metrics+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", path, response.Status, err, body)
	}
	return string(body)
}

// TestRun goes the whole way, over the network: an operator's orders, demand, a worker that
// idles and is drained, another operator, metrics, and the end.
func TestRun(t *testing.T) {
	p := run(t)
	operator := p.connect(t)
	group := cpuGroup(4)
	group.IdleTimeout = 300 * time.Millisecond
	snapshot := protocol.Snapshot{Head: "head", Pace: "Default", Groups: []protocol.Group{group}}
	if err := operator.Order(snapshot); err != nil {
		t.Fatal(err)
	}
	end := p.head.Want(cpus(1))
	says := func(who *protocoltest.Operator, what string, so func(protocol.Decision) bool) {
		t.Helper()
		eventually(t, func() error {
			if decision, _ := who.Decision(); !so(decision) {
				return fmt.Errorf("%s: %+v, %w", what, decision, who.Err())
			}
			return nil
		})
	}
	says(operator, "one is wanted", func(w protocol.Decision) bool { return len(w.Targets) == 1 && w.Targets[0].Replicas == 1 })

	node := p.head.Join(fakehead.Member{Instance: "a", Type: "cpu", Total: group.Resources})
	snapshot.Pods = []protocol.Pod{{UID: "a", Group: "cpu", Stage: protocol.Ready, Since: time.Now()}}
	second := p.connect(t) // and takes over
	if err := second.Order(snapshot); err != nil {
		t.Fatal(err)
	}
	<-operator.Ended()
	end()
	says(second, "it is drained", func(w protocol.Decision) bool {
		return len(w.Removals) == 1 && w.Removals[0] == protocol.Removal{Pod: "a", Node: node.String(), Reason: protocol.Idle, Drained: true}
	})

	if _, err := protocoltest.Connect(t.Context(), p.listen, "head", "another"); err == nil {
		t.Error("an operator with another token is listened to")
	}
	p.get(t, "/healthz")
	metrics := p.get(t, "/metrics")
	for _, line := range []string{
		`autoscaler_active_nodes{NodeType="headgroup"`, `autoscaler_pending_nodes{NodeType="cpu"`, `autoscaler_recently_failed_nodes{NodeType="cpu"`,
		"autoscaler_cluster_resources{", "autoscaler_stopped_nodes_total{", "heliostat_autoscaler_round_seconds_count", "heliostat_autoscaler_decision_seconds_bucket",
		`heliostat_autoscaler_decisions_total{result="Changed"}`, `heliostat_autoscaler_decisions_total{result="Failed"} 0`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("%s is not among the metrics:\n%s", line, metrics)
		}
	}
	if address, _ := p.head.Stored("", "AutoscalerMetricsAddress"); address != p.metrics {
		t.Errorf("metrics are announced at %q instead of %s", address, p.metrics)
	}
	began := time.Now()
	if err := p.end(); err != nil || time.Since(began) > time.Second {
		t.Errorf("it ended after %s: %v", time.Since(began), err)
	}
}

// TestPortsTaken: a port that somebody else has is taken as soon as it is free, and what
// cannot listen at all says so.
func TestPortsTaken(t *testing.T) {
	for i := range 2 {
		ports := []string{free(t), free(t)}
		leave := occupy(t, ports[i])
		said, log := io.Pipe()
		p := runOn(t, ports[0], ports[1], log)
		if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.Contains(line, "The port is in use") {
			t.Errorf("it said %q, %v", line, err)
		}
		go func() { _, _ = io.Copy(io.Discard, said) }()
		leave()
		p.connect(t)
		p.get(t, "/healthz")
		if err := p.end(); err != nil {
			t.Error(err)
		}
		leave = occupy(t, ports[i])
		if err := runOn(t, ports[0], ports[1], io.Discard).end(); err == nil || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("it ended before it could listen: %v", err)
		}
		leave()
	}
	err := Run(t.Context(), Config{Listen: "127.0.0.1:70000", Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "listen for the operator") {
		t.Errorf("a port that is none: %v", err)
	}
}

// occupy takes a port, and gives the way to leave it.
func occupy(t *testing.T, address string) (leave func()) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
