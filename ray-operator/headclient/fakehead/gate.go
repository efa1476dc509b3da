package fakehead

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

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

// gate stands before all that a head answers. It counts calls, and refuses, delays or spoils them as a test wants.
type gate struct {
	*shared
	token  string
	mood   Mood
	turned chan struct{} // closed when the mood changes
	delay  time.Duration
	died   string
	calls  map[string]int
}

// SetToken makes the head ask for a token, or for none where it is empty.
func (g *gate) SetToken(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token = token
}

// Behave changes how the head answers; calls that hang end as the new mood is.
func (g *gate) Behave(mood Mood) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mood = mood
	close(g.turned)
	g.turned = make(chan struct{})
}

// Delay makes each answer come so much later.
func (g *gate) Delay(by time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delay = by
}

// Died says what killed the head's GCS; empty while it lives.
func (g *gate) Died() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.died
}

// Calls is how often a method was called, by its name without the service.
func (g *gate) Calls(method string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[method]
}

// meet stands before every method: moods, the token, and recording.
func (g *gate) meet(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	g.mu.Lock()
	g.calls[last(info.FullMethod)]++
	token, delay, died := g.token, g.delay, g.died
	g.mu.Unlock()
	if err := g.wait(ctx, delay); err != nil {
		return nil, err
	}
	mood, err := g.settled(ctx)
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

func (g *gate) wait(ctx context.Context, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-g.clock.After(delay):
		return nil
	}
}

// settled waits while the head hangs.
func (g *gate) settled(ctx context.Context) (Mood, error) {
	for {
		g.mu.Lock()
		mood, turned := g.mood, g.turned
		g.mu.Unlock()
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
func (g *gate) die(format string, values ...any) error {
	g.died = fmt.Sprintf(format, values...)
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
