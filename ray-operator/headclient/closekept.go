package headclient

import (
	"context"
	_ "embed" // for the program
	"errors"
	"strings"
)

// closeKept is what a job runs to have proxies end the connections that clients keep: each
// gets "Connection: close" with its next answer, so that no client finds it closed under a
// request. Serve's proxy has no such thing of its own: seen in Ray 2.60, where it stays as long as
// its node. The connections of uvicorn, which the proxy is made of, are found in its process. HAProxy
// is told by a reload: a new process takes what is new, and the old one, which Serve configures with
// idle-close-on-response, answers once more on each connection that it has.
//
//go:embed closekept.py
var closeKept string

// CloseKept has Serve's proxies end the connections that clients keep, each after the next
// answer, and reports whether that was done or failed for good. It runs a job of this ID, at most
// one; asking again before it is over is asking once. A job that is over is forgotten, because a cluster
// that stays would gather one for each worker that leaves. New connections are kept as before: nobody must
// be led there any more.
func (s *Serve) CloseKept(ctx context.Context, id string) (bool, error) {
	jobs := &Jobs{s.conversation}
	job, err := jobs.Job(ctx, id)
	var failure *Error
	switch {
	case err == nil && !job.Status.Over():
		return false, nil
	case err == nil:
		_ = jobs.Forget(ctx, id) // what the head keeps of it then does no harm, and a second run would be worse
		return true, nil
	case !errors.As(err, &failure) || failure.Kind != NotFound:
		return false, err
	}
	err = jobs.Submit(ctx, Submission{ID: id, Entrypoint: "exec python -c '" + strings.TrimSpace(closeKept) + "'"})
	if KindOf(err) == Exists {
		err = nil // it was there after all
	}
	return false, err
}
