package logs

import (
	"context"
	"errors"
	"time"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// partSize is how many bytes an event has at most.
	partSize = 32 << 10
	// lookEach is how often a job is looked at that waits.
	lookEach = time.Second
	// patience is for how long a head may not answer in a row before a reader is sent away.
	patience = 10 * time.Minute
)

// session is one read, by one reader.
type session struct {
	logs    *Logs
	options Options
	sink    Sink
	// from says which output of a head it is, and subject whose, in words; offset is where it goes on.
	from    source
	subject string
	offset  int64
	// isTailing: the last lines were not found yet. hasSent: the sink has had an event, hasData: it had output.
	isTailing, hasSent, hasData bool
	// told is the last notice, which is not repeated.
	told Notice
	// since is since when the head does not answer; zero while it does.
	since time.Time
}

func (l *Logs) begin(options Options, sink Sink) *session {
	return &session{logs: l, options: options, sink: sink, offset: options.Offset, isTailing: options.Tail > 0}
}

func (s *session) send(e Event) error {
	e.Offset, s.hasSent = s.offset, true
	return s.sink(e)
}

// notice tells something once.
func (s *session) notice(code, message string) error {
	if now := (Notice{Code: code, Message: message}); now != s.told {
		s.told = now
		return s.send(Event{Notice: &now})
	}
	return nil
}

func (s *session) finish(e End) error { return s.send(Event{End: &e}) }

// broken ends the read with why the output could not be read to its end.
func (s *session) broken(found reason.Finding) error {
	message, remedy := reason.Split(found.Code, found.Text)
	return s.finish(End{Outcome: Broken, Code: found.Code, Message: message, Remedy: remedy})
}

// pump gives the reader what a head has of the output, until nothing more comes from there. The error is the sink's, or
// that the reader is gone.
func (s *session) pump(ctx context.Context, head heads.Head) (verdict, error) {
	r := &reader{at: s.offset, isTailing: s.isTailing, needsLook: s.isTailing || !s.options.Follow, who: s.options.Reader}
	o, err := s.logs.attach(key{head, s.from}, r)
	if err != nil {
		return verdict{err: err}, nil
	}
	defer s.logs.detach(o, r)
	buffer := make([]byte, partSize)
	for {
		seen := o.glance(r)
		if seen.answers && !s.since.IsZero() {
			s.since, s.told = time.Time{}, Notice{} // the next failure is another
		}
		switch {
		case seen.ended:
			return seen.verdict, nil
		case seen.isPlaceable:
			err = s.place(o, r)
		case seen.spot.size > 0:
			err = s.pass(o, r, seen.spot, buffer)
		default:
			select {
			case <-seen.changed:
			case <-ctx.Done():
				return verdict{}, context.Cause(ctx)
			}
		}
		var kept *spoolError
		if errors.As(err, &kept) {
			return verdict{err: err}, nil
		}
		if err != nil {
			return verdict{}, err
		}
		if ctx.Err() != nil {
			return verdict{}, context.Cause(ctx)
		}
	}
}

// place finds the last lines.
func (s *session) place(o *output, r *reader) error {
	isWhole, err := o.place(r, s.options.Tail)
	if err != nil {
		return err
	}
	s.isTailing, s.offset = false, r.at
	r.needsLook = !s.options.Follow
	if isWhole {
		return nil
	}
	found := reason.TailShort.Of(s.options.Tail, s.offset)
	return s.notice(found.Code, found.Text)
}

// pass gives the reader one part.
func (s *session) pass(o *output, r *reader, where spot, buffer []byte) error {
	part := buffer[:min(where.size, partSize)]
	err := o.logs.spool.read(where.block, where.at, part)
	if !o.advance(r, int64(len(part))) {
		return nil // what was read may be another's by now; the next glance says so
	}
	if err != nil {
		return err
	}
	s.offset += int64(len(part))
	s.hasData = true
	return s.send(Event{Data: part})
}

// isLost reports whether a head says that it has no output, or no such job.
func isLost(err error) bool {
	kind := headclient.KindOf(err)
	return kind == headclient.Gone || kind == headclient.NotFound
}

// fails handles why a head gives no output. It reports whether to try again: then the reader knows why it waits. Else the
// read is over.
func (s *session) fails(ctx context.Context, v verdict) (again bool, err error) {
	var unavailable *heads.Unavailable
	var kept *spoolError
	switch {
	case errors.Is(v.err, errEnds):
		return false, s.broken(reason.OutputNotKept.Of(s.subject, errEnds.Error()))
	case errors.Is(v.err, errBehind):
		return false, s.broken(reason.ReaderBehind.Of(s.offset, s.subject))
	case errors.Is(v.err, errShorter):
		return false, s.broken(reason.OutputShorter.Of(s.subject, v.size, s.offset))
	case errors.As(v.err, &kept):
		return false, s.broken(reason.OutputNotKept.Of(s.subject, kept.Error()))
	case errors.As(v.err, &unavailable):
		return s.retry(ctx, v.err, unavailable)
	}
	switch headclient.KindOf(v.err) {
	case headclient.Gone, headclient.NotFound:
		return false, s.broken(reason.OutputGone.Of(s.subject, headclient.CauseOf(v.err)))
	case headclient.Unsupported:
		return false, s.broken(reason.OutputUnreadable.Of(s.subject, headclient.CauseOf(v.err)))
	}
	// The API server did not answer.
	return s.retry(ctx, v.err, &heads.Unavailable{
		Code: reason.HeadUnreachable.Code, Message: "the head of the cluster cannot be found: " + v.err.Error(),
		Remedy: "Read again from the last offset", Temporary: true, RetryAfter: lookEach,
	})
}

// hasWaited reports whether the head has not answered for as long as a reader waits.
func (s *session) hasWaited() bool {
	return !s.since.IsZero() && s.logs.settings.Clock.Now().Sub(s.since) >= patience
}

// retry waits for a head that may come back. Who does not follow does not wait, and who has had nothing yet gets the
// error itself.
func (s *session) retry(ctx context.Context, err error, why *heads.Unavailable) (again bool, failure error) {
	if s.since.IsZero() {
		s.since = s.logs.settings.Clock.Now()
	}
	if !why.Temporary || !s.options.Follow || s.hasWaited() {
		if !s.hasSent {
			return false, err
		}
		return false, s.finish(End{Outcome: Broken, Code: why.Code, Message: why.Message, Remedy: why.Remedy})
	}
	if s.told.Code != why.Code { // its words may differ each time
		if err := s.notice(why.Code, why.Message); err != nil {
			return false, err
		}
	}
	return true, s.logs.wait(ctx, lookEach)
}
