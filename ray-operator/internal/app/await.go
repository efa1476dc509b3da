package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

const (
	// awaitPause is how often the API server is tried, awaitAnswer how long it may take.
	awaitPause  = time.Second
	awaitAnswer = 5 * time.Second
)

// Await waits until the API server answers and serves our kinds, which an installation makes beside the operator.
// Meanwhile probes hear that the process lives: ended, it would come back later and later, after an API server that
// has been back for long. It fails if its context ends, or health cannot be served.
func Await(ctx context.Context, cfg Config) error {
	known := rest.CopyConfig(cfg.REST)
	known.Timeout = awaitAnswer
	api, err := discovery.NewDiscoveryClientForConfig(known)
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	end, err := serveHealth(ctx, cfg.HealthAddress)
	if err != nil {
		return err
	}
	defer end()
	told := false
	err = wait.PollUntilContextCancel(ctx, awaitPause, true, func(context.Context) (bool, error) {
		err := awaited(api)
		if err == nil {
			return true, nil
		}
		if !told {
			ctrl.Log.Info("Waiting for the API server", "error", err.Error())
			told = true
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the API server: %w", err)
	}
	return nil
}

// awaited returns what is yet to come: an answer, or one of our kinds.
func awaited(api discovery.DiscoveryInterface) error {
	if _, err := api.ServerVersion(); err != nil {
		if away(err) {
			return err
		}
		return nil
	}
	version := v1beta1.GroupVersion.String()
	served, err := api.ServerResourcesForGroupVersion(version)
	switch {
	case away(err) || apierrors.IsNotFound(err):
		return err
	case err != nil:
		return nil
	}
	for _, kind := range []string{"ComputeCluster", "ClusterJob", "ClusterJobSchedule", "ClusterService"} {
		if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind }) {
			return fmt.Errorf("find kind %s of %s: the CRDs of the chart are not all there", kind, version)
		}
	}
	return nil
}

// away reports whether an answer is none, or that of a server that does not work yet. What else
// may be wrong, such as a credential, does not mend itself.
func away(err error) bool {
	var status apierrors.APIStatus
	if err == nil {
		return false
	}
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError || apierrors.IsTooManyRequests(err)
}

// serveHealth says on an address that the process lives and is not ready, until it is ended.
func serveHealth(ctx context.Context, address string) (end func(), err error) {
	if address == "0" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for probes: %w", err)
	}
	paths := http.NewServeMux()
	paths.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	paths.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "waiting for the API server", http.StatusServiceUnavailable)
	})
	server := &http.Server{Handler: paths, ReadHeaderTimeout: awaitAnswer}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // it ends when it is closed
	}()
	return func() {
		_ = server.Close() // nothing is lost of it
		<-done
	}, nil
}
