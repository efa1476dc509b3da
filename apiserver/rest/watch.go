package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/grpc"

	"github.com/heliostat-dev/heliostat/apiserver/feed"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// WatchObjects implements the protocol.
func (p *portal) WatchObjects(
	r *heliostatv1.WatchObjectsRequest, stream grpc.ServerStreamingServer[heliostatv1.Change],
) error {
	watch, err := p.watch(stream.Context(), r)
	if err != nil {
		return err
	}
	defer watch.Close()
	for {
		event, err := watch.Next(stream.Context())
		if err != nil {
			return err
		}
		if err := stream.Send(event.Proto()); err != nil {
			return err
		}
		if event.Type == feed.Bye {
			return nil
		}
	}
}

// watch begins a watch of a caller. The feed asks for the caller's rights again and again.
func (p *portal) watch(ctx context.Context, r *heliostatv1.WatchObjectsRequest) (*feed.Watch, error) {
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	may := func(ctx context.Context, kind, namespace string) error {
		return p.Access.May(ctx, caller, attributes("watch", view.Resource(kind), "", namespace, ""))
	}
	watch, err := p.Feed.Watch(ctx, feed.Request{Query: queryOf(r), Since: r.GetSince(), May: may})
	switch {
	case isForbidden(err):
		return nil, p.refuseAll(ctx, "watch", r)
	case err != nil:
		return nil, ofView(err)
	}
	return watch, nil
}

// ofView returns why lines cannot be had as a problem. Other errors stay.
func ofView(err error) error {
	var findings view.Findings
	switch {
	case errors.Is(err, feed.ErrUnready):
		return problem.New(http.StatusServiceUnavailable, "ServiceUnavailable",
			"the server has not read all objects yet", "try again").Later(aliveEach / 3)
	case errors.As(err, &findings) && len(findings) > 0:
		bad := problem.Bad(findings[0].Field, findings[0].Message, findings[0].Remedy)
		bad.Detail, bad.Errors = findings[0].Message, nil
		for _, one := range findings {
			bad.Errors = append(bad.Errors, problem.FieldError{Field: one.Field, Message: one.Message,
				Remedy: one.Remedy})
		}
		return bad
	}
	return err
}

// serveWatch answers a request for changes with server-sent events.
func (a *API) serveWatch(w http.ResponseWriter, r *http.Request, asked *heliostatv1.WatchObjectsRequest) error {
	// A browser that connects again sends the ID of the last event, whatever the URL says.
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		asked.Since = last
	}
	watch, err := a.portal.watch(r.Context(), asked)
	if err != nil {
		return err
	}
	defer watch.Close()
	out := newEventStream(w, a.portal.Clock)
	defer leave(r.Context(), out.control, a.portal.Clock)()
	// A watch that goes on may have nothing to say for long, and its caller waits for the headers.
	if out.sendOrEnd(comment) != nil {
		return nil // the caller is gone
	}
	for isOver := false; !isOver; {
		if isOver, err = sendEvents(r.Context(), out, watch); err != nil {
			return nil
		}
	}
	return nil
}

// maxTogether is about how many bytes of events are sent at once. What is published together is: a write costs more than an
// event.
const maxTogether = 16 << 10

// sendEvents waits until a watch has something to say, and sends all that it has to say then. It reports whether that was the
// last word.
func sendEvents(ctx context.Context, out *eventStream, watch *feed.Watch) (isOver bool, err error) {
	event, is, err := await(ctx, watch)
	if err != nil {
		return false, err
	}
	if !is {
		return false, out.sendOrEnd(fmt.Appendf(nil, ": \nid: %s\n\n", watch.ID()))
	}
	defer out.endStuck()()
	err = out.sendAll(func(yield func([]byte) bool) {
		head, sent := make([]byte, 0, 128), 0
		for is {
			head = appendHead(head[:0], event)
			text := event.Encoded()
			if !yield(head) || !yield(text) || !yield(endOfEvent) {
				return
			}
			sent += len(head) + len(text)
			if isOver = event.Type == feed.Bye; isOver || sent >= maxTogether {
				return
			}
			event, is = watch.Poll()
		}
	})
	return isOver, err
}

// await returns what a watch says next. Where it has nothing to say for a while, its caller is told the ID to go on from: events of
// others move it too, and an old one would be forgotten.
func await(ctx context.Context, watch *feed.Watch) (event feed.Event, is bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, aliveEach)
	defer cancel()
	event, err = watch.Next(waiting)
	if err != nil && ctx.Err() == nil && errors.Is(waiting.Err(), context.DeadlineExceeded) {
		return feed.Event{}, false, nil
	}
	return event, err == nil, err
}

// endOfEvent is what server-sent events end with, and the line of their data.
var endOfEvent = []byte("\n\n")

// appendHead appends what comes before the data of a server-sent event. The data is JSON in one line.
func appendHead(text []byte, event feed.Event) []byte {
	for _, part := range []string{"id: ", event.ID, "\nevent: ", event.Type, "\ndata: "} {
		text = append(text, part...)
	}
	return text
}
