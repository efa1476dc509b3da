// Package protocoltest is either end of the stream between operator and autoscaler without the
// other, for tests: an autoscaler that says what a test wants (Sidecar), an operator that
// orders what a test wants (Operator), and what a controller sees of all autoscalers,
// without any connection (Links).
//
// In: what to say, and how to behave. Out: what was heard, and how often.
//
// It must never be part of what users run, nor make a message better than a test made it.
package protocoltest

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/wire"
)

// Mood is how a Sidecar behaves.
type Mood int

// The moods of a Sidecar.
const (
	// Well takes streams, reads snapshots, and says its decision.
	Well Mood = iota
	// Mute takes calls and never answers them.
	Mute
	// Deaf takes streams and speaks, and never answers a snapshot.
	Deaf
	// Away refuses as if it could not be reached.
	Away
)

// Sidecar is a scripted autoscaler. Its methods may be called at any time.
type Sidecar struct {
	pb.UnimplementedScaleServiceServer
	address string
	server  *grpc.Server
	ended   sync.WaitGroup

	mu       sync.Mutex
	mood     Mood
	token    string
	decision wire.Frame
	nonces   map[string][]byte // by the address of the connection
	live     map[*heard]bool
	streams  int
	given    int
	snapshot protocol.Snapshot
	ordered  bool
}

// heard is one stream.
type heard struct {
	grpc.ServerStreamingServer[pb.Word]
	cut  chan error
	news chan wire.Frame
	gone chan struct{}
}

// StartSidecar makes one that listens on loopback, without a token, with nothing to say.
func StartSidecar() (*Sidecar, error) { return StartSidecarAt("127.0.0.1:0") }

// StartSidecarAt makes one that listens at an address of the caller's choice.
func StartSidecarAt(address string) (*Sidecar, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for a scripted autoscaler: %w", err)
	}
	return ServeSidecar(listener), nil
}

// ServeSidecar makes one that serves on a listener, and closes it in the end.
func ServeSidecar(listener net.Listener) *Sidecar {
	s := &Sidecar{address: listener.Addr().String(), live: map[*heard]bool{}, nonces: map[string][]byte{}}
	s.server = grpc.NewServer(append(wire.ServerOptions(), grpc.MaxSendMsgSize(1<<30))...)
	pb.RegisterScaleServiceServer(s.server, s)
	s.ended.Go(func() { _ = s.server.Serve(listener) }) // it ends by Close, or the test hears nothing
	return s
}

// Address is where it listens.
func (s *Sidecar) Address() string { return s.address }

// Close stops it, and waits until nothing of it runs.
func (s *Sidecar) Close() {
	s.server.Stop()
	s.ended.Wait()
}

// SetToken changes the token that streams must prove, empty for none. Those that are there
// stay.
func (s *Sidecar) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Behave changes how streams fare that come from now on.
func (s *Sidecar) Behave(mood Mood) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mood = mood
}

// Say says a decision to who listens and to those that come.
func (s *Sidecar) Say(decision protocol.Decision) error {
	frame, err := wire.EncodeDecision(decision)
	if err == nil {
		s.SayRaw(frame)
	}
	return err
}

// SayRaw says any bytes for a decision. It waits until they are on their way to who listens.
func (s *Sidecar) SayRaw(frame wire.Frame) {
	s.mu.Lock()
	s.decision = frame
	listening := make([]*heard, 0, len(s.live))
	for h := range s.live {
		listening = append(listening, h)
	}
	s.mu.Unlock()
	for _, h := range listening {
		select {
		case h.news <- frame:
		case <-h.gone:
		}
	}
}

// Cut ends all streams with an error, nil for an orderly end.
func (s *Sidecar) Cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.live {
		select {
		case h.cut <- err:
		default: // it is told already
		}
	}
}

// Snapshot are the last ones that came, false if none did.
func (s *Sidecar) Snapshot() (protocol.Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot, s.ordered
}

// Given is how often a snapshot came.
func (s *Sidecar) Given() int { return s.count(func() int { return s.given }) }

// Streams is how many streams were taken.
func (s *Sidecar) Streams() int { return s.count(func() int { return s.streams }) }

// Live is how many streams there are.
func (s *Sidecar) Live() int { return s.count(func() int { return len(s.live) }) }

func (s *Sidecar) count(of func() int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return of()
}

// Challenge gives a nonce.
func (s *Sidecar) Challenge(ctx context.Context, _ *pb.Hello) (*pb.Nonce, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nonce := make([]byte, wire.NonceSize)
	_, _ = rand.Read(nonce) // it never fails
	s.nonces[caller(ctx)] = nonce
	return &pb.Nonce{Nonce: nonce}, nil
}

// caller is the address of the connection of a call.
func caller(ctx context.Context) string {
	from, _ := peer.FromContext(ctx)
	return from.Addr.String()
}

// Follow is one stream.
func (s *Sidecar) Follow(claim *pb.Claim, stream grpc.ServerStreamingServer[pb.Word]) error {
	h := &heard{ServerStreamingServer: stream, cut: make(chan error, 1), news: make(chan wire.Frame), gone: make(chan struct{})}
	decision, mood, err := s.take(h, claim)
	if err != nil {
		return err
	}
	defer s.drop(h)
	if mood == Mute {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	for {
		if decision != nil {
			if err := stream.SendMsg(decision); err != nil {
				return err
			}
		}
		select {
		case err := <-h.cut:
			return err
		case <-stream.Context().Done():
			return stream.Context().Err()
		case decision = <-h.news:
		}
	}
}

// Order takes a snapshot, from any caller.
func (s *Sidecar) Order(ctx context.Context, message *pb.Orders) (*pb.Ordered, error) {
	snapshot, err := wire.DecodeSnapshot(message)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mood == Deaf {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return nil, ctx.Err()
	}
	s.snapshot, s.ordered = snapshot, true
	s.given++
	return &pb.Ordered{}, nil
}

// take begins a stream as the mood is.
func (s *Sidecar) take(h *heard, claim *pb.Claim) (decision wire.Frame, mood Mood, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mood == Away:
		return nil, s.mood, status.Error(codes.Unavailable, "it is away")
	case s.token != "" && !hmac.Equal(claim.GetProof(), wire.Prove(s.token, s.nonces[caller(h.Context())], claim.GetHead())):
		return nil, s.mood, status.Error(codes.Unauthenticated, "this proves another token than the cluster's")
	}
	s.streams++
	s.live[h] = true
	return s.decision, s.mood, nil
}

func (s *Sidecar) drop(h *heard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, h)
	close(h.gone)
}
