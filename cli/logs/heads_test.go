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

// unreliable is a way to heads that is lost after each line, and then for good.
type unreliable struct {
	away.Heads // nothing else is asked
	text       string
	isGone     bool
	offsets    []int64
}

// ReadOutput implements away.Heads.
func (u *unreliable) ReadOutput(_ context.Context, of away.Output, out io.Writer) error {
	u.offsets = append(u.offsets, of.Offset)
	line, _, _ := strings.Cut(u.text[of.Offset:], "\n")
	if line == "" && !u.isGone {
		return nil
	}
	if line != "" {
		fmt.Fprintln(out, line)
	}
	return errors.New("ask the server https://heliostat: connection refused")
}

func TestOutput_GoesOnWhereTheServerWasLost(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		for name, isGone := range map[string]bool{"it comes back": false, "it is gone": true} {
			lost := &unreliable{text: "one\ntwo\n", isGone: isGone}
			of := Output{Clusters: away.Clusters{Console: b.console, Objects: b.objects}, IsFollowed: true, heads: lost}
			job := &v1beta1.ClusterJob{}
			job.Namespace, job.Name = "team-a", "train"
			before, began := len(b.out.String()), b.console.Clock.Now()
			err := of.printAttempt(t.Context(), job, v1beta1.JobAttempt{Number: 1})
			if got := b.out.String()[before:]; got != lost.text || fmt.Sprint(lost.offsets[:3]) != "[0 4 8]" {
				t.Errorf("%s: it prints %q from %v", name, got, lost.offsets)
			}
			if !isGone && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			took := b.console.Clock.Now().Sub(began)
			if isGone && (outcome.Code(err) != outcome.Failed || took < console.Patience ||
				!strings.Contains(fmt.Sprint(err), "heliostat logs job/train -f -n team-a")) {
				t.Errorf("%s: after %s it ends with %d: %v", name, took, outcome.Code(err), err)
			}
		}
		if said := b.said.String(); !strings.Contains(said, "connection refused; trying for 5m0s") {
			t.Errorf("it says %q", said)
		}
	})
}
