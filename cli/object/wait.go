package object

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/progress"
)

func wait(c *console.Console) *cobra.Command {
	w := Wait{Console: c}
	command := &cobra.Command{
		Use:   "wait KIND/NAME",
		Short: "Wait until an object is ready or a job has ended, and show the progress",
		Long: `Wait until a cluster or service is ready, a job has ended, or a schedule starts jobs. On a terminal, one line shows the progress
and the reason for the wait. Elsewhere, the command prints a line for each change.

Exit code: 0 ready or succeeded; 1 failed; 3 stopped or suspended; 4 timed out; 5 refused by the operator.
Ctrl-C ends the wait and nothing else.`,
		Example: "  heliostat wait job/train --timeout 2h\n  heliostat wait cluster/dev --for suspended",
		Args:    console.Arguments(1, 1, "KIND/NAME"), ValidArgsFunction: Complete(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			if goals := []string{ForReady, ForSuspended}; !slices.Contains(goals, w.Goal) {
				return outcome.Errorf(outcome.Usage, "--for %q is no goal; %s", w.Goal, spelling.Remedy(w.Goal, goals))
			}
			objects, found, err := each(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			w.Objects = objects
			return w.Until(cmd.Context(), found[0])
		},
	}
	command.Flags().StringVar(&w.Goal, "for", ForReady, "state to wait for: ready (for a job, its end) or suspended")
	console.AddDuration(command.Flags(), &w.Timeout, "timeout", "how long to wait; 0 waits without a limit")
	return command
}

// Wait is a wait for one object.
type Wait struct {
	Console *console.Console
	Objects *kube.Objects
	// Goal is ForReady or ForSuspended.
	Goal string
	// Timeout is how long at most; 0 is for ever.
	Timeout time.Duration
}

// Until waits for an object and says how that ended: on standard error, and by the error. An interruption detaches: it says
// how to wait again and how to stop the object.
func (w *Wait) Until(ctx context.Context, object verbs.Object) error {
	target, line := kube.TargetOf(object), w.Console.Progress()
	began := w.Console.Clock.Now()
	var silence console.Silence
	var end Ending
	err := w.Console.Every(ctx, func() (isOver bool, err error) {
		after := w.Console.Clock.Now().Sub(began)
		end, isOver, err = w.look(ctx, object, line, after)
		if err = w.bear(ctx, err, &silence, target); err == nil && !silence.IsOver() {
			line.Show("the API server does not answer; asking again for 5m", after)
		}
		if err == nil && !isOver && w.Timeout > 0 && after >= w.Timeout {
			err = outcome.Errorf(outcome.Timeout, "%s is not %s after %s; it goes on: %s", target, w.Goal, w.Timeout,
				console.Again(w.Objects.Namespace, "why %s", target))
		}
		return isOver, err
	})
	line.Close()
	switch {
	case ctx.Err() != nil:
		return w.detach(target)
	case err != nil:
		return err
	case end.Code != outcome.Done:
		return outcome.Errorf(end.Code, "%s %s", target, end.Text)
	}
	w.Console.Note("%s %s", target, end.Text)
	return nil
}

// bear takes a failure to look that may pass as a silence, until that lasts too long.
func (w *Wait) bear(ctx context.Context, err error, silence *console.Silence, target kube.Target) error {
	now := w.Console.Clock.Now()
	switch {
	case err == nil:
		silence.Broken()
		return nil
	case ctx.Err() != nil || !kube.IsPassing(err):
		return err
	}
	silence.IsNew(now)
	if silence.IsTooLong(now) {
		return fmt.Errorf("%w; wait again: %s", err, console.Again(w.Objects.Namespace, "wait %s", target))
	}
	return nil
}

// look reads the object again and shows how far it is.
func (w *Wait) look(ctx context.Context, object verbs.Object, line *progress.Line, after time.Duration) (Ending, bool, error) {
	target := kube.TargetOf(object)
	found, err := w.Objects.Read(ctx, target)
	if err != nil {
		var coded *outcome.Error
		if errors.As(err, &coded) && coded.Code == outcome.Usage {
			return Ending{outcome.Failed, "was deleted"}, true, nil
		}
		return Ending{}, false, err
	}
	if found.GetUID() != object.GetUID() {
		return Ending{outcome.Failed, "was deleted, and another one has its name"}, true, nil
	}
	in, err := w.Objects.Around(ctx, found, w.Console.Clock.Now())
	if err != nil && !errors.Is(err, kube.ErrNoPods) {
		return Ending{}, false, err
	}
	end, isOver := Judge(in, w.Goal)
	if !isOver {
		line.Show(fmt.Sprintf("%s  %s", target, console.Printable(progress.State(in))), after)
	}
	return end, isOver, nil
}

// detach says that nothing else ended, how to come back, and how to stop the object.
func (w *Wait) detach(target kube.Target) error {
	stop := fmt.Sprintf("suspend %s", target)
	if target.Kind.Word == kube.Job.Word {
		stop = "job stop " + target.Name
	}
	return outcome.Errorf(outcome.Detached, "detached; %s goes on\n  wait again:  %s\n  stop it:     %s", target,
		console.Again(w.Objects.Namespace, "wait %s", target), console.Again(w.Objects.Namespace, "%s", stop))
}
