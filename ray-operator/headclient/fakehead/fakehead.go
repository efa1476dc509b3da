// Package fakehead is the GCS of a Ray head without Ray: what headclient speaks to, in
// process, for tests.
//
// In: what a test wants to be so (nodes, what runs, how the head behaves). Out: a gRPC
// server on loopback that answers as Ray 2.60 was seen to, its traps among them: it dies
// of a node id that has not 28 bytes and of a state version above its own.
//
// It must never be kinder than Ray: what kills a real GCS kills this one, and Died says of
// what. It must never be part of what users run.
package fakehead

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
)

// Version is the Ray that it says to be.
const Version = "2.60.0"

// Mood is how a head answers.
type Mood int

// The moods of a head.
const (
	// Well answers.
	Well Mood = iota
	// Hung takes calls and never answers.
	Hung
	// Garbled answers with bytes that are not a message.
	Garbled
	// Passive refuses as a GCS does that does not lead.
	Passive
	// Away refuses as if nothing listened.
	Away
)

// Head is a fake head. Its methods may be called at any time.
type Head struct {
	autoscaler.UnimplementedAutoscalerStateServiceServer
	rpc.UnimplementedNodeInfoGcsServiceServer
	rpc.UnimplementedJobInfoGcsServiceServer
	rpc.UnimplementedActorInfoGcsServiceServer

	clock    clock.Clock
	listener net.Listener
	server   *grpc.Server
	ended    chan struct{}

	mu      sync.Mutex
	token   string
	mood    Mood
	turned  chan struct{} // closed when the mood changes
	delay   time.Duration
	version int64
	died    string
	calls   map[string]int
	nodes   []*node
	made    int // ids that were made
	jobs    []*rpc.JobTableData
	actors  []*rpc.ActorTableData
	pending int64
}

// Start makes a head that listens on loopback, without a token and without nodes.
func Start(clock clock.Clock) (*Head, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a fake head: %w", err)
	}
	h := &Head{clock: clock, listener: listener, ended: make(chan struct{}), turned: make(chan struct{}), calls: map[string]int{}}
	h.server = grpc.NewServer(grpc.UnaryInterceptor(h.meet))
	autoscaler.RegisterAutoscalerStateServiceServer(h.server, h)
	rpc.RegisterNodeInfoGcsServiceServer(h.server, h)
	rpc.RegisterJobInfoGcsServiceServer(h.server, h)
	rpc.RegisterActorInfoGcsServiceServer(h.server, h)
	go func() {
		defer close(h.ended)
		_ = h.server.Serve(listener) // it ends by Close, or the test sees no answer
	}()
	return h, nil
}

// Close stops the head and waits until nothing of it runs.
func (h *Head) Close() {
	h.Behave(Away)
	h.server.Stop()
	<-h.ended
}

// Address is its host:port.
func (h *Head) Address() string { return h.listener.Addr().String() }

// SetToken makes the head ask for a token, or for none where it is empty.
func (h *Head) SetToken(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.token = token
}

// Behave changes how the head answers; calls that hang end as the new mood is.
func (h *Head) Behave(mood Mood) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mood = mood
	close(h.turned)
	h.turned = make(chan struct{})
}

// Delay makes each answer come so much later.
func (h *Head) Delay(by time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.delay = by
}

// Restart is a new GCS at the same address, with nothing in its memory.
func (h *Head) Restart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version, h.died, h.nodes, h.jobs, h.actors, h.pending = 0, "", nil, nil, nil, 0
}

// Died says what killed the head's GCS; empty while it lives.
func (h *Head) Died() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.died
}

// Calls is how often a method was called, by its name without the service.
func (h *Head) Calls(method string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[method]
}

// meet stands before every method: moods, the token, and recording.
func (h *Head) meet(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	h.mu.Lock()
	h.calls[last(info.FullMethod)]++
	token, delay, died := h.token, h.delay, h.died
	h.mu.Unlock()
	if err := h.wait(ctx, delay); err != nil {
		return nil, err
	}
	mood, err := h.settled(ctx)
	switch {
	case err != nil:
		return nil, err
	case died != "" || mood == Away:
		return nil, status.Error(codes.Unavailable, "connection refused")
	case token != "" && !bears(ctx, token):
		return nil, status.Error(codes.Unauthenticated, "InvalidAuthToken: Authentication token is missing or incorrect")
	case mood == Passive:
		return nil, refuse(ctx, "GcsPassive", "this GCS does not lead")
	}
	reply, err := handle(ctx, request)
	if message, ok := reply.(proto.Message); ok && err == nil && mood == Garbled {
		message.ProtoReflect().SetUnknown([]byte{0x0a, 0x7f, 0xff}) // it promises 127 bytes
	}
	return reply, err
}

func (h *Head) wait(ctx context.Context, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-h.clock.After(delay):
		return nil
	}
}

// settled waits while the head hangs.
func (h *Head) settled(ctx context.Context) (Mood, error) {
	for {
		h.mu.Lock()
		mood, turned := h.mood, h.turned
		h.mu.Unlock()
		if mood != Hung {
			return mood, nil
		}
		select {
		case <-ctx.Done():
			return mood, status.FromContextError(ctx.Err()).Err()
		case <-turned:
		}
	}
}

// bears tells whether a call bears a token: Ray knows one form, and so do we.
func bears(ctx context.Context, token string) bool {
	with, _ := metadata.FromIncomingContext(ctx)
	given := with.Get("authorization")
	return len(given) == 1 && given[0] == "Bearer "+token
}

// refuse is how GCS says that it will not: a name as the message, its words as plain text
// in a trailer that is meant for something else.
func refuse(ctx context.Context, name, words string) error {
	if err := grpc.SetTrailer(ctx, metadata.Pairs("grpc-status-details-bin", words)); err != nil {
		return fmt.Errorf("set the trailer: %w", err)
	}
	return status.Error(codes.Aborted, name)
}

// die is what an assertion of GCS does. The caller holds the lock.
func (h *Head) die(format string, values ...any) error {
	h.died = fmt.Sprintf(format, values...)
	return status.Error(codes.Unavailable, "connection reset by peer")
}

func last(method string) string {
	for i := len(method) - 1; i >= 0; i-- {
		if method[i] == '/' {
			return method[i+1:]
		}
	}
	return method
}
