package redistest_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/tests/redistest"
)

func TestServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s.Do("SET", "a", "1")
	s.Do("SET", "b", "2")
	s.User("default", "on", ">secret", "~a", "+get") // does not shut the test out
	port := s.Port
	s.Restart()
	if diff := cmp.Diff([]string{"a", "b"}, s.Keys()); diff != "" || s.Port != port {
		t.Errorf("after a restart at port %d, before at %d: %s", s.Port, port, diff)
	}
	if _, err := s.Try("NONSENSE"); err == nil {
		t.Error("Redis took nonsense")
	}
	if reply, err := s.Try("GET", "missing"); reply != nil || err != nil {
		t.Errorf("%v, %v", reply, err)
	}
	if mode := s.Field("redis_mode"); mode != "standalone" {
		t.Errorf("redis_mode %q", mode)
	}
	s.Stop()
	if _, err := s.Try("PING"); err == nil {
		t.Error("a stopped server answers")
	}
	s.Stop()
}

// TestPause: a server that stands still takes connections and says nothing.
func TestPause(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Pause()
	conn, err := net.Dial("tcp", s.HostPort())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 1)
	if err := conn.SetReadDeadline(soon()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(reply); err == nil {
		t.Error("a server that stands still answers")
	}
	s.Resume()
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(reply); err != nil || reply[0] != '+' {
		t.Errorf("after it went on: %q, %v", reply, err)
	}
}

func soon() time.Time { return time.Now().Add(200 * time.Millisecond) }

func TestKinds(t *testing.T) {
	t.Parallel()
	tls := redistest.StartTLS(t, redistest.NewAuthority(t), "--tls-auth-clients", "yes")
	if reply := tls.Do("PING"); reply != "PONG" || !strings.HasPrefix(tls.Address(), "rediss://") {
		t.Errorf("%v from %s", reply, tls.Address())
	}
	primary := redistest.Start(t)
	sentinel := redistest.StartSentinel(t, map[string]*redistest.Server{"main": primary})
	if masters := fmt.Sprint(sentinel.Do("SENTINEL", "MASTERS")); !strings.Contains(masters, fmt.Sprint(primary.Port)) {
		t.Errorf("the Sentinel knows %s", masters)
	}
	cluster := redistest.Start(t, "--cluster-enabled", "yes")
	cluster.AssignSlots(0, 16383)
	cluster.Do("SET", "a", "1")
}

// failing is a test that fails without ending.
type failing struct {
	testing.TB
	said string
}

type failed struct{}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(failed{})
}

func try(t *testing.T, start func(redistest.T)) string {
	t.Helper()
	f := &failing{TB: t}
	func() {
		defer func() { _ = recover() }()
		start(f)
	}()
	return f.said
}

// TestFailures: what cannot run fails its test and says why.
func TestFailures(t *testing.T) {
	if said := try(t, func(f redistest.T) { redistest.Start(f, "--nonsense", "yes") }); !strings.Contains(said, "ended at once") || !strings.Contains(said, "nonsense") {
		t.Errorf("wrong arguments: %q", said)
	}
	t.Setenv("PATH", t.TempDir())
	if said := try(t, func(f redistest.T) { redistest.Start(f) }); !strings.Contains(said, "install redis-server (make deps)") {
		t.Errorf("without the program: %q", said)
	}
}
