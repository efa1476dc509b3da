package app

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/heliostat-dev/heliostat/apiserver/connections"
	"github.com/heliostat-dev/heliostat/apiserver/passthrough"
	"github.com/heliostat-dev/heliostat/apiserver/rest"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

// aroundCall does to a call of gRPC what ServeHTTP does to a request.
func (f *front) aroundCall() rest.Around {
	return func(ctx context.Context, call *rest.Call, answer func(context.Context) error) error {
		began := f.clock.Now()
		id := idOf(call.Header)
		asked := request{route: passthrough.RouteNone}
		_ = grpc.SetHeader(ctx, metadata.Pairs("x-request-id", id)) // fails where an answer has begun, and none has
		err := call.Refused
		if err == nil {
			defer connections.Use(ctx)()
			err = f.answer(ctx, call.Request.IsStream(), call.Caller, answer)
			asked = f.verbs.requestOf(call.Request) // what it is about is known once it was answered
		}
		took := f.clock.Since(began)
		code := 200
		if err != nil {
			code = problem.Of(err).Code
		}
		f.metrics.answered(asked, code, took)
		if asked.isChange {
			owner := make(chan string, 1)
			owner <- call.Caller.User().Username
			f.audit(asked, entry{id: id, from: addressOf(ctx), code: code, took: took, owner: owner})
		}
		return err
	}
}

// answer has a call answered in a place of its own.
func (f *front) answer(
	ctx context.Context, isStream bool, caller *access.Caller, answer func(context.Context) error,
) error {
	giveBack, err := f.verbs.take(isStream, caller)
	if err != nil {
		return err
	}
	defer giveBack()
	if !isStream {
		within, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		ctx = within
	}
	return answer(ctx)
}

// addressOf returns the address of a call's caller.
func addressOf(ctx context.Context) string {
	from, is := peer.FromContext(ctx)
	if !is {
		return ""
	}
	host, _, _ := net.SplitHostPort(from.Addr.String()) // Go's own text
	return host
}

// serveGRPC serves calls on a listener until the context ends, and then what is under way for a while.
func serveGRPC(ctx context.Context, listener net.Listener, server *grpc.Server) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
		defer cancel()
		defer context.AfterFunc(late, server.Stop)()
		server.GracefulStop()
	}()
	if err := server.Serve(listener); err != nil {
		return fmt.Errorf("serve gRPC on %s: %w", listener.Addr(), err)
	}
	<-ended
	return nil
}
