package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/heliostat-dev/heliostat/apiserver/logs"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// logRequest is what the calls for an output have in common.
type logRequest interface {
	place
	proto.Message
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
	former, rights, err := p.reachOutput(ctx, call, r, id)
	if err != nil {
		return err
	}
	ctx, release := p.whileMay(ctx, rights)
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
	if former != nil {
		err = jobLogs{p}.readKept(ctx, former, keptRequest(r), options, nil, guarded)
	} else {
		err = readFrom(ctx, p, r, options, guarded)
	}
	var gone *problem.Problem
	if errors.As(context.Cause(ctx), &gone) {
		return sink(logs.Event{Offset: last, End: &logs.End{Outcome: logs.Broken, Code: gone.Reason,
			Message: gone.Detail, Remedy: gone.Remedy}})
	}
	return whyNoLog(err)
}

// reachOutput returns nil for an output that is read where it is, or what is kept of its job; and the rights that reading it needs.
func (p *portal) reachOutput(ctx context.Context, call string, r logRequest, id string) (*found, []authorizationv1.ResourceAttributes, error) {
	rights := attributesOf(call, "", r)
	if one := keptRequest(r); one != nil {
		former, err := jobLogs{p}.reachLog(ctx, one)
		if former != nil {
			rights = former.rights
		}
		return former, rights, err
	}
	return nil, rights, p.permitAt(ctx, call, r, id)
}

// keptRequest returns a request for an output of which something may be kept; nil for another one.
func keptRequest(r logRequest) *heliostatv1.ReadLogRequest {
	one, _ := r.(*heliostatv1.ReadLogRequest)
	return one
}

// readFrom reads the output that a request is for.
func readFrom(ctx context.Context, p *portal, r logRequest, options logs.Options, sink logs.Sink) error {
	switch one := r.(type) {
	case *heliostatv1.ReadSubmissionLogRequest:
		return p.Logs.ReadSubmission(ctx, referenceOf(r), one.GetId(), options, sink)
	case *heliostatv1.ReadReplicaLogRequest:
		return readReplica(ctx, p, one, options, sink)
	case *heliostatv1.ReadLogRequest:
		if one.GetProcess() == "" && (one.GetRound() != 0 || one.GetOlder()) {
			return needsProcess()
		}
		return jobLogs{p}.readJob(ctx, one, options, sink)
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
			Message: valid(event.Notice.Message), Round: event.Notice.Round, Missing: missingOf(event.Notice.Missing)}}
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

// missingOf returns a range that is missing as the protocol has it.
func missingOf(one *logs.Missing) *heliostatv1.MissingRange {
	if one == nil {
		return nil
	}
	return &heliostatv1.MissingRange{Offset: one.Offset, Length: one.Length, Reason: one.Reason}
}

// reader reads an output into a sink. When its caller may no longer, writes to control end soon.
type reader func(sink logs.Sink, control *http.ResponseController) error

// serveLog answers a request for an output: as text, or as server-sent events where they are asked for.
func (a *API) serveLog(w http.ResponseWriter, r *http.Request, asked logRequest) error {
	process, _ := asked.(*heliostatv1.ReadLogRequest)
	isEvents := strings.Contains(r.Header.Get("Accept"), eventStreamType)
	if isEvents && process.GetProcess() != "" && process.GetRound() == 0 {
		return needsRound()
	}
	return a.serveOutput(w, r, process.GetRound(), func(sink logs.Sink, control *http.ResponseController) error {
		return a.portal.readLog(r.Context(), asked, sink, control)
	})
}

// serveFile answers a request for a file, as one for an output is answered.
func (a *API) serveFile(w http.ResponseWriter, r *http.Request, asked *heliostatv1.ReadFileRequest) error {
	return a.serveOutput(w, r, 0, func(sink logs.Sink, control *http.ResponseController) error {
		return a.portal.readFile(r.Context(), asked, sink, control)
	})
}

