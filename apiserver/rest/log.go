package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc"

	"github.com/heliostat-dev/heliostat/apiserver/logs"
	"github.com/heliostat-dev/heliostat/apiserver/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// logRequest is what the calls for an output have in common.
type logRequest interface {
	place
	GetOffset() int64
	GetTail() int32
	GetFollow() bool
}

// ReadLog implements the protocol.
func (p *portal) ReadLog(r *heliostatv1.ReadLogRequest, stream grpc.ServerStreamingServer[heliostatv1.LogEvent]) error {
	return p.readLog(stream.Context(), r, func(event logs.Event) error { return stream.Send(eventOf(event)) }, nil)
}

// ReadSubmissionLog implements the protocol.
func (p *portal) ReadSubmissionLog(
	r *heliostatv1.ReadSubmissionLogRequest, stream grpc.ServerStreamingServer[heliostatv1.LogEvent],
) error {
	return p.readLog(stream.Context(), r, func(event logs.Event) error { return stream.Send(eventOf(event)) }, nil)
}

// readLog reads an output into a sink for as long as its caller may. An error before the first event says why there is none.
// When the caller may no longer, writes to control, if any, end soon: a caller who does not read holds nothing.
func (p *portal) readLog(ctx context.Context, r logRequest, sink logs.Sink, control *http.ResponseController) error {
	call, id := "ReadLog", ""
	switch one := r.(type) {
	case *heliostatv1.ReadSubmissionLogRequest:
		call, id = "ReadSubmissionLog", one.GetId()
	case *heliostatv1.ReadReplicaLogRequest:
		call, id = "ReadReplicaLog", one.GetId()
	}
	if err := p.permitAt(ctx, call, r, id); err != nil {
		return err
	}
	ctx, release := p.whilePermitted(ctx, call, r)
	defer release()
	if control != nil {
		defer leave(ctx, control, p.Clock)()
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return err
	}
	options := logs.Options{Offset: r.GetOffset(), Tail: int(r.GetTail()), Follow: r.GetFollow(), Reader: caller.Holder()}
	last := r.GetOffset()
	guarded := func(event logs.Event) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		last = event.Offset
		return sink(event)
	}
	err = readFrom(ctx, p, r, options, guarded)
	var gone *problem.Problem
	if errors.As(context.Cause(ctx), &gone) {
		return sink(logs.Event{Offset: last, End: &logs.End{Outcome: logs.Broken, Code: gone.Reason,
			Message: gone.Detail, Remedy: gone.Remedy}})
	}
	return whyNoLog(err)
}

// readFrom reads the output that a request is for.
func readFrom(ctx context.Context, p *portal, r logRequest, options logs.Options, sink logs.Sink) error {
	switch one := r.(type) {
	case *heliostatv1.ReadSubmissionLogRequest:
		return p.Logs.ReadSubmission(ctx, referenceOf(r), one.GetId(), options, sink)
	case *heliostatv1.ReadReplicaLogRequest:
		return readReplica(ctx, p, one, options, sink)
	case *heliostatv1.ReadLogRequest:
		return p.Logs.ReadJob(ctx, logs.JobReference{Namespace: r.GetNamespace(), Name: r.GetName(),
			Attempt: one.GetAttempt()}, options, sink)
	}
	return fmt.Errorf("read an output: %T names none", r)
}

// whyNoLog returns why a read failed before its first event, as a problem.
func whyNoLog(err error) error {
	switch {
	case errors.Is(err, logs.ErrNotFound):
		return problem.New(http.StatusNotFound, "NotFound", "there is no such job or attempt",
			"look at status.attempts of the job")
	case errors.Is(err, logs.ErrInvalid):
		return problem.Bad("offset", "and tail are 0 or more, and cannot both be given", "give one of them")
	case err != nil:
		return fmt.Errorf("read the output: %w", ofHead(err))
	}
	return nil
}

// eventOf returns an event of an output as the protocol has it.
func eventOf(event logs.Event) *heliostatv1.LogEvent {
	answer := &heliostatv1.LogEvent{Offset: event.Offset}
	switch {
	case event.Notice != nil:
		answer.Event = &heliostatv1.LogEvent_Notice{Notice: &heliostatv1.LogNotice{Code: event.Notice.Code,
			Message: valid(event.Notice.Message)}}
	case event.End != nil:
		answer.Event = &heliostatv1.LogEvent_End{End: &heliostatv1.LogEnd{
			Outcome: string(event.End.Outcome), ExitCode: event.End.ExitCode, Code: event.End.Code,
			Message: valid(event.End.Message), Remedy: valid(event.End.Remedy),
		}}
	default:
		answer.Event = &heliostatv1.LogEvent_Data{Data: event.Data}
	}
	return answer
}

