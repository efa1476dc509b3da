package headclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
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
	if err = j.output(ctx, act, job, node, out); errors.Is(err, errNoFile) && !job.Status.Over() && offset == 0 {
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

// output passes the output of a job's driver on, from the driver's node.
func (j *Jobs) output(ctx context.Context, act string, job Job, node NodeID, out *behind) error {
	if node == (NodeID{}) {
		return out.end(j, act)
	}
	var said string
	_, err := j.ask(ctx, question{
		act: act, method: http.MethodGet, path: "/api/v0/logs/file", into: out, limit: math.MaxInt64, flows: true,
		query: url.Values{
			"node_id": {node.String()}, "filename": {"job-driver-" + job.ID + ".log"},
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
		return fmt.Errorf("pass on the output of job %s: %w", job.ID, out.failure)
	case why != nil:
		return j.fail(kind, act, why)
	case strings.Contains(said, "StatusCode.UNAUTHENTICATED"):
		return j.text(ctx, act, job, out)
	case strings.Contains(said, "Server got itself in trouble") && j.isEmpty(ctx, job):
		return out.end(j, act)
	case err != nil:
		return err
	}
	return out.end(j, act)
}

// textPatience is how many timeouts the text of an output may take to begin: Ray reads all of
// it first, 20 MB in 0.8 s.
const textPatience = 12

// text passes an output on as Ray 2.52 gives it, whose dashboard does not tell the agents of
// nodes its own token when it asks them for a file.
func (j *Jobs) text(ctx context.Context, act string, job Job, out *behind) error {
	said := &quoted{into: out, isExact: true}
	_, err := j.ask(ctx, question{
		act: act, method: http.MethodGet, path: "/api/jobs/" + job.ID + "/logs", into: said, limit: math.MaxInt64, flows: true,
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
		return fmt.Errorf("pass on the output of job %s: %w", job.ID, out.failure)
	case err != nil:
		return err
	case said.quotes != 4: // of a name and a text
		return j.fail(Protocol, act, errors.New("the answer is not the JSON that Ray gives"))
	}
	return out.end(j, act)
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

// isEmpty asks for a log in another way. Ray 2.52 breaks on an empty file.
func (j *Jobs) isEmpty(ctx context.Context, job Job) bool {
	answer, err := j.ask(ctx, question{act: "look for an output", method: http.MethodGet, path: "/api/jobs/" + job.ID + "/logs"})
	if err != nil {
		return false
	}
	var reply struct {
		Logs *string `json:"logs"`
	}
	return decode(answer.body, &reply) == nil && reply.Logs != nil && *reply.Logs == ""
}
