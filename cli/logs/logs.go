// Package logs prints outputs of jobs, clusters and services, as they come.
//
// In: an object. Out: on standard output what a job's program wrote, byte for byte and each byte once, attempt by attempt, or
// the last lines that the status keeps where the head is gone; what Ray's containers of a cluster wrote, or the replicas of
// a service. On standard error what becomes of the connection.
//
// It must never print a line twice because a connection was lost, and never stop a job.
package logs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/object"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/overview"
	"github.com/heliostat-dev/heliostat/cli/progress"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Command returns the command that prints the output of a job, by one of its names.
func Command(c *console.Console, use string) *cobra.Command {
	a := &asked{}
	command := &cobra.Command{
		Use: use, Short: "Print the output of a job",
		Long: `Print the output of a job's program, attempt by attempt. With -f the command continues until the job has ended. It retries a
lost connection for 5 minutes and continues at the same byte. If the cluster is gone, it prints the last lines in the job's
status, or through the server (--server) the whole output from the history, also of a deleted job. With --process it prints the
log of one process of a gang.

It reaches the head by a port-forward of its pod with the cluster's token, which the role "edit" permits, or through the
server (--server), for which "view" is enough.`,
		Example: "  heliostat job logs train -f\n  heliostat job logs train --attempt 1",
		Args:    console.Arguments(1, 1, "NAME"), ValidArgsFunction: object.Complete(c, kube.Job),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := kube.ParseTarget(args[0], kube.Job)
			if err != nil {
				return err
			}
			return a.run(cmd, c, target.String())
		},
	}
	c.AddServer(command.Flags())
	command.Flags().BoolVarP(&a.isFollowed, "follow", "f", false, "continue until the job has ended")
	command.Flags().Int32Var(&a.attempt, "attempt", 0, "number of the attempt; default: the current one, and with -f those "+
		"that follow")
	a.process.add(command.Flags(), "")
	a.addKept(command.Flags())
	return command
}

// Output is that of one job.
type Output struct {
	Clusters   away.Clusters
	IsFollowed bool
	// Attempt is the number of the only one that is wanted; 0 is the current one and those that follow.
	Attempt int32

	trial string // whose lines alone are printed; empty for all
	line  *progress.Line
	heads away.Heads
	// told is the last end that the server told of; it is nil without a server.
	told *away.End
}

// Print prints the output of a job. An interruption detaches.
func (o *Output) Print(ctx context.Context, object verbs.Object) error {
	if o.Attempt < 0 {
		return outcome.Errorf(outcome.Usage, "--attempt must not be negative; give 1 or more")
	}
	var err error
	if o.heads, err = o.Clusters.Find(); err != nil {
		return err
	}
	c, target, printed := o.Clusters.Console, kube.TargetOf(object), int32(0)
	o.line = c.Progress()
	defer o.line.Close()
	began := c.Clock.Now()
	err = c.Every(ctx, func() (bool, error) {
		isEnd, err := o.printNew(ctx, object, &printed)
		if isEnd || err != nil {
			return isEnd, err
		}
		return o.showWait(ctx, object, c.Clock.Now().Sub(began))
	})
	if ctx.Err() != nil {
		return outcome.Errorf(outcome.Detached, "detached; %s goes on\n  follow again:  %s\n  stop it:       %s", target,
			console.Again(object.GetNamespace(), "logs %s -f%s", target, o.flags()),
			console.Again(object.GetNamespace(), "job stop %s", target.Name))
	}
	return err
}

// flags returns the flags of what is printed, for a command that goes on.
func (o *Output) flags() string {
	if o.trial == "" {
		return ""
	}
	return " --trial " + o.trial
}

// showWait shows what a job without output waits for, and reports whether none will come.
func (o *Output) showWait(ctx context.Context, waiting verbs.Object, after time.Duration) (bool, error) {
	job, err := o.read(ctx, waiting)
	if err != nil {
		return false, err
	}
	in, err := o.Clusters.Objects.Around(ctx, job, o.Clusters.Console.Clock.Now())
	if err != nil && !errors.Is(err, kube.ErrNoPods) {
		return false, err
	}
	end, isOver := object.Judge(in, object.ForReady)
	if isOver && (end.Code == outcome.Refused || end.Code == outcome.Stopped) {
		o.line.Close()
		o.Clusters.Console.Note("%s has no output: it %s", kube.TargetOf(job), end.Text)
		return true, nil
	}
	o.line.Show(fmt.Sprintf("%s  %s", kube.TargetOf(job), console.Printable(progress.State(in))), after)
	return false, nil
}

// printNew prints the attempts that have come after the one that was printed last, and reports whether that is all.
func (o *Output) printNew(ctx context.Context, object verbs.Object, printed *int32) (bool, error) {
	for {
		job, err := o.read(ctx, object)
		if err != nil && *printed > 0 && o.told != nil && ends[o.told.Outcome] && isMissing(err) { // all of it was printed
			sayEnd(o.Clusters.Console, kube.TargetOf(object), o.told)
			return true, nil
		}
		if err != nil {
			return false, err
		}
		step := next(job, *printed, o.Attempt)
		switch {
		case step.attempt == nil && (step.isEnd || !o.IsFollowed):
			o.end(job, *printed)
			return true, nil
		case step.attempt == nil, o.IsFollowed && isGathering(job, step.attempt):
			return false, nil
		case *printed > 0:
			o.Clusters.Console.Note("attempt %d of job/%s", step.attempt.Number, job.Name)
		}
		o.line.Close()
		if err := o.printAttempt(ctx, job, *step.attempt); err != nil {
			return false, err
		}
		*printed = step.attempt.Number
		if !o.IsFollowed {
			return true, nil
		}
	}
}

