package logs

import (
	"cmp"
	"context"
	"fmt"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// ReadSubmission reads the output of one of Ray's own jobs on a cluster. Before the first event an error says why there
// is none: ErrInvalid, a *heads.Unavailable, a *heads.Refusal, or that the API server does not answer. After it the last
// event is an end, unless the context or the sink ended the read.
func (l *Logs) ReadSubmission(ctx context.Context, on heads.Reference, id string, options Options, sink Sink) error {
	if err := options.check(); err != nil {
		return err
	}
	s := l.begin(options, sink)
	s.from.id, s.subject = id, "job "+id
	var first heads.Head
	for {
		head, err := l.settings.Heads.FindHead(on)
		v := verdict{err: err}
		switch {
		case err != nil:
		case first.UID != "" && head.UID != first.UID && !head.HasStore:
			return s.broken(reason.HeadLost.Of(first.Pod, "the job was lost with it"))
		default:
			first, on = head, head.Cluster
			if v, err = s.pump(ctx, head); err != nil {
				return err
			}
		}
		if again, err := s.concludes(ctx, v, on.Name); err != nil || !again {
			return err
		}
	}
}

// concludes ends the read, or reports whether to try again.
func (s *session) concludes(ctx context.Context, v verdict, cluster string) (again bool, err error) {
	switch {
	case v.err == nil:
		return false, s.finish(endOf(v))
	case !s.hasSent && headclient.KindOf(v.err) == headclient.NotFound:
		return false, heads.Refused(v.err, cluster, s.from.id)
	case isLost(v.err) && v.job.Status.Over():
		return false, s.outlived(v)
	default:
		return s.fails(ctx, v)
	}
}

// outlived ends the read of a job that is over and whose output is gone.
func (s *session) outlived(v verdict) error {
	found := reason.OutputGone.Of(s.subject, headclient.CauseOf(v.err))
	message, _ := reason.Split(found.Code, found.Text)
	if err := s.notice(found.Code, message); err != nil {
		return err
	}
	v.err, v.isOver = nil, true
	return s.finish(endOf(v))
}

// endOf says how a job ended, or how far it is.
func endOf(v verdict) End {
	job := v.job
	switch {
	case v.isOver:
		return judge(job)
	case job.Status == headclient.JobPending:
		return End{Outcome: Pending, Code: reason.JobPending.Code, Message: "Ray has the job and has not started its driver: " + job.Message}
	case v.awaits != nil:
		return End{
			Outcome: Running, Code: reason.JobRunning.Code,
			Message: "the driver runs, and its output is not there now: " + headclient.CauseOf(v.awaits),
		}
	default:
		return End{Outcome: Running, Code: reason.JobRunning.Code, Message: "the driver runs; this is its output until now"}
	}
}

// supervised are Ray's words for a failure of what it has around a driver, and not of the driver.
func supervised(errorType string) bool {
	switch errorType {
	case "JOB_SUPERVISOR_ACTOR_START_TIMEOUT", "JOB_SUPERVISOR_ACTOR_START_FAILURE", "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE",
		"JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE":
		return true
	default:
		return false
	}
}

// judge names how a job ended, by what Ray says.
func judge(job headclient.Job) End {
	end := End{ExitCode: shell(job.ExitCode)}
	found := reason.JobFailed.Of(job.ErrorType, job.Message)
	switch {
	case job.Status == headclient.JobSucceeded:
		return End{Outcome: Succeeded, ExitCode: end.ExitCode, Code: reason.JobSucceeded.Code, Message: "the driver ended with exit code 0"}
	case job.Status == headclient.JobStopped:
		return End{Outcome: Stopped, ExitCode: end.ExitCode, Code: reason.StoppedInRay.Code, Message: "the job was stopped in Ray"}
	case job.ErrorType == "RUNTIME_ENV_SETUP_FAILURE":
		found = reason.RuntimeEnvFailed.Of(cmp.Or(job.Exception(), job.Message))
	case job.ErrorType == "JOB_SUPERVISOR_ACTOR_DIED":
		found = reason.DriverLost.Of(job.Message)
	case supervised(job.ErrorType):
		found = reason.DriverNotStarted.Of(job.ErrorType, job.Message)
	case job.ExitCode != nil:
		return End{
			Outcome: Failed, ExitCode: end.ExitCode, Code: reason.EntrypointFailed.Code,
			Message: fmt.Sprintf("the entrypoint ended with exit code %d", *end.ExitCode), Remedy: "See its output",
		}
	}
	message, remedy := reason.Split(found.Code, found.Text)
	return End{Outcome: Failed, ExitCode: end.ExitCode, Code: found.Code, Message: message, Remedy: remedy}
}

// shell is an exit code as a shell has it. Ray tells a signal as its negative number.
func shell(code *int32) *int32 {
	if code == nil || *code >= 0 {
		return code
	}
	signalled := 128 - *code
	return &signalled
}
