package logs

import (
	"context"
	"errors"
	"fmt"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// ProcessReference names the log of a process of a gang in one round.
type ProcessReference struct {
	Job JobReference
	On  heads.Reference
	Log headclient.Log
}

// errOver is that the attempt has ended whose process is followed.
var errOver = errors.New("the attempt is over")

// ReadProcess reads the log of a process of a gang. A read that follows goes on until the attempt has ended, and another one until
// the end that the log has now. Errors before the first event are those of ReadReplica.
func (l *Logs) ReadProcess(ctx context.Context, of ProcessReference, options Options, sink Sink) error {
	if err := options.check(); err != nil {
		return err
	}
	s := l.begin(options, sink)
	s.from.log, s.subject = of.Log, "process "+of.Log.File
	for {
		v, err := s.pumpAttempt(ctx, of)
		switch {
		case err != nil && !errors.Is(err, errOver):
			return err
		case err != nil: // what was written meanwhile is still to be read
			s.options.Follow = false
			continue
		case v.err == nil:
			return s.finish(l.endOfAttempt(of.Job))
		}
		if again, err := s.lacks(ctx, v); err != nil || !again {
			return err
		}
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
				if attempt := s.logs.findAttempt(of.Job); attempt == nil || attempt.EndTime != nil {
					cancel(errOver)
				}
			}
		}()
	}
	return s.pump(ctx, head)
}

// findAttempt returns an attempt of a job, nil where the status has it no longer.
func (l *Logs) findAttempt(of JobReference) *v1beta1.JobAttempt {
	job, found := l.settings.Jobs.FindJob(of.Namespace, of.Name)
	if !found {
		return nil
	}
	for i := range job.Status.Attempts {
		if job.Status.Attempts[i].Number == of.Attempt {
			return &job.Status.Attempts[i]
		}
	}
	return nil
}

// endOfAttempt returns how an attempt ended, or that it goes on.
func (l *Logs) endOfAttempt(of JobReference) End {
	switch attempt := l.findAttempt(of); {
	case attempt == nil:
		why := fmt.Sprintf("the status of ClusterJob %s has no attempt %d", of.Name, of.Attempt)
		return End{Outcome: Broken, Code: reason.OutputGone.Code, Message: why}
	case attempt.EndTime != nil:
		return ended(attempt)
	default:
		return End{Outcome: Running, Code: reason.JobRunning.Code, Message: "this is the log of the process until now"}
	}
}
