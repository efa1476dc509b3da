// Command commands measures the command line beside kubectl on a local Kubernetes without nodes.
//
// In: KUBECONFIG, helm as HELM, the repository as the working directory; how many clusters, and how often. Out: a file with the
// figures of each round: what both programs took for the same objects, in turn, and their sizes; what the converter took, and
// what parsing the same took. It must never judge what it measures.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// namespace is where the clusters are, and atOnce how many are made at a time.
const (
	namespace = "commands"
	atOnce    = 8
)

func main() {
	count := flag.Int("clusters", 500, "how many clusters there are")
	rounds := flag.Int("rounds", 21, "how often each program runs")
	out := flag.String("out", "", "file for the figures")
	flag.Parse()
	log.SetLogger(logr.Discard()) // of the client library; what fails comes back as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *count, *rounds, *out); err != nil {
		fmt.Fprintln(os.Stderr, "commands:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, count, rounds int, out string) error {
	dir, err := os.MkdirTemp("", "commands")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := prepare(ctx, count); err != nil {
		return err
	}
	f := live.CommandCosts{Clusters: count}
	ours, kubectl := filepath.Join(dir, "heliostat"), filepath.Join(dir, "kubectl")
	if f.SizeMiB, err = build(ctx, ".", ours, "./cli/cmd/heliostat"); err != nil {
		return err
	}
	if f.KubectlSizeMiB, err = build(ctx, "tests/localkube/kube", kubectl, "k8s.io/kubernetes/cmd/kubectl"); err != nil {
		return err
	}
	for round := range rounds + 1 {
		top, err := measure(ctx, dir, ours, "top", "clusters", "-A")
		if err != nil {
			return err
		}
		get, err := measure(ctx, dir, kubectl, "get", "computeclusters", "-A")
		if err != nil {
			return err
		}
		if round > 0 { // the first one fills kubectl's cache of kinds
			f.Top, f.Get = append(f.Top, top), append(f.Get, get)
		}
	}
	if f.ConvertMs, f.ParseMs, err = conversions(ctx); err != nil {
		return err
	}
	text, err := json.Marshal([]live.CommandCosts{f})
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return os.WriteFile(out, text, 0o600)
}

// prepare makes the kinds and as many clusters, with the status of those that are ready.
func prepare(ctx context.Context, count int) error {
	c, err := live.Open(ctx)
	if err != nil {
		return err
	}
	files, err := filepath.Glob("ray-operator/config/crd/heliostat.dev_*.yaml")
	if err != nil {
		return fmt.Errorf("find the kinds: %w", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a kind: %w", err)
		}
		if err := c.Apply(ctx, "", text); err != nil {
			return err
		}
	}
	if err := live.Until(ctx, time.Minute, "the kind ComputeCluster to be served", func(ctx context.Context) error {
		return c.List(ctx, &v1beta1.ComputeClusterList{}, client.Limit(1))
	}); err != nil {
		return err
	}
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.Create(ctx, home); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create a namespace: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range count {
		group.Go(func() error { return makeCluster(ctx, c, fmt.Sprintf("cluster-%04d", i)) })
	}
	return group.Wait()
}

// makeCluster makes a cluster that says that it is ready.
func makeCluster(ctx context.Context, c *live.Cluster, name string) error {
	two := int32(2)
	cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	cluster.Spec.RayVersion, cluster.Spec.WorkerGroups = "2.60.0", []v1beta1.WorkerGroup{{Name: "cpu", Replicas: &two}}
	if err := c.Create(ctx, cluster); err != nil {
		return fmt.Errorf("create cluster %s: %w", name, err)
	}
	cluster.Status.Phase, cluster.Status.ObservedGeneration = v1beta1.PhaseReady, cluster.Generation
	cluster.Status.Workers = v1beta1.WorkerCounts{Desired: two, Created: two, Ready: two}
	ready := reason.AllReady.Of(two, two)
	for _, kind := range []string{v1beta1.ConditionReady, v1beta1.ConditionHeadReady, v1beta1.ConditionReconciling} {
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
			Reason: ready.Code, Message: ready.Text})
	}
	if err := c.Status().Update(ctx, cluster); err != nil {
		return fmt.Errorf("write the status of cluster %s: %w", name, err)
	}
	return nil
}

// build builds a program as releases are, and returns its size in MiB.
func build(ctx context.Context, module, to, pack string) (float64, error) {
	c := exec.CommandContext(ctx, "go", "build", "-C", module, "-ldflags", "-s -w", "-o", to, pack)
	if out, err := c.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build %s: %w: %s", pack, err, out)
	}
	info, err := os.Stat(to)
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", pack, err)
	}
	return float64(info.Size()) / (1 << 20), nil
}

// measure runs a program, whose output nobody reads.
func measure(ctx context.Context, home, program string, args ...string) (live.Ran, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Env, c.Stderr = append(os.Environ(), "HOME="+home), os.Stderr
	begin := time.Now()
	if err := c.Run(); err != nil {
		return live.Ran{}, fmt.Errorf("run %s: %w", c, err)
	}
	ran := live.Ran{Ms: time.Since(begin).Seconds() * 1000}
	if usage, is := c.ProcessState.SysUsage().(*syscall.Rusage); is {
		ran.MiB = float64(usage.Maxrss) / 1024 // Linux counts KiB
	}
	return ran, nil
}

var perRun = regexp.MustCompile(`Benchmark(Convert|Parse)\S*\s+\d+\s+(\d+) ns/op`)

// conversions returns how long a thousand manifests take, to convert and to parse.
func conversions(ctx context.Context) (convert, parse float64, err error) {
	c := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark(Convert|Parse)$", "./cli/convert")
	out, err := c.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("measure the converter: %w", err)
	}
	ms := map[string]float64{}
	for _, found := range perRun.FindAllStringSubmatch(string(out), -1) {
		ns, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read %s: %w", found[0], err)
		}
		ms[found[1]] = ns / 1e6
	}
	return ms["Convert"], ms["Parse"], nil
}
