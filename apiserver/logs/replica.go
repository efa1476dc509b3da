package logs

import (
	"context"
	"errors"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// ReadReplica reads the log of a replica of Serve on a cluster. A read that follows ends when the log is gone, and another
// one at the end that it has now. Before the first event an error says why there is none: ErrInvalid, a *heads.Unavailable,
// a *heads.Refusal, or that the API server does not answer.
func (l *Logs) ReadReplica(ctx context.Context, on heads.Reference, replica heads.Replica, options Options, sink Sink) error {
	if err := options.check(); err != nil {
		return err
	}
	s := l.begin(options, sink)
	s.from.log, s.subject = replica.Log, "replica "+replica.ID
	for {
		head, err := l.settings.Heads.FindHead(on)
		v := verdict{err: err}
		if err == nil {
			on = head.Cluster
			if v, err = s.pump(ctx, head); err != nil {
				return err
			}
		}
		if v.err == nil {
			return s.finish(End{Outcome: Running, Code: reason.ServiceServes.Code, Message: "this is the log of the replica until now"})
		}
		if again, err := s.lacks(ctx, v); err != nil || !again {
			return err
		}
	}
}

// lacks handles why there is no more of a log of a replica. It reports whether to try again.
func (s *session) lacks(ctx context.Context, v verdict) (again bool, err error) {
	switch {
	case s.hasSent:
	case errors.Is(v.err, errShorter):
		return false, refusal(heads.Conflict, reason.OutputShorter.Of(s.subject, v.size, s.offset))
	case isLost(v.err):
		return false, refusal(heads.NotFound, reason.OutputGone.Of(s.subject, headclient.CauseOf(v.err)))
	}
	return s.fails(ctx, v)
}

func refusal(sort heads.Sort, found reason.Finding) error {
	message, remedy := reason.Split(found.Code, found.Text)
	return &heads.Refusal{Sort: sort, Code: found.Code, Message: message, Remedy: remedy}
}