// serveOutput answers with what is read: as text, or as server-sent events.
func (a *API) serveOutput(w http.ResponseWriter, r *http.Request, round int32, read reader) error {
	if strings.Contains(r.Header.Get("Accept"), eventStreamType) {
		return a.serveLogEvents(w, r, read)
	}
	out := &logText{w: w, control: http.NewResponseController(w), round: round}
	if err := read(out.take, out.control); err != nil && !out.hasBegun {
		return err
	} else if err != nil || out.isBroken {
		panic(http.ErrAbortHandler) // a text that is not whole must not look as if it were
	}
	return nil
}

// roundHeader is a header of the log of a process as text: the round that it is of.
const roundHeader = "Heliostat-Round"

// Trailers of an output as text.
const (
	trailerOutcome  = "Heliostat-Outcome"
	trailerExitCode = "Heliostat-Exit-Code"
	// trailerMissing has ranges that are left out of the text, where there are any, and maxTrailer how many at most.
	trailerMissing = "Heliostat-Missing"
	maxTrailer     = 50
)

// logText writes an output as it is.
type logText struct {
	w                  http.ResponseWriter
	control            *http.ResponseController
	hasBegun, isBroken bool
	// round is that of the log of a process; 0 of other outputs, and while it is not known.
	round int32
	// missing are the ranges that are left out.
	missing []string
}

// take writes an event. Notices are for server-sent events alone, but for the round that one has.
func (t *logText) take(event logs.Event) error {
	if event.Notice != nil && event.Notice.Round > 0 {
		t.round = event.Notice.Round
	}
	if gap := event.Notice; gap != nil && gap.Missing != nil && len(t.missing) < maxTrailer {
		t.missing = append(t.missing, fmt.Sprintf("%d+%d %s", gap.Missing.Offset, gap.Missing.Length, gap.Missing.Reason))
	}
	if !t.hasBegun {
		header := t.w.Header()
		header.Set("Content-Type", "text/plain; charset=utf-8")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		header.Set("Trailer", trailerOutcome+", "+trailerExitCode)
		if t.round > 0 {
			header.Set(roundHeader, strconv.Itoa(int(t.round)))
		}
		t.w.WriteHeader(http.StatusOK)
		t.hasBegun = true
	}
	if end := event.End; end != nil {
		t.isBroken = end.Outcome == logs.Broken
		if len(t.missing) > 0 {
			t.w.Header().Set(http.TrailerPrefix+trailerMissing, strings.Join(t.missing, ", "))
		}
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
func (a *API) serveLogEvents(w http.ResponseWriter, r *http.Request, read reader) error {
	out := newEventStream(w, a.portal.Clock)
	stop := out.keepAlive(r.Context())
	err := read(func(event logs.Event) error { return out.send(logs.EncodeSSE(event)) }, out.control)
	stop() // before it is known whether the answer has begun
	if err != nil && out.hasBegun() {
		panic(http.ErrAbortHandler) // the caller asks again from the last offset
	}
	return err
}

// takeOffset has a request for an output go on where a browser that connects again was, unless it names an offset. It returns which
// number of the request is none that it may give.
func takeOffset(r *http.Request, asked proto.Message) error {
	message := asked.ProtoReflect()
	fields := message.Descriptor().Fields()
	if from := r.Header.Get("Last-Event-ID"); from != "" && r.URL.Query().Get("offset") == "" {
		offset, err := parseText(fields.ByName("offset"), from)
		if err != nil {
			return notFromZero("offset", from)
		}
		message.Set(fields.ByName("offset"), offset)
		message.Clear(fields.ByName("tail"))
	}
	for _, name := range []protoreflect.Name{"offset", "tail", "attempt", "round"} {
		field := fields.ByName(name)
		if field != nil && message.Get(field).Int() < 0 {
			return notFromZero(name, message.Get(field).String())
		}
	}
	return nil
}

func notFromZero(name protoreflect.Name, text string) error {
	return problem.Bad("query."+string(name), fmt.Sprintf("must be a whole number from 0, and is %.80q", text), "correct it")
}
