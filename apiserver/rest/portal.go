package rest

import (
	"context"
	"net/http"

	"github.com/heliostat-dev/heliostat/apiserver/presets"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// portal implements the calls of the protocol: the verbs and submissions by its parts, and the others itself.
type portal struct {
	// UnsafePortalServer makes a call that nothing implements fail to compile.
	heliostatv1.UnsafePortalServer
	*reviewer
	actions
	submissions
	history
	// presets are those that were read before.
	presets *presets.Cache
	// turns has one for a conversion or a large object at a time: each takes memory.
	turns *limits.Turns
	// listing is the memory that presets and events of users take while they are read.
	listing *limits.Memory
	// permissions are what callers may do in namespaces, as they were told lately.
	permissions *permissionsLately
}

// newPortal returns the calls over what they need.
func newPortal(needs Needs) *portal {
	shared := &reviewer{needs}
	return &portal{
		reviewer: shared, actions: actions{shared}, submissions: submissions{shared}, history: history{shared}, presets: &presets.Cache{},
		turns: limits.NewTurns(), listing: limits.NewMemory(), permissions: newPermissionsLately(needs.Clock),
	}
}

type callerKey struct{}

func withCaller(ctx context.Context, caller *access.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// callerOf returns who a call is of. Each call has one: REST and gRPC put it there before anything else.
func callerOf(ctx context.Context) (*access.Caller, error) {
	caller, is := ctx.Value(callerKey{}).(*access.Caller)
	if !is {
		return nil, problem.New(http.StatusUnauthorized, "Unauthorized", "the call has no caller",
			"send a bearer token")
	}
	return caller, nil
}
