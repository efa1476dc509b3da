package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// limit is generous: it keeps a test from hanging.
const limit = time.Minute

// free is an address on which nobody listens.
func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// TestAwaitOutlastsAnAPIServerThatIsAway: it waits for one that has trouble, is alive and not
// ready meanwhile, and its port is free again afterwards.
func TestAwaitOutlastsAnAPIServerThatIsAway(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	health := free(t)
	probe := func(path string) int {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+path, http.NoBody)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode
	}
	var calls, looks, alive, ready atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/apis/") {
			serveKinds(w, looks.Add(1))
			return
		}
		if calls.Add(1) == 1 {
			alive.Store(int64(probe("/healthz")))
			ready.Store(int64(probe("/readyz")))
			http.Error(w, "etcd is not there", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{"major":"1"}`))
	}))
	defer server.Close()
	if err := Await(ctx, Config{REST: &rest.Config{Host: server.URL}, HealthAddress: health}); err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 4 || looks.Load() != 3 || alive.Load() != http.StatusOK || ready.Load() != http.StatusServiceUnavailable {
		t.Errorf("%d calls, %d looks for kinds, health %d, readiness %d", calls.Load(), looks.Load(), alive.Load(), ready.Load())
	}
	if code := probe("/healthz"); code != 0 {
		t.Errorf("its port is still taken: %d", code)
	}
}

// serveKinds answers as an API server does while CRDs are made: none of them, some, and all.
func serveKinds(w http.ResponseWriter, look int64) {
	kinds := map[int64]string{
		2: `{"kind":"ClusterJob"},{"kind":"ClusterService"},{"kind":"ComputeCluster"}`,
		3: `{"kind":"ClusterJob"},{"kind":"ClusterJobSchedule"},{"kind":"ClusterService"},{"kind":"ComputeCluster"}`,
	}[look]
	if kinds == "" {
		http.NotFound(w, nil)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"heliostat.dev/v1beta1","resources":[` + kinds + `]}`))
}

// TestAwaitDoesNotWaitForWhatDoesNotMendItself: a server that refuses is one that answers.
func TestAwaitDoesNotWaitForWhatDoesNotMendItself(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer server.Close()
	if err := Await(ctx, Config{REST: &rest.Config{Host: server.URL}, HealthAddress: "0"}); err != nil {
		t.Error(err)
	}
}

// TestAwaitEndsWithItsContext, as when the process is told to end.
func TestAwaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Await(ctx, Config{REST: &rest.Config{Host: "http://" + free(t)}, HealthAddress: "0"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
