package killafter_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/heliostat-dev/heliostat/tests/internal/killafter"
)

func TestItBlowsOnceAfterSoManyWrites(t *testing.T) {
	var f killafter.Fuse
	f.Wrote()
	blown := 0
	f.Arm(3, func() { blown++ })
	for i, want := range []int{0, 0, 1, 1} {
		if f.Wrote(); blown != want {
			t.Errorf("after write %d it has blown %d times", i+1, blown)
		}
	}
	if wrote, yes := f.Disarm(); wrote != 3 || !yes {
		t.Errorf("it tells of %d writes, %v", wrote, yes)
	}
	f.Arm(3, func() { blown++ })
	f.Wrote()
	if wrote, yes := f.Disarm(); wrote != 1 || yes {
		t.Errorf("it tells of %d writes, %v", wrote, yes)
	}
	if f.Wrote(); blown != 1 {
		t.Error("it blows though it was disarmed")
	}
}

// TestItCountsWhatWasDone on the way to an API server, before the answer is known, and lets
// credentials and agents through.
func TestItCountsWhatWasDone(t *testing.T) {
	var seen []string
	held := -1
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		seen = append(seen, request.Method+" "+request.URL.Path)
		if request.Header.Get("Authorization") != "Bearer mine" || request.UserAgent() != "operator" {
			t.Errorf("it comes as %q of %q", request.Header.Get("Authorization"), request.UserAgent())
		}
		out.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(request.URL.Path, "/refused") {
			out.WriteHeader(http.StatusConflict)
		}
		_, _ = out.Write([]byte(`{"kind":"Status","apiVersion":"v1"}`))
	}))
	defer server.Close()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var counted []int
	gate := killafter.NewGate("PATCH pods #2")
	gate.AtHold = func() {
		held = len(seen)
		gate.Release()
	}
	way, err := killafter.Lead(listener, &rest.Config{Host: server.URL, BearerToken: "of the test", TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		killafter.Watch{Coming: gate.Pass, Wrote: func() { counted = append(counted, len(seen)) }})
	if err != nil {
		t.Fatal(err)
	}
	defer way.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: way.Server, BearerToken: "mine", UserAgent: "operator", TLSClientConfig: rest.TLSClientConfig{CAData: way.CA}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	pods := client.CoreV1().Pods("ns")
	patch := func(name string) error {
		_, err := pods.Patch(ctx, name, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
		return err
	}
	_ = patch("one")
	_, _ = pods.Get(ctx, "one", metav1.GetOptions{})
	if patch("refused") == nil {
		t.Error("what the server refuses is granted")
	}
	_ = client.CoordinationV1().Leases("ns").Delete(ctx, "lease", metav1.DeleteOptions{})
	_ = client.EventsV1().Events("ns").Delete(ctx, "event", metav1.DeleteOptions{})
	_ = pods.Delete(ctx, "one", metav1.DeleteOptions{})
	if len(seen) != 6 || !slices.Equal(counted, []int{1, 6}) {
		t.Errorf("of %q it counts those at %v", seen, counted)
	}
	// The gate names those that come, also what the server then refuses, and holds one before the server has it.
	if want := []string{"PATCH pods #1", "PATCH pods #2", "DELETE pods #1"}; !slices.Equal(gate.Passed(), want) || held != 2 {
		t.Errorf("it passed %q, the held one after %d requests, want %q after 2", gate.Passed(), held, want)
	}
}
