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
// 30 s. The end of the job cuts such a pause short. It waits for a job that is PENDING. A log
// that is missing, or whose node does not answer, is a failure once the job is over; one that
// became shorter, or is of another job by now, is Gone at once.
func (j *Jobs) Follow(ctx context.Context, id string, offset int64, into io.Writer) (Job, error) {
	at := Place{ID: id, Offset: offset}
	var last Job
	isLast := false
	for pause := firstPause; ; {
		look, err := j.Look(ctx, at, into)
		if look.Job.ID != "" {
			last = look.Job
		}
		at.Start, at.Offset = last.Start, at.Offset+look.Passed
		if err != nil || look.Awaits == nil && (isLast || !look.MayGrow) {
			return last, err
		}
		isLast = last.Status.Over()
		if pause = min(2*pause, lastPause); look.Passed > 0 {
			pause = firstPause
		}
		if err := j.spare(ctx, at.ID, max(pause, pauseAfter(at.Offset, look.Passed))); err != nil {
			return last, j.sort(ctx, "follow the output of job "+text([]byte(id)), err)
		}
	}
}

// Place is a place in the output of a job.
type Place struct {
	// ID is the submission's.
	ID string
	// Start is when Ray took the job, as Ray tells it; zero is of any job of that ID.
	Start time.Time
	// Offset is in bytes.
	Offset int64
}

// Look is what one look at an output found.
type Look struct {
	// Job is as it was before its output was read. It has no ID where the head did not tell of it, or tells of another.
	Job Job
	// Passed is how many bytes were passed on.
	Passed int64
	// MayGrow: a further look may find more. The job was not over, or Ray may still write why it failed.
	MayGrow bool
	// Awaits is why there was no output, where there may be one later; nil where there was, or needs to be none.
	Awaits error
}

// Look passes on what there is of an output behind a place, as Log does, and tells how the job was before that: after a
// look at a job that was over nothing comes, unless it MayGrow. Who follows an output looks again, from the place that
// this one came to.
//
// An output that is not there, or whose node does not answer, is no failure while the job is not over: it Awaits then. An
// output that is of another job by now is Gone.
func (j *Jobs) Look(ctx context.Context, at Place, into io.Writer) (Look, error) {
	act := "follow the output of job " + text([]byte(at.ID))
	if at.Offset < 0 {
		return Look{}, j.fail(Invalid, act, errNegative)
	}
	job, node, err := j.job(ctx, at.ID)
	if err != nil {
		return Look{}, err
	}
	if !at.Start.IsZero() && !at.Start.Equal(job.Start) {
		return Look{}, j.fail(Gone, act, errAnother)
	}
	out := &behind{into: into, skip: at.Offset}
	err = j.output(ctx, driver{act, at.ID, node}, out)
	look := Look{Job: job, Passed: out.passed, MayGrow: !job.Status.Over() || hasEpilogue(job, node)}
	if isAwaited(err, job) {
		look.Awaits, err = err, nil
	}
	return look, err
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

// Reread returns how long a head is spared that has sent so many bytes: the next look makes it send them again.
func Reread(bytes int64) time.Duration {
	return time.Duration(min(bytes, int64(longestPause/time.Second)*rereadRate)) * time.Second / rereadRate
}

// pauseAfter returns how long to leave an output alone after a look that came to an offset and passed so many bytes on.
// Each look reads all of the output, so a fast one gets fewer looks: nobody reads it line by line.
func pauseAfter(offset, passed int64) time.Duration { return Reread(offset + 2*passed) }

// spare leaves the output of a job alone for some time. A long pause ends early when the job is over or the head does
// not answer: the next look says so.
func (j *Jobs) spare(ctx context.Context, id string, pause time.Duration) error {
	for ; pause > lastPause; pause -= lastPause {
		if err := rest(ctx, lastPause); err != nil {
			return err
		}
		if job, _, err := j.job(ctx, id); err != nil || job.Status.Over() {
			return nil
		}
	}
	return rest(ctx, pause)
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
