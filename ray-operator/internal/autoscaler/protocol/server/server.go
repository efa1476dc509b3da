// Package server is the autoscaler's end of the stream.
//
// In: a listener, the way to read the cluster's token, and the decision whenever it changes.
// Out: the snapshot of the operator that is listened to, and a signal when it changes or
// nobody listens any more.
//
// The code of the cluster's users can reach the port. It must never obey who does not know
// the token, give more than a few MiB to who has not proved that, let them hold up the
// operator's stream, or block who decides.
package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/wire"
)

// Options say who is listened to.
type Options struct {
	// Token gives the cluster's token, read for each stream, so that one that was replaced
	// counts. Nil is a cluster without authentication: every caller is accepted.
	Token func() (string, error)
	// Head is the UID of the pod that this runs in: a snapshot of another is refused. Empty
	// takes any.
	Head string
	// TLS is what each connection is encrypted with, and lets in who has a certificate of the cluster; nil is a
	// cluster without encryption.
	TLS *tls.Config
}

// Server listens to one operator at a time: who comes last takes the place of the one
// before. Its methods may be called at any time.
type Server struct {
	pb.UnimplementedScaleServiceServer
	options Options
	changed chan struct{}
	talking sync.WaitGroup

	mu       sync.Mutex
	live     *talk
	snapshot protocol.Snapshot
	ordered  bool
	decision wire.Frame
}

// talk is one operator's stream.
type talk struct {
	grpc.ServerStreamingServer[pb.Word]
	visitor *visitor
	// over is closed when another operator took over; news holds something while there may
	// be a decision to say.
	over, news chan struct{}
}

// New makes a Server, which nobody can reach until it serves.
func New(options Options) *Server {
	return &Server{options: options, changed: make(chan struct{}, 1)}
}

// Serve takes operators until its context ends, and returns when nothing of it runs any
// more. It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(wire.ServerOptions()...)
	pb.RegisterScaleServiceServer(server, s)
	defer context.AfterFunc(ctx, server.Stop)()
	var encrypted net.Listener = newDoor(listener) // which counts what strangers send to shake hands, too
	if s.options.TLS != nil {
		encrypted = tls.NewListener(encrypted, s.options.TLS)
	}
	err := server.Serve(encrypted)
	server.Stop() // when the context ended, it is what waits for the streams
	s.talking.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("listen to the operator: %w", err)
}

// Snapshot returns the last one of the operator that is listened to. It is false while there is
// none, or while it has not sent any. It must not be changed.
func (s *Server) Snapshot() (protocol.Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot, s.ordered
}

// Changed gives something after Snapshot has changed. It is for one reader, and gives one for
// many changes.
func (s *Server) Changed() <-chan struct{} { return s.changed }

// Say is what is said from now on: to the operator that is listened to, if it was told
// something else, and to those that come. It never blocks. A decision that is out of bounds is
// not said, and the one before stands.
func (s *Server) Say(decision protocol.Decision) error {
	frame, err := wire.EncodeDecision(decision)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decision = frame
	if s.live != nil {
		signal(s.live.news)
	}
	return nil
}

// Follow is one operator's stream.
func (s *Server) Follow(claim *pb.Claim, stream grpc.ServerStreamingServer[pb.Word]) error {
	visitor := visitorOf(stream.Context())
	if err := s.admit(visitor, claim); err != nil {
		return err
	}
	if s.options.Head != "" && claim.GetHead() != s.options.Head {
		return status.Error(codes.FailedPrecondition, "this is another head's autoscaler")
	}
	t := &talk{ServerStreamingServer: stream, visitor: visitor, over: make(chan struct{}), news: make(chan struct{}, 1)}
	t.visitor.stay()
	defer t.visitor.leave()
	s.take(t)
	defer s.drop(t)
	if err := stream.SendHeader(metadata.MD{}); err != nil { // a snapshot may come once it is there
		return err
	}
	ended := make(chan error, 1) // it does not wait for a reader
	s.talking.Go(func() { ended <- s.tell(t) })
	select {
	case <-t.over:
		return status.Error(codes.Aborted, "another operator has taken over")
	case err := <-ended:
		return err
	}
}

