package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
)

// bench is a relay on ports of its own, before a target that the test speaks for.
type bench struct {
	t       *testing.T
	relay   *relay
	address string
	target  net.Listener
	trust   *tls.Config
	said    *journal
	stop    func()
	ended   chan error
}

// journal is a log that may be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // it may be closed already
	return listener
}

// certificates returns a directory as certify writes it.
func certificates(t *testing.T) string {
	t.Helper()
	c := certify{authority: authority(t, time.Now()), out: t.TempDir()}
	if err := c.write("127.0.0.1", time.Now()); err != nil {
		t.Fatal(err)
	}
	return c.out
}

// trust returns what a client without a certificate has.
func trust(t *testing.T, directory string) *tls.Config {
	t.Helper()
	client, _, err := pki.ReadFiles(directory)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{RootCAs: client.RootCAs, ServerName: "127.0.0.1"}
}

// start runs a relay for at most so many clients until the test ends, and waits for its end.
func start(t *testing.T, times limits, most int) *bench {
	t.Helper()
	directory := certificates(t)
	_, config, err := pki.ReadFiles(directory)
	if err != nil {
		t.Fatal(err)
	}
	config.ClientAuth = tls.NoClientCert
	b := &bench{t: t, target: listen(t), trust: trust(t, directory), said: &journal{}, ended: make(chan error, 1)}
	on := listen(t)
	b.address = on.Addr().String()
	log := slog.New(slog.NewTextHandler(b.said, nil))
	b.relay = &relay{to: b.target.Addr().String(), config: config, log: log, limits: times}
	var ctx context.Context
	ctx, b.stop = context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { b.ended <- b.relay.serve(ctx, netutil.LimitListener(on, most)) }()
	t.Cleanup(func() {
		b.stop()
		if err := <-b.ended; err != nil {
			t.Error(err)
		}
	})
	return b
}

// long are limits that no test reaches.
var long = limits{handshake: time.Minute, connect: time.Minute, linger: time.Minute, leave: time.Minute}

// echo has the target answer each client with what it sent.
func (b *bench) echo() {
	go func() {
		for {
			connection, err := b.target.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(connection, connection) // the client notices
				_ = connection.Close()
			}()
		}
	}()
}

func (b *bench) plain() net.Conn {
	b.t.Helper()
	connection, err := (&net.Dialer{}).DialContext(b.t.Context(), "tcp", b.address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = connection.Close() }) // it may be closed already
	return connection
}

func (b *bench) client() *tls.Conn {
	b.t.Helper()
	connection := tls.Client(b.plain(), b.trust)
	if err := connection.HandshakeContext(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return connection
}

// pair returns both ends of a connection.
func (b *bench) pair() (client *tls.Conn, target *net.TCPConn) {
	b.t.Helper()
	client = b.client()
	accepted, err := b.target.Accept()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = accepted.Close() }) // it may be closed already
	return client, accepted.(*net.TCPConn)
}

func (b *bench) write(to io.Writer, text string) {
	b.t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		b.t.Fatal(err)
	}
}

// reads asserts what comes next.
func (b *bench) reads(from io.Reader, want string) {
	b.t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		b.t.Fatalf("%q came and not %q, %v", got, want, err)
	}
}

// ends asserts that the other end has said all.
func (b *bench) ends(from io.Reader) {
	b.t.Helper()
	if rest, err := io.ReadAll(from); len(rest) > 0 || err != nil {
		b.t.Fatalf("%q came at the end, %v", rest, err)
	}
}

// breaks asserts that a connection ends, in order or not, and that nothing comes before.
func (b *bench) breaks(from io.Reader) {
	b.t.Helper()
	if rest, err := io.ReadAll(from); len(rest) > 0 {
		b.t.Fatalf("%q came at the end, %v", rest, err)
	}
}

func TestRelay_ClientEndsFirst(t *testing.T) {
	b := start(t, long, 9)
	client, target := b.pair()
	b.write(client, "question")
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b.reads(target, "question")
	b.ends(target)
	b.write(target, "answer")
	b.reads(client, "answer")
	b.write(target, "and more")
	b.reads(client, "and more")
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	b.ends(client)
}

func TestRelay_TargetEndsFirst(t *testing.T) {
	b := start(t, long, 9)
	client, target := b.pair()
	b.write(target, "answer")
	if err := target.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b.reads(client, "answer")
	b.ends(client)
	b.write(client, "thanks")
	b.reads(target, "thanks")
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	b.ends(target)
}

func TestRelay_ClientMayNotLinger(t *testing.T) {
	times := long
	times.linger = 10 * time.Millisecond
	b := start(t, times, 9)
	client, target := b.pair()
	if err := target.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b.ends(client)
	b.ends(target) // and not for a minute
}

func TestRelay_EndIsNoticedByTheOther(t *testing.T) {
	b := start(t, long, 9)
	client, target := b.pair()
	b.write(target, "half an ans")
	b.reads(client, "half an ans")
	if err := errors.Join(target.SetLinger(0), target.Close()); err != nil { // as a program that was killed
		t.Fatal(err)
	}
	b.breaks(client)

	client, target = b.pair()
	b.write(client, "half a que")
	b.reads(target, "half a que")
	if err := errors.Join(client.NetConn().(*net.TCPConn).SetLinger(0), client.NetConn().Close()); err != nil {
		t.Fatal(err)
	}
	b.ends(target)
}

