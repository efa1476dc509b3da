package headclient

import (
	"context"
	"errors"
	"io"
	"time"
)

// How long a log that is followed is left alone.
const (
	// firstPause is after new output, lastPause after some time without.
	firstPause = 500 * time.Millisecond
	lastPause  = 2 * time.Second
	// rereadRate is how many bytes per second a head is made to send again at most: each look
	// at a log begins at its beginning. longestPause bounds what comes of that.
	rereadRate   = 8 << 20
	longestPause = 30 * time.Second
)

// Follow passes a job's output on as it is, from an offset in bytes, until the job is over and
// all of its output was passed on. It returns the job as it was last seen, also when it fails.
// After a failure it can be called again, by another conversation, with the offset behind what
// the writer took.
//
// It looks again and again, as Log does, and holds nothing of the head's between the looks.
// They are half a second apart while there is output, up to 2 s while there is none, and more
// where the log is so large that reading it again would cost the head more than 8 MiB/s, up to
// 30 s. It waits for a job that is PENDING. A log that is missing, or whose node does not answer,
// is a failure once the job is over; one that became shorter, or is of another job by now, is
// Gone at once.
func (j *Jobs) Follow(ctx context.Context, id string, offset int64, into io.Writer) (Job, error) {
	act := "follow the output of job " + text([]byte(id))
	if offset < 0 {
		return Job{}, j.fail(Invalid, act, errNegative)
	}
	var last Job
	isLast := false
	for pause := firstPause; ; {
		job, node, err := j.job(ctx, id)
		if err != nil {
			return last, err
		}
		if last.ID != "" && !last.Start.Equal(job.Start) {
			return last, j.fail(Gone, act, errAnother)
		}
		last = job
		out := &behind{into: into, skip: offset}
		err = j.output(ctx, driver{act, id, node}, out)
		offset += out.passed
		switch {
		case isAwaited(err, job):
		case err != nil, isLast, job.Status.Over() && !hasEpilogue(job, node):
			return job, err // it was over before the log was read
		}
		isLast = job.Status.Over()
		if pause = min(2*pause, lastPause); out.passed > 0 {
			pause = firstPause
		}
		if err := rest(ctx, max(pause, reread(offset))); err != nil {
			return job, j.sort(ctx, act, err)
		}
	}
}

// hasEpilogue reports whether Ray may write why a job failed behind its output, which it does
// a moment after it has said that the job failed.
func hasEpilogue(job Job, node NodeID) bool {
	return job.Status == JobFailed && job.ExitCode == nil && node != NodeID{}
}

// isAwaited reports whether a log that is not there may still come, or its job may soon be
// known to have died with its node.
func isAwaited(err error, job Job) bool {
	return (errors.Is(err, errNoFile) || errors.Is(err, errNoNode) || errors.Is(err, errSilent)) && !job.Status.Over()
}

// reread is how long a head is spared that has sent so many bytes again.
func reread(bytes int64) time.Duration {
	return time.Duration(min(bytes, int64(longestPause/time.Second)*rereadRate)) * time.Second / rereadRate
}

func rest(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
