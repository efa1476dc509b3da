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
)

// Serve returns this conversation as one about Serve.
func (j *Jobs) Serve() *Serve { return &Serve{j.conversation} }

// ReplicaLog passes a log of Serve on as it is, from an offset in bytes, and the token where a replica wrote that. It
// returns how many bytes it passed on, also when it fails.
//
// As with Log, Ray reads all of the file each time. Gone is that it ends before the offset, as after its rotation, and
// NotFound that there is no such file, or its node is gone.
func (s *Serve) ReplicaLog(ctx context.Context, log Log, offset int64, into io.Writer) (int64, error) {
	act := "read the log " + text([]byte(log.File))
	node, err := ParseNodeID(log.Node)
	switch {
	case err != nil:
		return 0, s.fail(Invalid, act, err)
	case !sendableFile(log.File):
		return 0, s.fail(Invalid, act, errors.New("that is no path below the log directory"))
	case offset < 0:
		return 0, s.fail(Invalid, act, errNegative)
	}
	out := &behind{into: into, skip: offset}
	_, err = s.ask(ctx, question{
		act: act, method: http.MethodGet, path: "/api/v0/logs/file", into: out, limit: math.MaxInt64, flows: true, judge: judgeLog,
		query: url.Values{
			"node_id": {node.String()}, "filename": {log.File}, "lines": {"-1"}, "timeout": {strconv.Itoa(logTime)},
		},
	})
	switch {
	case out.failure != nil:
		return out.passed, fmt.Errorf("pass on the log %s: %w", text([]byte(log.File)), out.failure)
	case err == nil && out.skip > 0:
		err = s.fail(Gone, act, errShort)
	}
	return out.passed, err
}
