// Command kubelet stands for the kubelets of a fleet.
//
// In: flags, a kubeconfig. Out: what fakekubelet writes, and on
// demand fake heads behind head pods. It is a process of its own, so that what it uses is not
// counted to anybody else. It must never start a program.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/heliostat-dev/heliostat/tests/internal/fakekubelet"
)

func main() {
	config := flag.String("kubeconfig", "", "of the API server")
	nodes := flag.Int("nodes", 10, "how many nodes to stand for")
	delay := flag.Duration("delay", fakekubelet.Delay, "from when a pod is bound until it is ready")
	withHeads := flag.Bool("heads", false, "put a fake head behind each head pod, at an address that must be this machine's")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *config, *nodes, *delay, *withHeads); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string, nodes int, delay time.Duration, withHeads bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	config.QPS, config.UserAgent = -1, "heliostat-bench-kubelet"
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	// Each node has room for as many pods as a large cluster has in all.
	options := fakekubelet.Options{Delay: delay, Room: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100k"), corev1.ResourceMemory: resource.MustParse("1Pi"),
		corev1.ResourcePods: resource.MustParse("100k"),
	}}
	if withHeads {
		behind := newHeads(ctx, client)
		options.Address, options.End = behind.address, behind.end
	}
	for i := range nodes {
		options.Nodes = append(options.Nodes, fmt.Sprintf("node-%d", i))
	}
	if err := fakekubelet.Run(ctx, client, options); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
