package jobs

import (
	"context"
	"errors"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// errWithdrawn: when the slot was free, the submission was no longer wanted or permitted.
var errWithdrawn = errors.New("withdrawn")

// progress is how far an asker has come with a run.
type progress struct {
	// due is when the run has its next turn; zero if nothing is left to be done.
	due time.Time
	// changed is when something of it changed last that sets the pace, rank the furthest that
	// it was seen to have come.
	changed time.Time
	rank    int
	// failures are those in a row of calls about the run.
	failures int
	// unsure: it may have been submitted, nobody said so.
	unsure bool
	// stops is how often it was told to stop, stopDue when it is again, glanced whether
	// its output was tried to be read before.
	stops   int
	stopDue time.Time
	glanced bool
	// tried is how often what is left of it was tried to be read since it was over: its report
	// until reported, then its output.
	tried    int
	reported bool
	// reportDue is before when the report of a gang is not read again while it runs.
	reportDue time.Time
}

// begin sets the pace for something new.
func (p *progress) begin(now time.Time) { p.changed, p.failures, p.due = now, 0, now }

// turn is what is done about one run at a time: a few calls. It works on copies, which are
// kept at its end if the run is still wanted.
type turn struct {
	*asker
	run    *run
	want   Want
	answer Answer
	owed   bool
}

// turn does what is next for a run.
func (a *asker) turn(ctx context.Context, r *run) {
	t, wanted := a.open(r)
	if !wanted {
		return
	}
	var err error
	if !t.answer.done() {
		if err := a.converse(ctx, !t.bound()); err != nil {
			if ctx.Err() == nil {
				a.failed(t, err)
			}
			return
		}
		err = t.act(ctx)
	}
	if ctx.Err() == nil {
		t.settle(err)
	}
}

// open begins a turn. It is false if the run is not wanted any more.
func (a *asker) open(r *run) (*turn, bool) {
	want, known, owed, wanted := r.See()
	if owed {
		r.begin(a.watch.clock.Now())
	}
	return &turn{asker: a, run: r, want: want, answer: known.Answer, owed: owed}, wanted
}

// settle ends a turn: it keeps what was heard, says when the next one is, and wakes the job
// if an answer was owed to what was newly wanted, or means something new.
func (t *turn) settle(err error) {
	r, now := t.run, t.watch.clock.Now()
	if err == nil {
		r.failures = 0
		t.answer.Failure, t.answer.Err, t.answer.FailingSince = "", nil, time.Time{}
	} else {
		if r.failures++; t.answer.Failure == "" {
			t.answer.FailingSince = now
		}
		t.answer.Failure, t.answer.Err = headclient.KindOf(err), err
	}
	switch {
	case t.answer.done():
		r.due = time.Time{}
	case err != nil:
		r.due = now.Add(double(again, r.failures, most))
	case t.over():
		r.due = now // for its output
	default:
		r.due = now.Add(r.pause(now, len(t.runs)))
		if r.stopDue.After(now) && r.stopDue.Before(r.due) {
			r.due = r.stopDue
		}
	}
	r.Publish(known{t.answer, t.asker}, t.owed)
}

// HasNews reports whether an answer about a run means something else than the one before, and so wakes its job. When it
// was asked does not, nor lines that were read in advance, nor the times of a report.
func HasNews(a, b Answer) bool {
	return a.Failure != b.Failure || a.Session != b.Session || a.Asked.IsZero() != b.Asked.IsZero() || a.Known != b.Known ||
		a.Foreign != b.Foreign || a.Refused != b.Refused || a.Submitted.IsZero() != b.Submitted.IsZero() ||
		a.Tailed != b.Tailed || a.LogLost != b.LogLost || !reflect.DeepEqual(a.Job, b.Job) ||
		a.Reported != b.Reported || a.Reported && !a.Report.HasSameMeaning(b.Report)
}

// done reports whether nothing is left to be asked or done.
func (a *Answer) done() bool { return a.Foreign || a.Refused != "" || a.Tailed }

// bound reports whether this is the session that the run is bound to.
func (t *turn) bound() bool {
	return t.want.ID != "" && t.want.Session != "" && t.want.Session == t.session
}

func (t *turn) over() bool { return t.answer.Job.Status.Over() }

// act makes the calls of a turn, in a conversation whose session is known.
func (t *turn) act(ctx context.Context) error {
	switch {
	case !t.bound():
		if t.over() { // the output went with the session
			t.answer.giveUpTail()
		}
		return nil
	case t.over():
		return t.finish(ctx)
	case t.mayBeSubmitted() && !t.run.unsure:
		return t.submit(ctx)
	default:
		return t.attend(ctx)
	}
}

// attend looks what has become of a run, and does what follows from that. A report that cannot be read hides nothing of
// what the head said of the run.
func (t *turn) attend(ctx context.Context) error {
	err := t.look(ctx)
	switch {
	case err != nil || t.answer.Foreign || t.over():
		return err
	case t.want.Stop && t.answer.Known:
		err = t.stop(ctx)
	case t.mayBeSubmitted() && !t.answer.Known:
		return t.submit(ctx)
	}
	if err == nil && t.isReportDue() {
		_ = t.readReport(ctx) // reportFailed notes it
	}
	return err
}

// mayBeSubmitted reports whether the run must be submitted, if the head does not know it.
func (t *turn) mayBeSubmitted() bool {
	return submittable(t.want, t.watch.clock.Now()) && t.answer.Submitted.IsZero()
}

// submittable reports whether a submission is wanted and permitted.
func submittable(want Want, now time.Time) bool {
	return want.Submission != nil && !want.Stop && now.Before(want.Until)
}

// submit submits the run, its package first, and looks at what there is then.
func (t *turn) submit(ctx context.Context) error {
	delivered := t.want.Package
	err := t.deliver(ctx)
	if err == nil {
		err = t.permitted(ctx, toSubmit, func(ctx context.Context, want Want) error {
			if delivered != nil && want.Package != nil && want.Package.Name != delivered.Name {
				return errWithdrawn // the next turn delivers the other one
			}
			t.run.unsure = true
			log.FromContext(ctx).Info("Submitting a run", "job", t.run.Key, "id", want.ID, "cluster", t.Key.cluster, "head", t.Key.head)
			return t.head.Submit(ctx, *want.Submission)
		})
	}
	if errors.Is(err, errWithdrawn) {
		return nil
	}
	switch headclient.KindOf(err) {
	case "":
		t.run.unsure, t.answer.Submitted = false, t.watch.clock.Now()
		t.run.changed, t.answer.Asked = t.answer.Submitted, time.Time{}
	case headclient.Exists: // whose it is, its metadata tells
	case headclient.Refused, headclient.Invalid:
		t.run.unsure, t.answer.Refused = false, headclient.CauseOf(err)
		return nil
	default:
		return err
	}
	return t.look(ctx)
}

// look asks what the head knows of the run.
func (t *turn) look(ctx context.Context) error {
	var job headclient.Job
	err := t.call(ctx, toLook, func(ctx context.Context) (err error) {
		job, err = t.head.Job(ctx, t.want.ID)
		return err
	})
	unknown := headclient.KindOf(err) == headclient.NotFound
	if err != nil && !unknown {
		return err
	}
	now := t.watch.clock.Now()
	t.answer.Asked, t.answer.Known = now, !unknown
	if unknown {
		return nil
	}
	if rank := rank(job.Status); rank > t.run.rank {
		t.run.rank, t.run.changed = rank, now
	}
	if asked := t.want.Submission; asked != nil {
		t.answer.Foreign = job.Metadata[MetadataPayload] != asked.Metadata[MetadataPayload]
		if t.run.unsure = false; !t.answer.Foreign && t.answer.Submitted.IsZero() {
			t.answer.Submitted = now
		}
	}
	job.Entrypoint, job.Metadata = "", nil
	t.answer.Job = job
	return nil
}

// running is the rank of a run whose driver has begun.
const running = 2

// rank orders how far a run has come. What Ray may yet invent is not an order.
func rank(status headclient.JobStatus) int {
	switch {
	case status.Over():
		return 3
	case status == headclient.JobRunning:
		return running
	default:
		return 1
	}
}

// stop tells a run to end, each time that this is due: a state that is wanted, not a
// message. What has begun has output, which may be gone after.
func (t *turn) stop(ctx context.Context) error {
	r, pending := t.run, t.answer.Job.Status == headclient.JobPending
	if t.watch.clock.Now().Before(r.stopDue) {
		return nil
	}
	if !pending && !r.glanced && t.want.Lines > 0 {
		r.glanced = true
		tail, err := t.read(ctx)
		switch {
		case err == nil:
			t.answer.Tail = tail
		case !answers(err):
			return err // the next turn begins another conversation, and stops the run
		}
	}
	err := t.call(ctx, toStop, func(ctx context.Context) (err error) {
		if r.stops == 0 {
			log.FromContext(ctx).Info("Stopping a run", "job", r.Key, "id", t.want.ID, "cluster", t.Key.cluster, "head", t.Key.head, "status", t.answer.Job.Status)
		}
		r.stops++
		if pending {
			_, err = t.head.Kill(ctx, t.want.ID)
		} else {
			_, err = t.head.Stop(ctx, t.want.ID)
		}
		return err
	})
	r.stopDue = t.watch.clock.Now().Add(double(stopAgain, r.stops, stopMost))
	if headclient.KindOf(err) == headclient.NotFound {
		return nil // the next look will tell
	}
	return err
}

// tail reads the end of the output of a run that is over.
func (t *turn) tail(ctx context.Context) error {
	if t.want.Lines <= 0 {
		t.answer.Tailed = true
		return nil
	}
	tail, err := t.read(ctx)
	switch {
	case err == nil:
		t.answer.Tail, t.answer.Tailed = tail, true
	case answers(err):
		t.answer.giveUpTail()
	default:
		if t.run.tried++; t.run.tried < tails {
			return err
		}
		t.answer.giveUpTail()
	}
	return nil
}

func (t *turn) read(ctx context.Context) (tail headclient.Tail, err error) {
	err = t.call(ctx, toRead, func(ctx context.Context) (err error) {
		tail, err = t.head.Tail(ctx, t.want.ID, t.want.Lines)
		return err
	})
	return tail, err
}

// giveUpTail keeps what was read before the run was told to stop, if anything was.
func (a *Answer) giveUpTail() {
	a.Tailed, a.LogLost = true, len(a.Tail.Lines) == 0
	a.Tail.Truncated = !a.LogLost
}

// missed counts that a head failed, for a run that is over and whose output must be read.
// It reports whether this was the last try.
func (r *run) missed(answer *Answer) bool {
	if !answer.Job.Status.Over() || answer.done() {
		return false
	}
	if r.tried++; r.tried < tails {
		return false
	}
	answer.giveUpTail()
	r.due = time.Time{}
	return true
}