// serveLog answers a request for an output: as text, or as server-sent events where they are asked for.
func (a *API) serveLog(w http.ResponseWriter, r *http.Request, asked logRequest) error {
	if strings.Contains(r.Header.Get("Accept"), eventStreamType) {
		return a.serveLogEvents(w, r, asked)
	}
	out := &logText{w: w, control: http.NewResponseController(w)}
	if err := a.portal.readLog(r.Context(), asked, out.take, out.control); err != nil && !out.hasBegun {
		return err
	} else if err != nil || out.isBroken {
		panic(http.ErrAbortHandler) // a text that is not whole must not look as if it were
	}
	return nil
}

// Trailers of an output as text.
const (
	trailerOutcome  = "Heliostat-Outcome"
	trailerExitCode = "Heliostat-Exit-Code"
)

// logText writes an output as it is.
type logText struct {
	w                  http.ResponseWriter
	control            *http.ResponseController
	hasBegun, isBroken bool
}

// take writes an event. Notices are for server-sent events alone.
func (t *logText) take(event logs.Event) error {
	if !t.hasBegun {
		header := t.w.Header()
		header.Set("Content-Type", "text/plain; charset=utf-8")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		header.Set("Trailer", trailerOutcome+", "+trailerExitCode)
		t.w.WriteHeader(http.StatusOK)
		t.hasBegun = true
	}
	if end := event.End; end != nil {
		t.isBroken = end.Outcome == logs.Broken
		t.w.Header().Set(trailerOutcome, string(end.Outcome))
		if end.ExitCode != nil {
			t.w.Header().Set(trailerExitCode, strconv.Itoa(int(*end.ExitCode)))
		}
		return nil
	}
	if _, err := t.w.Write(event.Data); err != nil {
		return err
	}
	return t.control.Flush()
}

// serveLogEvents answers with server-sent events.
func (a *API) serveLogEvents(w http.ResponseWriter, r *http.Request, asked logRequest) error {
	out := newEventStream(w, a.portal.Clock)
	stop := out.keepAlive(r.Context())
	err := a.portal.readLog(r.Context(), asked, func(event logs.Event) error { return out.send(logs.EncodeSSE(event)) },
		out.control)
	stop() // before it is known whether the answer has begun
	if err != nil && out.hasBegun() {
		panic(http.ErrAbortHandler) // the caller asks again from the last offset
	}
	return err
}

// logQuery returns what a request for an output asks for. Its query was checked before.
func logQuery(r *http.Request, request Request) (logRequest, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem.Bad("query", "cannot be parsed", "escape it as URLs are")
	}
	if from := r.Header.Get("Last-Event-ID"); from != "" && query.Get("offset") == "" {
		query.Set("offset", from)
		query.Del("tail")
	}
	offset, err := whole(query, "offset", 64)
	if err != nil {
		return nil, err
	}
	tail, err := whole(query, "tail", 32)
	if err != nil {
		return nil, err
	}
	attempt, err := whole(query, "attempt", 32)
	if err != nil {
		return nil, err
	}
	isFollowed := query.Get("follow") == "true"
	switch request.route.Call {
	case "ReadLog":
		return &heliostatv1.ReadLogRequest{Namespace: request.Namespace, Name: request.Name,
			Attempt: int32(attempt), Offset: offset, Tail: int32(tail), Follow: isFollowed}, nil
	case "ReadReplicaLog":
		return &heliostatv1.ReadReplicaLogRequest{Namespace: request.Namespace, Name: request.Name, Id: request.id,
			Offset: offset, Tail: int32(tail), Follow: isFollowed}, nil
	}
	return &heliostatv1.ReadSubmissionLogRequest{Namespace: request.Namespace, Name: request.Name, Id: request.id,
		Offset: offset, Tail: int32(tail), Follow: isFollowed}, nil
}

// whole returns a whole number of a query, and 0 for none.
func whole(query url.Values, name string, bits int) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return 0, nil
	}
	number, err := strconv.ParseInt(text, 10, bits)
	if err != nil || number < 0 {
		return 0, problem.Bad("query."+name, fmt.Sprintf("must be a whole number from 0, and is %.80q", text),
			"correct it")
	}
	return number, nil
}
