package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func TestReadAll_GoesOnBehindMissingRanges(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		var offsets []int64
		lost := errors.New("connection reset")
		read := func(_ context.Context, offset int64, sink away.Sink) error {
			offsets = append(offsets, offset)
			var events []away.Event
			var err error
			switch len(offsets) {
			case 1:
				events, err = []away.Event{{Offset: 4, Data: []byte("one\n")}, {Offset: 104, Notice: &away.Notice{Message: "100 bytes\x1b[2J are missing",
					Missing: &away.Missing{Offset: 4, Length: 100}}}}, lost
			case 2:
				err = lost
			default:
				events = []away.Event{{Offset: 108, Data: []byte("two\n")}, {Offset: 108, End: &away.End{Outcome: "Failed"}}}
			}
			for _, one := range events {
				if err := sink(one); err != nil {
					return err
				}
			}
			return err
		}
		notes := &notes{console: b.console, out: &counter{out: &b.out}}
		if err := readAll(t.Context(), notes, "job/a", "again", read); err != nil {
			t.Fatal(err)
		}
		if b.out.String() != "one\ntwo\n" || fmt.Sprint(offsets) != "[0 104 104]" || notes.end.Outcome != "Failed" {
			t.Errorf("it prints %q from %v and ends with %+v", b.out.String(), offsets, notes.end)
		}
		if said := b.said.String(); !strings.Contains(said, "100 bytes [2J are missing\n") || strings.Count(said, "does not answer") != 1 {
			t.Errorf("it says %q", said)
		}
	})
}

func TestReadAll_EndsWhereNothingMoreComes(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		for name, c := range map[string]struct {
			why  error
			code int
		}{
			"broken":  {&away.BrokenError{End: away.End{Outcome: "Broken", Message: "nobody knows"}}, outcome.Failed},
			"refused": {outcome.Errorf(outcome.Refused, "no right"), outcome.Refused},
			"away":    {errors.New("connection refused"), outcome.Failed},
		} {
			began := b.console.Clock.Now()
			err := readAll(t.Context(), &notes{console: b.console, out: &counter{out: &b.out}}, "job/a", "heliostat logs job/a",
				func(context.Context, int64, away.Sink) error { return c.why })
			took := b.console.Clock.Now().Sub(began)
			if outcome.Code(err) != c.code || !errors.Is(err, c.why) || (took >= console.Patience) != (name == "away") {
				t.Errorf("%s: after %s it ends with %d: %v", name, took, outcome.Code(err), err)
			}
		}
	})
}

// noted is a way to heads by which the server tells of a missing range, and then that the rest is lost.
type noted struct {
	away.Heads // nothing else is asked
	offsets    []int64
}

// ReadOutput implements away.Heads.
func (n *noted) ReadOutput(_ context.Context, of away.Output, _ io.Writer) error {
	n.offsets = append(n.offsets, of.Offset)
	if len(n.offsets) == 1 {
		of.Note(away.Event{Offset: 7, Notice: &away.Notice{Message: "7 bytes are missing", Missing: &away.Missing{Length: 7}}})
		return errors.New("connection reset")
	}
	return &away.BrokenError{End: away.End{Outcome: "Broken", Code: "OutputGone", Message: "the head is gone"}}
}

func TestOutput_PrintsLastLinesWhereTheServerHasLostTheRest(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		lost := &noted{}
		of := Output{Clusters: away.Clusters{Console: b.console, Objects: b.objects}, heads: lost}
		job := &v1beta1.ClusterJob{}
		job.Namespace, job.Name = "team-a", "train"
		now := v1beta1.JobAttempt{Number: 1, LogState: v1beta1.LogTruncated, LastLines: []string{"last"}}
		if err := of.rest(t.Context(), &patience{console: b.console}, job, &now, errors.New("connection reset")); err != nil {
			t.Fatal(err)
		}
		out := &counter{out: &b.out}
		if err := of.stream(t.Context(), job, now, out); err == nil || out.offset() != 7 {
			t.Errorf("after %v it goes on at %d", err, out.offset())
		}
		err := of.stream(t.Context(), job, now, out)
		if !isLost(err) || fmt.Sprint(lost.offsets) != "[0 7]" {
			t.Fatalf("it ends with %v from %v", err, lost.offsets)
		}
		if err := of.printKept(t.Context(), job, now, out, err); err != nil || b.out.String() != "last\n" ||
			!strings.Contains(b.said.String(), "heliostat logs job/train --attempt 1 -n team-a --server URL") {
			t.Errorf("it prints %q: %v, %s", b.out.String(), err, b.said.String())
		}
	})
}