// Order takes a snapshot, from the operator that follows.
func (s *Server) Order(ctx context.Context, message *pb.Orders) (*pb.Ordered, error) {
	visitor := visitorOf(ctx)
	if err := s.recall(visitor); err != nil {
		return nil, err
	}
	snapshot, err := wire.DecodeSnapshot(message)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if s.options.Head != "" && snapshot.Head != s.options.Head {
		return nil, status.Error(codes.FailedPrecondition, "this is another head's autoscaler")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil || s.live.visitor != visitor {
		return nil, status.Error(codes.Aborted, "who gives orders does not follow")
	}
	s.obey(snapshot, true)
	return &pb.Ordered{}, nil
}

// Challenge gives the visitor another nonce.
func (s *Server) Challenge(ctx context.Context, _ *pb.Hello) (*pb.Nonce, error) {
	nonce := make([]byte, wire.NonceSize)
	_, _ = rand.Read(nonce) // it never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	visitorOf(ctx).nonce = nonce
	return &pb.Nonce{Nonce: nonce}, nil
}

// admit checks that a visitor which claims a head knows the cluster's token, and remembers by which.
func (s *Server) admit(visitor *visitor, claim *pb.Claim) error {
	token, err := s.token()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	nonce := visitor.nonce
	visitor.nonce = nil // a proof counts once
	if token != "" && (nonce == nil || !hmac.Equal(claim.GetProof(), wire.Prove(token, nonce, claim.GetHead()))) {
		return status.Error(codes.Unauthenticated, "this proves another token than the cluster's")
	}
	visitor.proved = sha256.Sum256([]byte(token))
	return nil
}

// recall checks that the token which a visitor has proved is still the cluster's.
func (s *Server) recall(visitor *visitor) error {
	token, err := s.token()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if visitor.proved != sha256.Sum256([]byte(token)) {
		return status.Error(codes.Unauthenticated, "the cluster's token was not proved here")
	}
	return nil
}

// token returns the cluster's token, empty for a cluster without authentication.
func (s *Server) token() (string, error) {
	if s.options.Token == nil {
		return "", nil
	}
	token, err := s.options.Token()
	if err != nil || token == "" {
		return "", status.Error(codes.Unavailable, "the autoscaler cannot read the cluster's token")
	}
	return token, nil
}

// take makes a stream the one that is listened to, and tells it the decision.
func (s *Server) take(t *talk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live != nil {
		close(s.live.over)
	}
	s.live = t
	s.obey(protocol.Snapshot{}, false)
	signal(t.news)
}

// drop ends what a stream has ordered, unless another has taken over.
func (s *Server) drop(t *talk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == t {
		s.live = nil
		s.obey(protocol.Snapshot{}, false)
	}
}

// obey changes the snapshot. The caller holds the lock.
func (s *Server) obey(snapshot protocol.Snapshot, ordered bool) {
	if s.ordered || ordered {
		signal(s.changed)
	}
	s.snapshot, s.ordered = snapshot, ordered
}

// tell says the decision whenever it is another one than was said on this stream, until the
// stream ends. A decision that stood only while another was under way is never said.
func (s *Server) tell(t *talk) error {
	var said wire.Frame
	for {
		select {
		case <-t.Context().Done():
			return t.Context().Err()
		case <-t.news:
		}
		s.mu.Lock()
		decision := s.decision
		s.mu.Unlock()
		if bytes.Equal(decision, said) {
			continue
		}
		if err := t.SendMsg(decision); err != nil {
			return err
		}
		said = decision
		if err := pass(t.Context(), wire.SendPause); err != nil {
			return err
		}
	}
}

// pass lets time go by, and fails when the stream ends.
func pass(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func signal(news chan<- struct{}) {
	select {
	case news <- struct{}{}:
	default: // there is one already
	}
}

// visitorOf is the connection of a stream, which came through the door.
func visitorOf(ctx context.Context) *visitor {
	from, _ := peer.FromContext(ctx)
	return from.Addr.(address).visitor //nolint:forcetypeassert // gRPC knows no other connections
}
