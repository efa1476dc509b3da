// Package fakehead is a Ray head without Ray: its GCS, its job API and its Serve API, which
// are what headclient speaks to, in process, for tests. The proxies of Serve are not there;
// Proxied tells what one would lead to.
//
// In: what a test wants to be so (nodes, what runs and what waits for room, how the head
// behaves). Out: servers on loopback that answer as Ray 2.60 was seen to, its traps among
// them: it dies of a node id that has not 28 bytes and of a state version above its own, it
// drops reports that are older than the last, and what it was asked to run it runs, also
// when nobody waits for the answer any more.
//
// It must never be kinder than Ray: what kills a real GCS kills this one, and Died says of
// what. It must never be part of what users run.
package fakehead

import (
	"context"
	"fmt"
	"net"
	"slices"
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
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Version is the Ray that it says to be.
const Version = "2.60.0"

// Python is the version of Python that it runs in.
const Python = "3.11.2"

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
	// Mute does what it is asked, and breaks the connection instead of answering.
	Mute
)

// Head is a fake head. Its methods may be called at any time.
type Head struct {
	autoscaler.UnimplementedAutoscalerStateServiceServer
	rpc.UnimplementedNodeInfoGcsServiceServer
	rpc.UnimplementedJobInfoGcsServiceServer
	rpc.UnimplementedActorInfoGcsServiceServer
	rpc.UnimplementedInternalKVGcsServiceServer

	clock   clock.Clock
	address string
	server  *grpc.Server
	web     *web
	ended   sync.WaitGroup

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
	asks    []*asked
	groups  []*group
	scaling scaling
	job     jobs
	serve   serving
}

// Start makes a head that listens on loopback, without a token and without nodes.
func Start(clock clock.Clock) (*Head, error) { return StartAt(clock, "127.0.0.1:0", "127.0.0.1:0") }

// StartAt makes a head whose GCS and whose job API listen at addresses of the caller's
// choice, without a token and without nodes.
func StartAt(clock clock.Clock, gcs, jobAPI string) (*Head, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", gcs)
	if err != nil {
		return nil, fmt.Errorf("listen for the GCS of a fake head: %w", err)
	}
	second, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", jobAPI)
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("listen for the job API of a fake head: %w", err)
	}
	return StartOn(clock, listener, second), nil
}

// StartOn makes a head whose GCS and whose job API listen where the caller does, without a token and without nodes.
func StartOn(clock clock.Clock, gcs, jobAPI net.Listener) *Head {
	h := &Head{clock: clock, address: gcs.Addr().String(), turned: make(chan struct{}), calls: map[string]int{}}
	h.job = jobs{known: map[string]*job{}, packages: map[string][]byte{}, startDelay: StartDelay, session: h.begin()}
	h.serve = newServing()
	h.server = grpc.NewServer(grpc.UnaryInterceptor(h.meet))
	autoscaler.RegisterAutoscalerStateServiceServer(h.server, h)
	rpc.RegisterNodeInfoGcsServiceServer(h.server, h)
	rpc.RegisterJobInfoGcsServiceServer(h.server, h)
	rpc.RegisterActorInfoGcsServiceServer(h.server, h)
	rpc.RegisterInternalKVGcsServiceServer(h.server, h)
	h.web = newWeb(h, jobAPI)
	h.ended.Go(func() { _ = h.server.Serve(gcs) }) // it ends by Close, or the test sees no answer
	h.ended.Go(func() { _ = h.web.server.Serve(jobAPI) })
	return h
}

// Close stops the head and waits until nothing of it runs.
func (h *Head) Close() {
	h.Behave(Away)
	h.server.Stop()
	h.mu.Lock()
	h.web.closed = true
	h.mu.Unlock()
	_ = h.web.server.Close()
	h.web.open.Wait()
	h.ended.Wait()
}

// Address is the host:port of its GCS.
func (h *Head) Address() string { return h.address }

// JobsAddress is the host:port of its job API, and of its Serve API.
func (h *Head) JobsAddress() string { return h.web.address }

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

// Restart is a new head at the same addresses, with nothing in its memory. Its session has
// another name, and connections to the job API of the former one break.
func (h *Head) Restart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settleJobs()
	h.job.known, h.job.live, h.job.session = map[string]*job{}, nil, h.begin()
	clear(h.job.packages)
	h.version, h.died, h.nodes, h.jobs, h.actors, h.pending = 0, "", nil, nil, nil, 0
	h.asks, h.groups, h.scaling, h.serve = nil, nil, scaling{}, h.serve.restart()
}

// Recover is a new start of GCS alone, over a store that lasts: the session is the same and
// everything runs on, but the state version begins again, reports and the floor are gone, and
// no node is known until it joins again.
func (h *Head) Recover() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settle()
	h.version, h.died, h.scaling.floor, h.scaling.reported = 0, "", nil, nil
	for _, one := range h.nodes {
		one.away = !one.dead
	}
}

// Rejoin brings nodes back that a Recover took away, or all where none is named.
func (h *Head) Rejoin(ids ...headclient.NodeID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.nodes {
		if len(ids) == 0 || slices.Contains(ids, one.id) {
			one.away = false
		}
	}
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
	if mood == Mute {
		return nil, status.Error(codes.Unavailable, "connection reset by peer")
	}
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

// bears reports whether a call bears a token: Ray knows one form, and so do we.
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
