package logs

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// checkTrial refuses the number of a trial that a job cannot have.
func checkTrial(found verbs.Object, trial string) error {
	if number, err := strconv.Atoi(trial); err != nil || number < 0 || strconv.Itoa(number) != trial {
		return outcome.Errorf(outcome.Usage, "--trial %q names no trial; give a number from 0 on", trial)
	}
	if job, is := found.(*v1beta1.ClusterJob); !is || job.Spec.Tune == nil {
		return outcome.Errorf(outcome.Usage, "%s has no trials, as it has no spec.tune; leave out --trial", kube.TargetOf(found))
	}
	return nil
}

// trialLines passes on the lines of one trial: what its processes have written, and what the launcher says of it. The launcher ends
// each line, and divides those above 1 MiB.
type trialLines struct {
	out      io.Writer
	prefixes [][]byte
	line     []byte // the beginning of a line whose end is to come
}

func linesOfTrial(out io.Writer, trial string) *trialLines {
	t := &trialLines{out: out}
	for _, form := range []string{"[%s] ", "[%s ", "gang: trial %s: "} {
		t.prefixes = append(t.prefixes, fmt.Appendf(nil, form, trial))
	}
	return t
}

// Write implements io.Writer.
func (t *trialLines) Write(part []byte) (int, error) {
	for line := range bytes.Lines(part) {
		t.line = append(t.line, line...)
		if t.line[len(t.line)-1] != '\n' {
			break
		}
		whole := t.line
		t.line = t.line[:0]
		for _, prefix := range t.prefixes {
			if !bytes.HasPrefix(whole, prefix) {
				continue
			}
			if _, err := t.out.Write(whole); err != nil {
				return 0, fmt.Errorf("print a line of a trial: %w", err)
			}
			break
		}
	}
	return len(part), nil
}
