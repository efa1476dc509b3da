package jobs

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// permitted makes a call of a submission, if that is still wanted and permitted when the slot is free.
func (t *turn) permitted(ctx context.Context, what act, do func(context.Context, Want) error) error {
	return t.call(ctx, what, func(ctx context.Context) error {
		want, wanted := t.run.Want() // it may have waited for its slot
		if !wanted || !submittable(want, t.watch.clock.Now()) {
			return errWithdrawn
		}
		t.want = want
		return do(ctx, want)
	})
}

// deliver puts the package of a run on the head, if the head does not have it. The question makes the head keep it until
// the submission. An upload whose reply is lost does no harm: the next turn finds the package, or sends it again.
func (t *turn) deliver(ctx context.Context) error {
	if t.want.Package == nil {
		return nil
	}
	name, archive, has := t.want.Package.Name, t.want.Package.Archive, false
	err := t.permitted(ctx, toDeliver, func(ctx context.Context, _ Want) (err error) {
		has, err = t.head.HasPackage(ctx, name)
		return err
	})
	if err != nil || has {
		return err
	}
	return t.permitted(ctx, toDeliver, func(ctx context.Context, want Want) error {
		log.FromContext(ctx).Info("Uploading a package", "job", t.run.Key, "id", want.ID, "package", name, "cluster", t.Key.cluster)
		return t.head.Upload(ctx, name, archive)
	})
}

// isReportDue reports whether the report of a run that is not over must be read.
func (t *turn) isReportDue() bool {
	now := t.watch.clock.Now()
	return t.want.Report && t.answer.Known && rank(t.answer.Job.Status) == running &&
		!now.Before(t.run.reportDue) && !now.Before(t.reportRetry)
}

// readReport reads the report of a gang. What is no report counts as none, and what was read before stays. A failure is
// the GCS', so no report is read from this head for a while.
func (t *turn) readReport(ctx context.Context) error {
	var data []byte
	err := t.call(ctx, toReport, func(ctx context.Context) (err error) {
		data, err = t.head.Report(ctx, t.want.ID)
		return err
	})
	now := t.watch.clock.Now()
	t.run.reportDue = now.Add(reportEvery)
	if !answers(err) {
		t.reportFailed(ctx, now, err)
		return err
	}
	t.reportFailures, t.reportRetry = 0, time.Time{}
	if report, is := launcher.ParseReport(data); is {
		t.answer.Report, t.answer.Reported = report, true
	}
	return nil
}

// reportFailed notes that no report could be read from a head.
func (a *asker) reportFailed(ctx context.Context, now time.Time, err error) {
	if a.reportFailures++; a.reportFailures == 1 && ctx.Err() == nil {
		log.FromContext(ctx).Info("Cannot read the report of a gang", "cluster", a.Key.cluster, "head", a.Key.head, "why", err.Error())
	}
	a.reportRetry = now.Add(double(reportEvery, a.reportFailures, reportMost))
}

// finish reads what is left of a run that is over: the report of a gang first, so that Tailed holds for both.
func (t *turn) finish(ctx context.Context) error {
	if t.want.Report && !t.run.reported {
		err := t.readReport(ctx)
		if err != nil && t.run.tried < tails-1 {
			t.run.tried++
			return err
		}
		t.run.reported, t.run.tried = true, 0
		if err != nil {
			return err // the next turn reads its output, in another conversation
		}
	}
	return t.tail(ctx)
}
