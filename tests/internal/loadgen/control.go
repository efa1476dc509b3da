package loadgen

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Began is the answer to a line that begins a phase.
type Began struct {
	Phase string    `json:"phase"`
	Begin time.Time `json:"begin"`
}

// Obey reads lines and answers each with one line of JSON: "phase NAME" with a Began,
// "report" with a Report of all so far. It returns when it reads "end", or nothing more. It
// fails on a line that is none of these, and where it cannot read or write.
func (l *Ledger) Obey(in io.Reader, out io.Writer, now func() time.Time) error {
	answers := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var answer any
		verb, name, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		switch {
		case verb == "phase" && name != "":
			at := now()
			l.Phase(name, at)
			answer = Began{Phase: name, Begin: at}
		case verb == "report" && name == "":
			answer = l.Report(now())
		case verb == "end" && name == "":
			return nil
		default:
			return fmt.Errorf("read a line: %q is not \"phase NAME\", \"report\" or \"end\"", lines.Text())
		}
		if err := answers.Encode(answer); err != nil {
			return fmt.Errorf("answer %q: %w", lines.Text(), err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read lines: %w", err)
	}
	return nil
}
