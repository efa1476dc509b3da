package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/protocoltest"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/wire"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/polltest"
)

func marshal(t *testing.T, message proto.Message) wire.Frame {
	t.Helper()
	frame, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// TestDecisionsThatCannotBe end the stream and are forgotten; the decision of before stays.
func TestDecisionsThatCannotBe(t *testing.T) {
	for name, frame := range map[string]wire.Frame{
		"of another head":  marshal(t, &pb.Word{Head: "another", Targets: []*pb.Target{{Group: "cpu", Replicas: 9}}}),
		"no message":       wire.Frame("\xff\xff\xff what is this"),
		"nothing":          {},
		"a high target":    marshal(t, &pb.Word{Head: "head", Targets: []*pb.Target{{Group: "cpu", Replicas: 10_001}}}),
		"many targets":     marshal(t, &pb.Word{Head: "head", Targets: make([]*pb.Target, 65)}),
		"many parts":       marshal(t, &pb.Word{Head: "head", Leaving: make([]*pb.Leaver, 2_000_000)}),
		"longer than fits": make(wire.Frame, wire.MaxDecision+1),
		"very long":        make(wire.Frame, 100<<20),
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, b *bench) {
				sidecar := b.connected(t)
				sidecar.SayRaw(frame)
				polltest.Pass(500 * time.Millisecond)
				b.failed(headclient.Protocol, 3)
				var read int64
				for _, line := range b.lines {
					read += line.read.Load()
				}
				if read > wire.MaxDecision+1<<20 {
					t.Errorf("%d bytes were read", read)
				}
			})
		})
	}
}

// TestFlood: words are read ten times a second however fast they come, and the last counts.
func TestFlood(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.sidecar("a:1")
		b.Want(cluster, target(1))
		polltest.Pass(time.Second)
		b.wakes()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := range 2_000 { // of which 64 KiB are on the way at most
				flood := decided(i % 10_000)
				flood.Error = strings.Repeat("x", 400)
				if err := sidecar.Say(flood); err != nil {
					t.Error(err)
				}
			}
		}()
		heard := 0
		for range 100 {
			polltest.Pass(100 * time.Millisecond)
			heard += b.wakes() // each decision is another one
		}
		if heard < 90 || heard > 102 {
			t.Errorf("%d words were read in 10 s", heard)
		}
		b.Forget(cluster)
		<-ended
	})
}

// TestSilence: an autoscaler that answers nothing costs nobody more than a goroutine, for ten
// seconds at a time.
func TestSilence(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.sidecar("a:1")
		sidecar.Behave(protocoltest.Mute)
		b.Want(cluster, target(1))
		polltest.Pass(9 * time.Second)
		if answer, ok := b.Last(cluster, "head"); ok {
			t.Errorf("known of one that has not answered: %+v", answer)
		}
		polltest.Pass(2 * time.Second)
		b.failed(headclient.Timeout, -1)

		// The call that it took as a mute one may last ten seconds, too.
		sidecar.Behave(protocoltest.Deaf)
		b.await("a stream to one that answers", 20*time.Second, func(a client.Answer) bool { return a.Connected })
		b.await("no stream to one that is deaf to orders", 12*time.Second, func(a client.Answer) bool { return !a.Connected })
		b.failed(headclient.Timeout, -1)
	})
}

// TestHalfOpen: an end that is gone without a decision is noticed.
func TestHalfOpen(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.sidecar("a:1")
		say(t, sidecar, decided(3))
		b.Want(cluster, target(1))
		polltest.Pass(time.Minute)
		if answer := b.last(); !answer.Connected || sidecar.Streams() != 1 {
			t.Errorf("after a calm minute: %+v, %d streams", answer, sidecar.Streams())
		}
		b.cut()
		polltest.Pass(20 * time.Second)
		if n := sidecar.Streams(); n != 2 {
			b.failed(headclient.Unavailable, 3)
		}
		polltest.Pass(6 * time.Second)
		if n := sidecar.Streams(); n != 2 || !b.last().Connected {
			t.Errorf("%d streams, %+v", n, b.last())
		}
	})
}

// secret is a token that changes.
type secret struct {
	mu    sync.Mutex
	text  string
	err   error
	reads int
}

func (s *secret) read(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.text, s.err
}

// set changes it, and gives how often it was read.
func (s *secret) set(text string, err error) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.err = text, err
	return s.reads
}

