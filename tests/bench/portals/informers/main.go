// Command informers holds what the server for portals holds of Kubernetes, and does nothing with it.
//
// In: a kubeconfig. Out: nothing. It is what a program costs that has the same informers as the server, trimmed in the same
// manner, by the client library that most programs use. It must never hold what the server does not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func main() {
	config := flag.String("kubeconfig", "", "of the API server")
	flag.Parse()
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *config); err != nil {
		fmt.Fprintln(os.Stderr, "informers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string) error {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("build the scheme: %w", err)
	}
	mine, err := labels.NewRequirement(v1beta1.LabelCluster, selection.Exists, nil)
	if err != nil {
		return fmt.Errorf("select pods: %w", err)
	}
	held, err := cache.New(config, cache.Options{
		Scheme: scheme, DefaultTransform: trim,
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: labels.NewSelector().Add(*mine)}},
	})
	if err != nil {
		return fmt.Errorf("make informers: %w", err)
	}
	for _, kind := range []client.Object{&v1beta1.ComputeCluster{}, &v1beta1.ClusterJob{}, &v1beta1.ClusterService{}, &corev1.Pod{}} {
		if _, err := held.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("make an informer: %w", err)
		}
	}
	if err := held.Start(ctx); err != nil {
		return fmt.Errorf("run the informers: %w", err)
	}
	return nil
}

// trim takes out of an object what the server takes out.
func trim(object any) (any, error) {
	if one, is := object.(view.Object); is {
		view.Trim(one)
	}
	return object, nil
}
