package fakeserveproxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/tests/internal/fakeserveproxy"
	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
)

// stand is a proxy, and a client that keeps its connection.
type stand struct {
	*fakeserveproxy.Proxy
	t       *testing.T
	address string
	leads   atomic.Pointer[fakeserveproxy.Leads]
	client  http.Transport
}

func up(t *testing.T) *stand {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{t: t, address: listener.Addr().String()}
	s.leads.Store(&fakeserveproxy.Leads{})
	s.Proxy = fakeserveproxy.New(listener, "pod", func() fakeserveproxy.Leads { return *s.leads.Load() })
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		s.Close()
	})
	return s
}

// ask sends a request, and gives what came of it, and whether the connection is kept.
func (s *stand) ask(method, path, body string) (status int, said string, keeps bool, err error) {
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.address+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := s.client.RoundTrip(request)
	if err != nil {
		return 0, "", false, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), !response.Close, err
}

func (s *stand) says(method, path, body string, status int, want string) {
	s.t.Helper()
	if have, said, _, err := s.ask(method, path, body); err != nil || have != status || !strings.Contains(said, want) {
		s.t.Errorf("%s %s is answered %d %q, %v, want %d %q", method, path, have, said, err, status, want)
	}
}

func TestItAnswersAsServeDoes(t *testing.T) {
	s := up(t)
	s.says("GET", "/-/healthz", "", 503, "not populated")
	s.says("GET", "/", "", 404, "not found")
	s.leads.Store(&fakeserveproxy.Leads{Versions: map[string]string{"/": "1", "/other": "2"}})
	s.says("GET", "/-/healthz", "", 200, "success")
	s.says("GET", "/?said=a+b", "", 200, `{"version":"1","pid":1,"node":"pod","said":"a b"}`)
	s.says("POST", "/other", "hello", 200, `"version":"2","pid":1,"node":"pod","said":"hello"`)
	s.says("GET", "/otherwise?said=x", "", 200, `"version":"1"`)
	s.says("GET", "/other/slow?s=0.01&said=y", "", 200, `"said":"y"`)
	s.says("GET", "/slow?s=soon", "", 422, "s is")
	s.leads.Store(&fakeserveproxy.Leads{Draining: true, Versions: map[string]string{"/": "1"}})
	s.says("GET", "/-/healthz", "", 503, "drained")
	s.says("GET", "/", "", 200, `"version":"1"`)
}

func TestConnectionsAreClosedOnceTheyAreToldTo(t *testing.T) {
	s := up(t)
	for i, want := range []bool{true, true, false, true} {
		if i == 2 {
			s.CloseKept()
		}
		if _, _, keeps, err := s.ask("GET", "/-/healthz", ""); err != nil || keeps != want {
			t.Errorf("after answer %d the connection is kept: %v, %v; want %v", i, keeps, err, want)
		}
	}
}

// TestWhatBeganWhenItLeavesEnds, and is cut when its process does.
func TestWhatBeganWhenItLeavesEnds(t *testing.T) {
	for end, answered := range map[string]bool{"leave": true, "close": false} {
		s := up(t)
		s.leads.Store(&fakeserveproxy.Leads{Versions: map[string]string{"/": "1"}})
		begun := make(chan struct{})
		var asking sync.WaitGroup
		var status int
		var failed error
		asking.Go(func() {
			close(begun)
			status, _, _, failed = s.ask("GET", "/slow?s=0.5", "")
		})
		<-begun
		wait(t, 100*time.Millisecond)
		if end == "leave" {
			s.Leave(t.Context())
		} else {
			s.Close()
		}
		asking.Wait()
		if (failed == nil && status == 200) != answered {
			t.Errorf("%s: what had begun is answered %d, %v", end, status, failed)
		}
		if _, _, _, err := s.ask("GET", "/", ""); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: after it, %v", end, err)
		}
	}
}

// wait lets a time pass that is itself what is tested.
func wait(t *testing.T, pause time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), pause)
	defer stop()
	<-ctx.Done()
}

// TestTheLoadClientCountsIt: the requests that specs on real Ray send are answered here too.
func TestTheLoadClientCountsIt(t *testing.T) {
	s := up(t)
	s.leads.Store(&fakeserveproxy.Leads{Versions: map[string]string{"/": "7"}})
	plan := loadgen.Plan{
		URL: "http://" + s.address, Rates: map[loadgen.Sort]float64{loadgen.Fresh: 100, loadgen.Kept: 100, loadgen.Long: 20}, Connections: 2,
		Timeout: 5 * time.Second, Longest: 60 * time.Millisecond, Session: time.Second, Pace: time.Second,
	}
	ledger := loadgen.NewLedger(time.Now())
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	if err := plan.Run(ctx, ledger); err != nil {
		t.Fatal(err)
	}
	report := ledger.Report(time.Now())
	sent, answered, failed := report.Total()
	if failed > 0 || sent != answered || sent < 10 || report.Phases[0].Sorts[loadgen.Kept].Versions["7"] == 0 {
		t.Errorf("%d sent, %d answered, %d failed: %+v", sent, answered, failed, report)
	}
}