// TestRelay_ManyConnections: each gets its own bytes, and one more waits for its turn.
func TestRelay_ManyConnections(t *testing.T) {
	const many = 64
	b := start(t, long, many)
	b.echo()
	clients := make([]*tls.Conn, many)
	for i := range clients {
		clients[i] = b.client()
	}
	var group errgroup.Group
	for i, client := range clients {
		want := bytes.Repeat([]byte{byte(i)}, 64<<10)
		group.Go(func() error {
			_, err := client.Write(want)
			return errors.Join(err, client.CloseWrite())
		})
		group.Go(func() error {
			got := make([]byte, len(want))
			if _, err := io.ReadFull(client, got); err != nil {
				return err
			}
			if !bytes.Equal(got, want) {
				return errors.New("a client got what was another's")
			}
			return nil
		})
	}
	more := tls.Client(b.plain(), b.trust)
	group.Go(func() error { return more.HandshakeContext(t.Context()) })
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	b.write(more, "x")
	b.reads(more, "x")
}

func TestRelay_HoldsManyAtOnce(t *testing.T) {
	b := start(t, long, 1)
	b.echo()
	first := b.client()
	second := tls.Client(b.plain(), b.trust)
	if err := second.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var late net.Error
	if err := second.HandshakeContext(t.Context()); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("one more than fits is served: %v", err)
	}
	b.write(first, "x")
	b.reads(first, "x")
}

func TestRelay_TargetIsAway(t *testing.T) {
	b := start(t, long, 9)
	if err := b.target.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b.breaks(b.client())
	}
	var err error
	if b.target, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", b.relay.to); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.target.Close() }) // the test is over
	client, target := b.pair()
	b.write(client, "the token")
	b.reads(target, "the token")
	said := b.said.String()
	away, back := strings.Contains(said, "The dashboard does not answer"), strings.Contains(said, "The dashboard answers again")
	if strings.Count(said, "\n") != 2 || !away || !back {
		t.Errorf("it said %s", said)
	}
}

// TestRelay_ClientWithoutTLS is told, and reaches nobody.
func TestRelay_ClientWithoutTLS(t *testing.T) {
	b := start(t, long, 9)
	client := b.plain()
	b.write(client, "GET / HTTP/1.1\r\nAuthorization: Bearer the-token\r\n\r\n")
	b.reads(client, notTLS)
	garbage := b.plain()
	b.write(garbage, strings.Repeat("\x16\x03\x01\xff\xff", 100))
	_, _ = io.Copy(io.Discard, garbage) // until it is sent away
	other := tls.Client(b.plain(), &tls.Config{RootCAs: b.trust.RootCAs, ServerName: "192.0.2.7"})
	if err := other.HandshakeContext(t.Context()); err == nil {
		t.Error("it shows a certificate for another address")
	}
	b.pair() // the first that reaches the target
	if said := b.said.String(); said != "" {
		t.Errorf("it said %s", said)
	}
}

// slow returns clients that begin to shake hands, and say nothing more.
func (b *bench) slow() []net.Conn {
	b.t.Helper()
	var all []net.Conn
	for range 50 {
		connection := b.plain()
		b.write(connection, "\x16")
		all = append(all, connection)
	}
	return all
}

func TestRelay_SlowHandshakesBlockNobody(t *testing.T) {
	b := start(t, long, 99)
	b.echo()
	slow := b.slow()
	client := b.client()
	b.write(client, "x")
	b.reads(client, "x")
	for _, connection := range slow { // or the relay would wait for them
		_ = connection.Close()
	}
}

func TestRelay_SlowHandshakesEnd(t *testing.T) {
	times := long
	times.handshake = 10 * time.Millisecond
	for _, connection := range start(t, times, 99).slow() {
		_, _ = io.Copy(io.Discard, connection) // until it is sent away
	}
}

func TestRelay_EndsWhenItsClientsHave(t *testing.T) {
	b := start(t, long, 9)
	client, target := b.pair()
	b.stop()
	b.write(client, "question")
	b.reads(target, "question")
	b.write(target, "answer")
	b.reads(client, "answer")
	if err := errors.Join(client.Close(), target.Close()); err != nil {
		t.Fatal(err)
	}
	err := <-b.ended
	b.ended <- err
	if _, err := net.Dial("tcp", b.address); err == nil {
		t.Error("it accepts others after its end")
	}
}

func TestRelay_EndsWhileClientsStay(t *testing.T) {
	times := long
	times.leave = 10 * time.Millisecond
	b := start(t, times, 9)
	client, target := b.pair()
	half := b.plain()
	b.write(half, "\x16")
	b.stop()
	b.ended <- <-b.ended
	b.breaks(client)
	b.ends(target)
}

// TestFront goes the whole way, and without a certificate of the client's.
func TestFront_TakesTLS(t *testing.T) {
	target := listen(t)
	directory := certificates(t)
	taken := listen(t)
	f := front{listen: taken.Addr().String(), to: target.Addr().String(), certificates: directory}
	ctx, stop := context.WithCancel(t.Context())
	said, log := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- f.serve(ctx, slog.New(slog.NewTextHandler(log, nil))) }()
	b := &bench{t: t, address: f.listen, target: target, trust: trust(t, directory)}
	first := make([]byte, 1<<10)
	if n, err := said.Read(first); err != nil || !strings.Contains(string(first[:n]), "The port is in use") {
		t.Fatalf("it said %q, %v", first[:n], err)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := said.Read(first); err != nil || !strings.Contains(string(first[:n]), "Accepting TLS") {
		t.Fatalf("it said %q, %v", first[:n], err)
	}
	b.trust.NextProtos = []string{"h2"}
	client, plain := b.pair()
	if spoken := client.ConnectionState().NegotiatedProtocol; spoken != "" {
		t.Errorf("%s is spoken, which the target may not know", spoken)
	}
	b.write(client, "question")
	b.reads(plain, "question")
	if err := errors.Join(client.Close(), plain.Close()); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	f.certificates = t.TempDir()
	if err := f.serve(t.Context(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "ca.crt") {
		t.Errorf("without certificates: %v", err)
	}
}