// isGathering reports whether an attempt of a gang waits for its places, and no round of it has ended. Its start is that of its
// driver, which runs already.
func isGathering(job *v1beta1.ClusterJob, attempt *v1beta1.JobAttempt) bool {
	hasRun := job.Status.Gang != nil && job.Status.Gang.LastRestart != nil
	return job.Status.Phase == v1beta1.PhaseGathering && attempt.EndTime == nil && !hasRun
}

// end says why there was no output, where there was none.
func (o *Output) end(job *v1beta1.ClusterJob, printed int32) {
	if printed == 0 {
		o.Clusters.Console.Note("job/%s has no output: it is %s", job.Name, overview.Phase(job))
	}
}

// read reads the job again.
func (o *Output) read(ctx context.Context, object verbs.Object) (*v1beta1.ClusterJob, error) {
	found, err := o.Clusters.Objects.Read(ctx, kube.TargetOf(object))
	if err != nil {
		return nil, err
	}
	job, is := found.(*v1beta1.ClusterJob)
	if !is || job.UID != object.GetUID() {
		return nil, fmt.Errorf("%s %w", kube.TargetOf(object), errReplaced)
	}
	return job, nil
}

// printAttempt prints the output of one attempt from the head, or what the status keeps of it. Where the output breaks off, it
// reads the attempt again: a job's own cluster goes as soon as the job has ended.
func (o *Output) printAttempt(ctx context.Context, job *v1beta1.ClusterJob, attempt v1beta1.JobAttempt) error {
	out := &counter{out: o.Clusters.Console.Out}
	if o.trial != "" {
		out.out = linesOfTrial(out.out, o.trial)
	}
	head := patience{console: o.Clusters.Console, who: "the head", what: "job/" + job.Name,
		again: console.Again(job.Namespace, "logs job/%s -f", job.Name)}
	for {
		before := out.offset()
		err := o.stream(ctx, job, attempt, out)
		if out.offset() > before {
			head.silence.Broken()
		}
		switch {
		case err == nil || ctx.Err() != nil || isForbidden(err):
			return err
		case out.err != nil:
			return fmt.Errorf("print the output: %w", out.err)
		case attempt.EndTime != nil && (out.count == 0 || isLost(err) || !away.IsPassing(err)):
			return o.printKept(ctx, job, attempt, out, err)
		}
		if err := o.rest(ctx, &head, job, &attempt, err); err != nil {
			return err
		}
	}
}

// rest reads an attempt again whose output broke off, and waits until the next try; not where the attempt has ended by now,
// as the head may still have all of it.
func (o *Output) rest(ctx context.Context, head *patience, job *v1beta1.ClusterJob, attempt *v1beta1.JobAttempt, why error) error {
	wasOver := attempt.EndTime != nil // before it is read again
	isKnown := o.refresh(ctx, job, attempt)
	isUnsubmitted := isKnown && attempt.StartTime == nil && headclient.KindOf(why) == headclient.NotFound
	isLost := isKnown && attempt.EndTime == nil && headclient.KindOf(why) == headclient.Gone // Ray knows its end before the status
	switch {
	case !wasOver && attempt.EndTime != nil:
		return nil
	case isUnsubmitted: // the status names it before it is submitted
		return pause(ctx, o.Clusters.Console, console.Look)
	case away.IsPassing(why), isLost, isKnown && away.IsEnding(why):
		return head.rest(ctx, why)
	default:
		return fmt.Errorf("read the output of job/%s: %w", job.Name, kube.Because(why))
	}
}

// refresh reads the attempt again, and reports whether the job still has it.
func (o *Output) refresh(ctx context.Context, job *v1beta1.ClusterJob, attempt *v1beta1.JobAttempt) bool {
	now, err := o.read(ctx, job)
	if err != nil {
		return false
	}
	found := find(now, attempt.Number)
	if found == nil || found.SubmissionID != attempt.SubmissionID {
		return false
	}
	*attempt = *found
	return true
}

// stream prints what follows after what was printed.
func (o *Output) stream(ctx context.Context, job *v1beta1.ClusterJob, attempt v1beta1.JobAttempt, out *counter) error {
	notes := &notes{console: o.Clusters.Console, out: out}
	err := o.heads.ReadOutput(ctx, away.Output{Job: job, Attempt: attempt, Offset: out.offset(),
		IsFollowed: o.IsFollowed && attempt.EndTime == nil, Note: notes.take}, out)
	o.told = notes.end
	return err
}

// isForbidden reports whether somebody lacks a right, which no other output makes up for.
func isForbidden(err error) bool {
	var coded *outcome.Error
	return errors.As(err, &coded) && coded.Code == outcome.Refused
}
