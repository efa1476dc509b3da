// Package redistest runs real Redis servers, Sentinels and certificates for tests.
//
// In: a test, and arguments of redis-server, which come after the ones that it always gets
// (nothing is written to disk) and so win. Out: a server on a port of its own on the
// loopback interface that ends with its test; it can be stopped, stood still and started
// again, and asked with all permissions whatever its ACL is.
//
// It must never use a Redis that it did not start, and never skip a test: where
// redis-server is missing, the test fails and says how to get it.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// T is what is needed of a test; a *testing.T is one, and Ginkgo's GinkgoT() too.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
	TempDir() string
}

// patience is the limit against hanging of what takes milliseconds.
const patience = 30 * time.Second

// tester is the ACL user by which tests do what they like.
const tester = "tester"

// Server is a server, or a Sentinel.
type Server struct {
	// Port is where it listens, with TLS or without, also after a restart.
	Port int

	t         T
	dir       string
	args      func() []string
	authority *Authority
	process   *exec.Cmd
	ended     chan struct{}
	client    *redis.Client
}

// Start starts a server. Arguments are as on the command line: "--maxmemory", "2mb".
func Start(t T, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir()}
	s.args = func() []string { return append(s.common("--port", strconv.Itoa(s.Port)), args...) }
	s.begin()
	return s
}

// StartTLS starts a server that speaks nothing but TLS, with a certificate by an authority.
// It asks its clients for none, unless args say "--tls-auth-clients", "yes".
func StartTLS(t T, authority *Authority, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), authority: authority}
	certificate, key := authority.Issue("redis.test")
	files := []string{
		"--tls-ca-cert-file", s.file("ca.crt", authority.Certificate),
		"--tls-cert-file", s.file("tls.crt", certificate), "--tls-key-file", s.file("tls.key", key),
	}
	s.args = func() []string {
		listen := s.common("--port", "0", "--tls-port", strconv.Itoa(s.Port), "--tls-auth-clients", "no")
		return slices.Concat(listen, files, args)
	}
	s.begin()
	return s
}

// StartSentinel starts a Sentinel that watches primaries, by their names.
func StartSentinel(t T, primaries map[string]*Server, config ...string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir()}
	lines := []string{"bind 127.0.0.1", "user " + tester + " on nopass ~* &* +@all"}
	for name, primary := range primaries {
		lines = append(lines, fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 1", name, primary.Port),
			fmt.Sprintf("sentinel auth-user %s %s", name, tester), fmt.Sprintf("sentinel auth-pass %s any", name))
	}
	text := strings.Join(append(lines, config...), "\n") + "\n"
	path := s.file("sentinel.conf", []byte(text))
	s.args = func() []string { return []string{path, "--sentinel", "--port", strconv.Itoa(s.Port)} }
	s.begin()
	return s
}

// common are the arguments that every server begins with.
func (s *Server) common(listen ...string) []string {
	return append(listen, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--enable-debug-command", "yes", "--cluster-port", strconv.Itoa(port(s.t)),
		"--user", tester, "on", "nopass", "~*", "&*", "+@all")
}

func (s *Server) file(name string, content []byte) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		s.t.Fatalf("write %s: %v", path, err)
	}
	return path
}

// begin starts the process for the first time.
func (s *Server) begin() {
	s.t.Helper()
	s.t.Cleanup(s.Kill)
	// Between looking for a free port and listening there, another may take it.
	for range 5 {
		s.Port = port(s.t)
		if s.launch() {
			return
		}
	}
	s.fail("it ended at once, whatever its port was")
}

