package headclient

import (
	"context"
	_ "embed" // for the program
	"errors"
	"fmt"
	"strings"
	"time"
)

// closeKept is what a job runs to have proxies end the connections that clients keep: each
// gets "Connection: close" with its next answer, so that no client finds it closed under a
// request. Serve's proxy has no such thing of its own: seen in Ray 2.60, where it stays as long as
// its node. The connections of uvicorn, which the proxy is made of, are found in its process. HAProxy
// is told by a reload: a new process takes what is new, and the old one, which Serve configures with
// idle-close-on-response, answers once more on each connection that it has. The gRPC servers of proxies that leave are
// stopped: each channel gets a GOAWAY, what is in flight goes on, and the client opens a channel elsewhere.
//
//go:embed closekept.py
var closeKept string

// Closing is one time that connections are closed.
type Closing struct {
	// ID is the job's.
	ID string
	// Leaving are the addresses of the pods whose proxies leave, without ports.
	Leaving []string
	// Grace is how long gRPC calls that are in flight there may go on.
	Grace time.Duration
}

// entrypoint returns the command of the job.
func (c Closing) entrypoint() string {
	return fmt.Sprintf("exec python -c '%s' %g %s", strings.TrimSpace(closeKept), c.Grace.Seconds(), strings.Join(c.Leaving, " "))
}

// CloseKept has Serve's proxies end the connections that clients keep, each after the next
// answer, ends the gRPC channels of those that leave, and reports whether that was done or failed for good. It runs a job
// of this ID, at most
// one; asking again before it is over is asking once. A job that is over is forgotten, because a cluster
// that stays would gather one for each worker that leaves. New connections are kept as before: nobody must
// be led there any more.
func (s *Serve) CloseKept(ctx context.Context, closing Closing) (bool, error) {
	jobs := &Jobs{s.conversation}
	job, err := jobs.Job(ctx, closing.ID)
	var failure *Error
	switch {
	case err == nil && !job.Status.Over():
		return false, nil
	case err == nil:
		_ = jobs.Forget(ctx, closing.ID) // what the head keeps of it then does no harm, and a second run would be worse
		return true, nil
	case !errors.As(err, &failure) || failure.Kind != NotFound:
		return false, err
	}
	err = jobs.Submit(ctx, Submission{ID: closing.ID, Entrypoint: closing.entrypoint()})
	if KindOf(err) == Exists {
		err = nil // it was there after all
	}
	return false, err
}