func TestToken(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.sidecar("a:1")
		sidecar.SetToken("right-secret")
		current := &secret{text: "wrong-secret"}
		wanted := target(1)
		wanted.Token = current.read
		shown := func(secret string) {
			t.Helper()
			if answer := b.failed(headclient.Unauthenticated, -1); strings.Contains(answer.Err.Error(), secret) {
				t.Errorf("the token is in the error: %v", answer.Err)
			}
		}
		b.Want(cluster, wanted)
		polltest.Pass(time.Second)
		shown("wrong-secret")
		current.set("", nil)
		polltest.Pass(5 * time.Second)
		shown("an empty one is no token")
		current.set("half a token", errors.New("the Secret is gone"))
		polltest.Pass(6 * time.Second)
		shown("half a token")
		current.set("right-secret", nil)
		polltest.Pass(6 * time.Second)
		if !b.last().Connected {
			t.Errorf("with the right token: %+v", b.last())
		}
		before := current.set("right-secret", nil)
		polltest.Pass(time.Minute)
		if reads := current.set("right-secret", nil); reads != before {
			t.Errorf("the token was read %d times while the stream was there", reads-before)
		}
		sidecar.Behave(protocoltest.Away)
		sidecar.Cut(status.Error(codes.Unavailable, "right-secret is known beside the head"))
		polltest.Pass(time.Second / 2)
		if answer := b.last(); answer.Connected || answer.Err == nil || strings.Contains(answer.Err.Error(), "right-secret") {
			t.Errorf("the token is in the error: %+v", answer)
		}
		polltest.Pass(time.Minute)
		sidecar.Behave(protocoltest.Well)
		polltest.Pass(time.Minute)
		if reads := current.set("right-secret", nil); reads != before || !b.last().Connected {
			t.Errorf("the token was read %d times by an autoscaler that was away: %+v", reads-before, b.last())
		}
	})
}

// TestNoAutoscaler: who is no autoscaler is told apart, and cannot hold the operator up.
func TestNoAutoscaler(t *testing.T) {
	answer := func(status int, header http.Header) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for name, values := range header {
				w.Header()[name] = values
			}
			w.WriteHeader(status)
		})
	}
	grpc := []string{"application/grpc"}
	for name, server := range map[string]struct {
		http.Handler
		kind headclient.Kind
	}{
		"no such page":   {answer(http.StatusNotFound, nil), headclient.Protocol},
		"another type":   {answer(http.StatusOK, http.Header{"Content-Type": {"text/html"}}), headclient.Protocol},
		"elsewhere":      {answer(http.StatusFound, http.Header{"Location": {"http://b:1/"}}), headclient.Protocol},
		"unknown code":   {answer(http.StatusOK, http.Header{"Content-Type": grpc, "Grpc-Status": {"4711"}}), headclient.Protocol},
		"no code":        {answer(http.StatusOK, http.Header{"Content-Type": grpc}), headclient.Unavailable},
		"another Ray":    {answer(http.StatusOK, http.Header{"Content-Type": grpc, "Grpc-Status": {"12"}}), headclient.Unsupported},
		"a large header": {answer(http.StatusOK, http.Header{"Content-Type": {strings.Repeat("x", 1<<20)}}), headclient.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, b *bench) {
				listener := b.listen("a:1")
				plain := &http.Server{Handler: server, Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute}
				plain.Protocols.SetUnencryptedHTTP2(true)
				go func() { _ = plain.Serve(listener) }() // it ends with the test
				b.Want(cluster, target(1))
				polltest.Pass(600 * time.Millisecond)
				if err := b.failed(server.kind, -1).Err; len(err.Error()) > 700 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
				b.Forget(cluster)
				_ = plain.Close() // the listener and its connections
				polltest.Pass(time.Second)
			})
		})
	}
}

// TestGarbage: bytes that are not even HTTP/2, without end.
func TestGarbage(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		listener := b.listen("a:1")
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					for err == nil {
						_, err = connection.Write([]byte(strings.Repeat("HTTP/1.1 200 OK\r\n", 1000)))
					}
				}()
			}
		}()
		b.Want(cluster, target(1))
		polltest.Pass(time.Second)
		b.failed(headclient.Unavailable, -1)
		polltest.Pass(10 * time.Second)
		for i, line := range b.lines {
			if n := line.read.Load(); n > 1<<20 {
				t.Errorf("%d bytes of connection %d were read", n, i)
			}
		}
		b.Forget(cluster)
		_ = listener.Close()
		polltest.Pass(time.Second)
	})
}

// TestThrottle: whatever comes, by whatever frames, is read only so fast.
func TestThrottle(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.sidecar("a:1")
		b.Want(cluster, target(1))
		polltest.Pass(time.Second)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			large := protocol.Decision{Head: "head"}
			for i := range 1_000 {
				large.Infeasible = append(large.Infeasible, protocol.Infeasible{Shape: strings.Repeat("x", 500), Count: i, Reason: strings.Repeat("y", 500)})
			}
			for i := range 100 { // 1 MB each
				large.Infeasible[0].Count = i
				if err := sidecar.Say(large); err != nil {
					t.Error(err)
				}
			}
		}()
		polltest.Pass(20 * time.Second)
		if n := b.lines[0].read.Load(); n < 10<<20 || n > 16<<20 {
			t.Errorf("%d bytes were read in 20 s", n)
		}
		if !b.last().Connected {
			t.Errorf("%+v", b.last())
		}
		b.Forget(cluster)
		<-ended
	})
}
