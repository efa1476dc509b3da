package client_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/protocoltest"
)

// The test of the memory runs this program a second time, as the autoscalers: what they need
// is not the operator's.
func TestMain(m *testing.M) {
	autoscalers := flag.Bool("autoscalers", false, "be the autoscalers of the test of the memory, until standard input ends")
	flag.Parse()
	if *autoscalers {
		os.Exit(serve())
	}
	os.Exit(m.Run())
}

func serve() int {
	sidecar, err := protocoltest.StartSidecar()
	if err == nil {
		defer sidecar.Close()
		err = sidecar.Say(protocol.Decision{Head: "head", Targets: []protocol.Target{{Group: "cpu", Replicas: 3, Reason: "minimum"}}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(sidecar.Address())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // it ends with the test
	return 0
}

// inUse is what the program needs, in bytes: spans of the heap and stacks that are in use.
func inUse() uint64 {
	runtime.GC()
	runtime.GC() // what pools gave up is freed by the second
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}

// TestMemoryOfACalmCluster holds each of 200 clusters to 50 KiB.
func TestMemoryOfACalmCluster(t *testing.T) {
	const clusters = 200
	autoscalers := exec.CommandContext(t.Context(), os.Args[0], "-autoscalers")
	autoscalers.Stderr = os.Stderr
	stdin, err := autoscalers.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := autoscalers.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := autoscalers.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stdin.Close()
		if err := autoscalers.Wait(); err != nil {
			t.Error(err)
		}
	}()
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}

	link := client.New(clock.RealClock{}, headclient.ConnectAnywhere, nil)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- link.Start(ctx) }()
	snapshot := protocol.Snapshot{Pace: decision.Default, Groups: []protocol.Group{{
		Name: "cpu", Max: 10, Hosts: 1, IdleTimeout: time.Minute,
		Resources: map[string]float64{"CPU": 4, "memory": 1 << 33}, Labels: map[string]string{"ray.io/node-group": "cpu"},
	}}}
	for i := range 3 {
		snapshot.Pods = append(snapshot.Pods, protocol.Pod{
			UID: fmt.Sprintf("9f3c4a6e-6f0e-4a63-a7c4-5d9d9d6e5a0%d", i), Group: "cpu", Replica: i, Stage: protocol.Ready, Since: time.UnixMilli(1e12),
		})
	}
	want := func(first, end int) {
		for i := first; i < end; i++ {
			link.Want(name(i), client.Target{Head: "head", Address: strings.TrimSpace(address), Snapshot: snapshot, Token: token("secret")})
		}
		all(t, link, end)
	}
	want(0, 10) // what the first ones need that is everybody's
	before := inUse()
	want(10, 10+clusters)
	each := (inUse() - before) / clusters
	t.Logf("%d KiB each", each>>10)
	if each > most {
		t.Errorf("a calm cluster needs %d bytes, at most %d may be", each, most)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func name(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("demo-%d", i)}
}

func token(is string) headclient.Token {
	return func(context.Context) (string, error) { return is, nil }
}

// all waits until so many clusters have heard a decision, and time for what was said to settle.
func all(t *testing.T, link client.Source, count int) {
	t.Helper()
	settled := 0
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 60*time.Second, true, func(context.Context) (bool, error) {
		for i := range count {
			if answer, ok := link.Last(name(i), "head"); !ok || answer.At.IsZero() {
				return false, nil
			}
		}
		settled++
		return settled == 10, nil
	})
	if err != nil {
		t.Fatalf("not all of %d clusters have heard a decision: %v", count, err)
	}
}
