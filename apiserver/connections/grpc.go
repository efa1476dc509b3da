package connections

import (
	"context"

	"google.golang.org/grpc/stats"
)

// ForGRPC returns what puts each connection of a gRPC server into the contexts of its calls.
func (l *Limits) ForGRPC() stats.Handler { return tagger{l} }

type tagger struct{ limits *Limits }

// TagConn implements stats.Handler.
func (t tagger) TagConn(ctx context.Context, of *stats.ConnTagInfo) context.Context {
	return t.limits.With(ctx, of.RemoteAddr)
}

// TagRPC implements stats.Handler.
func (tagger) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (tagger) HandleConn(context.Context, stats.ConnStats) {}

// HandleRPC implements stats.Handler.
func (tagger) HandleRPC(context.Context, stats.RPCStats) {}
