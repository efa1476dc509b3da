package headclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// logTime is after how many seconds Ray ends the answer with a log. Without it that would be
// 30, which a large log may take, or a reader that takes its time.
const logTime = 600

// Log passes a job's output on as it is, from an offset in bytes: all that its driver wrote,
// with Ray's own lines in it, and the token where the job printed that. It returns how many
// bytes it passed on, also when it fails: the next offset is behind them.
//
// Ray cannot begin in the middle, so all of the log is read, and what is before the offset is
// dropped here. Only a part is held at a time, however large the log is; one that never ends
// is ended by the context or by the writer. Meanwhile other calls of this conversation wait.
//
// Ray 2.52 gives a cluster with a token the output as a text only: a carriage return is an end
// of a line there, and an output that is no UTF-8 is Unsupported.
//
// Before the driver began there is no output. Gone tells that the output went with its node,
// that its file was deleted, or that it ends before the offset. What the writer fails with is
// wrapped and is no *Error; the conversation is then used up.
func (j *Jobs) Log(ctx context.Context, id string, offset int64, into io.Writer) (int64, error) {
	act := "read the output of job " + text([]byte(id))
	if offset < 0 {
		return 0, j.fail(Invalid, act, errNegative)
	}
	job, node, err := j.job(ctx, id)
	if err != nil {
		return 0, err
	}
	out := &behind{into: into, skip: offset}
	if err = j.output(ctx, driver{act, id, node}, out); errors.Is(err, errNoFile) && !job.Status.Over() && offset == 0 {
		err = nil // a driver's node is told before its log is made
	}
	return out.passed, err
}

// Why an output is not there, or not now, or an offset is Invalid.
var (
	errNegative = errors.New("the offset is before the beginning")
	errNoFile   = errors.New("its file is not there")
	errNoNode   = errors.New("the node that has its file is not there")
	errSilent   = errors.New("the node that has its file does not answer")
	errShort    = errors.New("it ends before the offset")
	errAnother  = errors.New("it is of another job, which has the same ID")
)

// driver is whose output is read, what for, and where it ran; nowhere before it began.
type driver struct {
	act, id string
	node    NodeID
}

// file is what Ray calls the file with its output.
func (d driver) file() string { return "job-driver-" + d.id + ".log" }

// output passes the output of a driver on, from its node.
func (j *Jobs) output(ctx context.Context, d driver, out *behind) error {
	if d.node == (NodeID{}) {
		return j.end(d, out)
	}
	var said string
	_, err := j.ask(ctx, question{
		act: d.act, method: http.MethodGet, path: "/api/v0/logs/file", into: out, limit: math.MaxInt64, flows: true,
		query: url.Values{
			"node_id": {d.node.String()}, "filename": {d.file()},
			"lines": {"-1"}, "timeout": {strconv.Itoa(logTime)},
		},
		judge: func(status int, words string) (Kind, string) {
			if status == http.StatusInternalServerError {
				said = words
			}
			return judge(status, words)
		},
	})
	kind, why := lost(said)
	switch {
	case out.failure != nil:
		return fmt.Errorf("pass on the output of job %s: %w", d.id, out.failure)
	case why != nil:
		return j.fail(kind, d.act, why)
	case strings.Contains(said, "StatusCode.UNAUTHENTICATED"):
		err = j.text(ctx, d, out)
	case strings.Contains(said, "Server got itself in trouble"):
		err = nil // what Ray 2.52 says of an empty file
	}
	if err == nil && out.seen == 0 {
		err = j.find(ctx, d)
	}
	if err != nil {
		return err
	}
	return j.end(d, out)
}

// end reports whether an output reached to the offset.
func (j *Jobs) end(d driver, out *behind) error {
	if out.skip > 0 {
		return j.fail(Gone, d.act, errShort)
	}
	return nil
}

// find reports whether the file of an output is there. A file that is not is now and then
// given as if it were empty.
func (j *Jobs) find(ctx context.Context, d driver) error {
	files, err := j.files(ctx, d.node, d.file(), silentAfter)
	if err != nil {
		return err
	}
	if slices.Contains(files, d.file()) {
		return nil
	}
	return j.fail(Gone, d.act, errNoFile)
}

// textPatience is how many timeouts the text of an output may take to begin: Ray reads all of
// it first, 20 MB in 0.8 s.
const textPatience = 12

// text passes an output on as Ray 2.52 gives it, whose dashboard does not tell the agents of
// nodes its own token when it asks them for a file.
func (j *Jobs) text(ctx context.Context, d driver, out *behind) error {
	said := &quoted{into: out, isExact: true}
	_, err := j.ask(ctx, question{
		act: d.act, method: http.MethodGet, path: "/api/jobs/" + d.id + "/logs", into: said, limit: math.MaxInt64, flows: true,
		patience: textPatience,
		judge: func(status int, words string) (Kind, string) {
			if strings.Contains(words, "UnicodeDecodeError") {
				return Unsupported, "it is no UTF-8, and this Ray gives texts alone"
			}
			return judge(status, words)
		},
	})
	switch {
	case out.failure != nil:
		return fmt.Errorf("pass on the output of job %s: %w", d.id, out.failure)
	case err != nil:
		return err
	case said.quotes != 4: // of a name and a text
		return j.fail(Protocol, d.act, errors.New("the answer is not the JSON that Ray gives"))
	}
	return nil
}

// lost sorts what Ray says of a log that it cannot give; nil is anything else.
func lost(said string) (Kind, error) {
	for _, known := range []struct {
		words string
		kind  Kind
		why   error
	}{
		{"A file is not found at", Gone, errNoFile},
		{"Agent for node id", Gone, errNoNode},
		{"Failed to query the data source", Unavailable, errSilent},
		{"StatusCode.UNAVAILABLE", Unavailable, errSilent},
		{"StatusCode.DEADLINE_EXCEEDED", Timeout, errSilent},
	} {
		if strings.Contains(said, known.words) {
			return known.kind, known.why
		}
	}
	return "", nil
}
