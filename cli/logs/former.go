package logs

import (
	"context"
	"errors"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// errReplaced is that another object has the name of one that was deleted.
var errReplaced = errors.New("was deleted, and another object has its name")

// isMissing reports whether an object is not there any more.
func isMissing(err error) bool {
	return outcome.Code(err) == outcome.Usage || errors.Is(err, errReplaced)
}

// isLost reports whether the server knows that the rest of an output is nowhere.
func isLost(err error) bool {
	var broken *away.BrokenError
	return errors.As(err, &broken) && broken.End.Code == reason.OutputGone.Code
}

// ends are the outcomes of a job that is over.
var ends = map[string]bool{"Succeeded": true, "Failed": true, "Stopped": true}

// notes says on standard error what the server says of an output, and has a counter go on behind what is missing.
type notes struct {
	console *console.Console
	out     *counter
	// end is the last one; it is nil before it.
	end *away.End
}

// take takes an event without data.
func (n *notes) take(event away.Event) {
	switch {
	case event.End != nil:
		n.end = event.End
	case event.Notice != nil:
		n.console.Note("%s", event.Notice.Message)
		if event.Notice.Missing != nil {
			n.out.skipped = max(n.out.skipped, event.Offset-n.out.count)
		}
	}
}

// sayEnd says how a job ended whose status nobody has read.
func sayEnd(c *console.Console, target kube.Target, end *away.End) {
	switch {
	case end == nil || !ends[end.Outcome]:
	case end.Message == "":
		c.Note("%s ended: %s", target, end.Outcome)
	default:
		c.Note("%s ended: %s (%s)", target, end.Outcome, end.Message)
	}
}

// formerOutput is the output of a job that is gone, or of an earlier one of its name.
type formerOutput struct {
	console *console.Console
	server  *away.History
	of      away.FormerOutput
	trial   string
}

// print prints the output as it is kept, to its end.
func (f *formerOutput) print(ctx context.Context) error {
	if f.of.Process != "" && f.of.Round == 0 {
		newest, err := f.server.NewestRound(ctx, f.of)
		if err != nil {
			return err
		}
		if newest == 0 {
			return outcome.Errorf(outcome.Failed, "nothing is kept of %s of %s; see %s", f.of.Process, f.of.Target,
				console.Again(f.of.Namespace, "history files %s", f.of.Target))
		}
		f.of.Round = newest
	}
	out := &counter{out: f.console.Out}
	if f.trial != "" {
		out.out = linesOfTrial(out.out, f.trial)
	}
	notes := &notes{console: f.console, out: out}
	read := func(ctx context.Context, offset int64, sink away.Sink) error {
		f.of.Offset = offset
		return f.server.ReadFormer(ctx, f.of, sink)
	}
	err := readAll(ctx, notes, f.of.Target.String(), f.again(), read)
	if ctx.Err() != nil {
		return outcome.Errorf(outcome.Detached, "detached; print it again: %s", f.again())
	}
	if err == nil {
		sayEnd(f.console, f.of.Target, notes.end)
	}
	return err
}

// again is the command that prints the output.
func (f *formerOutput) again() string {
	line := "logs " + f.of.Target.String()
	if f.of.UID != "" {
		line += " --uid " + f.of.UID
	}
	return console.Again(f.of.Namespace, "%s", line)
}

// readAll reads something that is kept to its end, and goes on behind what was printed where the server is lost.
func readAll(ctx context.Context, notes *notes, what, again string, read func(context.Context, int64, away.Sink) error) error {
	out := notes.out
	server := patience{console: notes.console, who: "the server", what: what, again: again}
	for {
		before := out.offset()
		err := read(ctx, before, func(event away.Event) error {
			notes.take(event)
			_, err := out.Write(event.Data)
			return err
		})
		if out.offset() > before {
			server.silence.Broken()
		}
		var broken *away.BrokenError
		switch {
		case out.err != nil:
			return outcome.Errorf(outcome.Failed, "print %s: %w", what, out.err)
		case err == nil, ctx.Err() != nil, errors.As(err, &broken), !away.IsPassing(err):
			return err
		}
		if err := server.rest(ctx, err); err != nil {
			return err
		}
	}
}