// connect makes the client by which it is asked with all permissions.
func (s *Server) connect() {
	s.t.Helper()
	options := &redis.Options{
		Addr: s.HostPort(), Username: tester, Password: "any", Protocol: 2, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if s.authority != nil {
		options.TLSConfig = s.authority.client(s.t)
	}
	s.client = redis.NewClient(options)
}

// launch starts the process and waits until it answers and has read what is on its disk. It
// is false when its port was taken.
func (s *Server) launch() bool {
	s.t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		s.t.Fatalf("%v: install redis-server (make deps)", err)
	}
	output, err := os.Create(s.log())
	if err != nil {
		s.t.Fatalf("keep the log of a server: %v", err)
	}
	defer output.Close() // the process has a handle of its own
	process := exec.CommandContext(context.Background(), program, s.args()...)
	process.Stdout, process.Stderr = output, output
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that is killed leaves none behind
	if err := process.Start(); err != nil {
		s.t.Fatalf("start %s: %v", program, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = process.Wait() // how it ended shows in its log
		close(ended)
	}()
	s.process, s.ended = process, ended
	s.connect()
	over := false
	s.Await("it answers", func() bool {
		select {
		case <-ended:
			over = true
		default:
		}
		return over || s.answers()
	})
	if over && !strings.Contains(s.said(), "Address already in use") {
		s.fail("it ended at once")
	}
	return !over
}

func (s *Server) answers() bool {
	listening, err := net.Dial("tcp", s.HostPort()) // of a failure the client writes a line
	if err != nil {
		return false
	}
	_ = listening.Close()
	if err := s.client.Ping(context.Background()).Err(); err != nil && !redis.HasErrorPrefix(err, "MASTERDOWN") {
		return false
	}
	// Who answers could be another, while ours finds out that its port is taken.
	about, err := s.client.Info(context.Background(), "server").Result()
	return err == nil && strings.Contains(about, fmt.Sprintf("process_id:%d\r\n", s.process.Process.Pid))
}

// Await waits until something is so, and fails the test if it never is.
func (s *Server) Await(what string, so func() bool) {
	s.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-limit.C:
			s.fail("not within %s: %s", patience, what)
		case <-tick.C:
		}
	}
}

func (s *Server) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("the Redis at port %d: %s; its log:\n%s", s.Port, fmt.Sprintf(format, args...), s.said())
}

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

// said is what it has logged since it was last started.
func (s *Server) said() string {
	text, _ := os.ReadFile(s.log()) // without a log, nothing
	return string(text)
}

// HostPort is where it listens, as HOST:PORT.
func (s *Server) HostPort() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// Address is where it listens, as redis://HOST:PORT or rediss://HOST:PORT.
func (s *Server) Address() string {
	if s.authority != nil {
		return "rediss://" + s.HostPort()
	}
	return "redis://" + s.HostPort()
}

// Try does a command with all permissions.
func (s *Server) Try(args ...any) (any, error) {
	reply, err := s.client.Do(context.Background(), args...).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return reply, err
}

// Do does a command with all permissions, and fails the test if Redis refuses it.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	reply, err := s.Try(args...)
	if err != nil {
		s.t.Fatalf("%v at port %d: %v", args, s.Port, err)
	}
	return reply
}

// Keys are its keys, in order.
func (s *Server) Keys() []string {
	s.t.Helper()
	reply, ok := s.Do("KEYS", "*").([]any)
	if !ok {
		s.t.Fatalf("KEYS at port %d is no list", s.Port)
	}
	keys := make([]string, len(reply))
	for i, key := range reply {
		keys[i] = fmt.Sprint(key)
	}
	slices.Sort(keys)
	return keys
}

// Field is a field of its INFO, empty where there is none.
func (s *Server) Field(name string) string {
	s.t.Helper()
	for line := range strings.Lines(fmt.Sprint(s.Do("INFO", "everything"))) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// User makes an ACL user, or gives it other rules: "on", ">secret", "~*", "+@all".
func (s *Server) User(name string, rules ...string) {
	s.t.Helper()
	args := []any{"ACL", "SETUSER", name, "reset"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	s.Do(args...)
}

// AssignSlots gives it slots of a Redis Cluster and waits until it takes them for served,
// or, where some are missing, knows that they are not.
func (s *Server) AssignSlots(first, last int) {
	s.t.Helper()
	s.Do("CLUSTER", "ADDSLOTSRANGE", first, last)
	if first == 0 && last == 16383 {
		s.Await("its cluster works", func() bool {
			return strings.Contains(fmt.Sprint(s.Do("CLUSTER", "INFO")), "cluster_state:ok")
		})
	}
}

// Stop ends it in order: what it is to keep is on its disk then.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill ends it at once.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

func (s *Server) end(signal syscall.Signal) {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGCONT) // one that has ended already is what is wanted
	_ = s.process.Process.Signal(signal)
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-s.ended:
	case <-limit.C:
		_ = s.process.Process.Kill()
		<-s.ended
	}
	s.process = nil
	_ = s.client.Close()
}

// Restart stops it, if it runs, and starts it again at the same port.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	if !s.launch() {
		s.fail("somebody has taken its port")
	}
}

// Pause makes it stand still: it accepts connections and answers nothing.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		s.t.Fatalf("signal the Redis at port %d: %v", s.Port, err)
	}
}

// port is one that nobody listens at.
func port(t T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer listener.Close()
	_, text, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	return number
}
