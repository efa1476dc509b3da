package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// ProcessReference names the log of a process of a gang in one round.
type ProcessReference struct {
	Job JobReference
	On  heads.Reference
	heads.Process
	// Round is 0 for the newest one that has a log.
	Round   int32
	IsOlder bool
}

// errOver is that the attempt has ended whose process is followed.
var errOver = errors.New("the attempt is over")

// ReadProcess reads the log of a process of a gang. A read that follows goes on until the attempt has ended, and another one until
// the end that the log has now. Errors before the first event are those of ReadReplica.
//
// A reader that gives no round gets a notice first, which has the round.
func (l *Logs) ReadProcess(ctx context.Context, of ProcessReference, options Options, sink Sink) error {
	if err := options.check(); err != nil {
		return err
	}
	found, err := l.ListRounds(ctx, of.On, of.Process, options.Reader)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(found.All, func(one heads.Round) bool { return one.Number == of.Round })
	if of.Round == 0 {
		at = len(found.All) - 1
	}
	if at < 0 {
		return notThere(of, found)
	}
	round := found.All[at]
	if of.Round == 0 {
		sink = announce(newest(of, round, found), sink)
	}
	s := l.begin(options, sink)
	s.from.log = round.File(of.IsOlder)
	s.subject = "process " + s.from.log.File
	return s.readProcess(ctx, of)
}

// newest returns which round is read, and that a newer one may be on Ray nodes that do not answer.
func newest(of ProcessReference, round heads.Round, found heads.Rounds) Notice {
	which := "it is the newest one"
	if missing := found.Missing(); missing != "" {
		which = missing + "; a newer round may be there"
	}
	said := reason.NewestRound.Of(round.Number, of.Name, which)
	return Notice{Code: said.Code, Message: said.Text, Round: round.Number}
}

// announce returns a sink that has a notice before its first event. A read that fails before has no event, and so no notice.
func announce(first Notice, sink Sink) Sink {
	isTold := false
	return func(e Event) error {
		if !isTold {
			isTold = true
			if err := sink(Event{Notice: &first}); err != nil {
				return err
			}
		}
		return sink(e)
	}
}

// readProcess gives the reader the log until its end.
func (s *session) readProcess(ctx context.Context, of ProcessReference) error {
	follows := s.options.Follow
	for {
		v, err := s.pumpAttempt(ctx, of)
		switch {
		case err != nil && !errors.Is(err, errOver):
			return err
		case err != nil: // what was written meanwhile is still to be read
			s.options.Follow = false
			continue
		case v.err == nil:
			return s.finish(s.logs.endOfAttempt(of))
		}
		var again bool
		if follows {
			s.options.Follow = true // it waits for the rest of an attempt that is over too
			again, err = s.outlasts(ctx, v, of)
		} else {
			again, err = s.lacks(ctx, v)
		}
		if err != nil || !again {
			return err
		}
	}
}

// outlasts handles why there is no more of the log of a process for a reader that follows. It reports whether to try again. How
// the attempt ended is known where the status says so, and is soon where the cluster goes.
func (s *session) outlasts(ctx context.Context, v verdict, of ProcessReference) (again bool, err error) {
	attempt := s.logs.findAttempt(of)
	isOver := attempt != nil && attempt.EndTime != nil
	var unavailable *heads.Unavailable
	isEnding := errors.As(v.err, &unavailable) && unavailable.IsEnding()
	switch {
	case isGone(v.err) && attempt == nil:
		return false, s.finish(s.logs.endOfAttempt(of))
	case isOver && (isGone(v.err) || s.hasWaited()):
		found := reason.OutputGone.Of(s.subject, causeOf(v.err))
		message, _ := reason.Split(found.Code, found.Text)
		if err := s.notice(found.Code, message); err != nil {
			return false, err
		}
		return false, s.finish(ended(attempt))
	case isEnding:
		if err := s.notice(unavailable.Code, unavailable.Message); err != nil {
			return false, err
		}
		return true, s.logs.wait(ctx, lookEach)
	default:
		return s.lacks(ctx, v)
	}
}

// pumpAttempt gives the reader what there is. It ends with errOver where the attempt ends while the reader follows.
func (s *session) pumpAttempt(ctx context.Context, of ProcessReference) (verdict, error) {
	head, err := s.logs.settings.Heads.FindHead(of.On)
	if err != nil {
		return verdict{err: err}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.options.Follow {
		go func() {
			for s.logs.wait(ctx, lookEach) == nil {
				if attempt := s.logs.findAttempt(of); attempt == nil || attempt.EndTime != nil {
					cancel(errOver)
				}
			}
		}()
	}
	return s.pump(ctx, head)
}

// findAttempt returns the attempt of a process, nil where the status has it no longer. Another job of that name may have one of
// the same number, whose submission is another.
func (l *Logs) findAttempt(of ProcessReference) *v1beta1.JobAttempt {
	job, found := l.settings.Jobs.FindJob(of.Job.Namespace, of.Job.Name)
	if !found {
		return nil
	}
	for i := range job.Status.Attempts {
		if one := &job.Status.Attempts[i]; one.Number == of.Job.Attempt && one.SubmissionID == of.Submission {
			return one
		}
	}
	return nil
}

// endOfAttempt returns how an attempt ended, or that it goes on.
func (l *Logs) endOfAttempt(of ProcessReference) End {
	switch attempt := l.findAttempt(of); {
	case attempt == nil:
		why := fmt.Sprintf("ClusterJob %s was deleted, or its status no longer has attempt %d", of.Job.Name, of.Job.Attempt)
		return End{Outcome: Broken, Code: reason.OutputGone.Code, Message: why}
	case attempt.EndTime != nil:
		return ended(attempt)
	default:
		return End{Outcome: Running, Code: reason.JobRunning.Code, Message: "this is the log of the process until now"}
	}
}
