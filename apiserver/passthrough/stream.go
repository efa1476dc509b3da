package passthrough

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/heliostat-dev/heliostat/portal/access"
)

// How the right to a watch is confirmed. A watch that cannot be is over after three rounds, which take at most 28 s.
const (
	confirmEach   = 8 * time.Second
	confirmWithin = 4 * time.Second
	maxUnanswered = 3
	// leaveWithin is how long a caller may take to read the end.
	leaveWithin = 5 * time.Second
)

// Why the context of a watch ends beside a Refusal.
var (
	errServerEnds = errors.New("the server ends")
	errAnswered   = errors.New("the watch is over")
)

// confirm asks again and again whether a watch's caller still has the right to it, and ends the watch otherwise.
func (p *Proxy) confirm(ctx context.Context, one *passing, end context.CancelCauseFunc) {
	ticker := p.clock.NewTicker(confirmEach)
	defer ticker.Stop()
	for unanswered := 0; ; {
		select {
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errAnswered) {
				p.hurry(one)
			}
			return
		case <-ticker.C():
		}
		err := p.ask(ctx, one.caller, one.request.attributes())
		if err != nil {
			unanswered++
		} else {
			unanswered = 0
		}
		if refusal := ends(err, unanswered); refusal != nil {
			end(refusal)
			p.hurry(one)
			return
		}
	}
}

func (p *Proxy) ask(ctx context.Context, caller *access.Caller, what authorizationv1.ResourceAttributes) error {
	ctx, cancel := context.WithTimeout(ctx, confirmWithin)
	defer cancel()
	return p.kubernetes.Confirm(ctx, caller, what)
}

// ends returns why a watch must end after an answer, and nil where it goes on.
func ends(err error, unanswered int) *Refusal {
	switch {
	case errors.Is(err, access.ErrUnauthorized):
		return refuse(http.StatusUnauthorized, "the watch ends: "+err.Error())
	case errors.Is(err, access.ErrForbidden):
		return refuse(http.StatusForbidden, "the watch ends: "+access.ErrForbidden.Error()+": ask for the right")
	case unanswered >= maxUnanswered:
		return refuse(http.StatusServiceUnavailable, "the watch ends: the API server did not confirm the caller's right to it: watch again")
	}
	return nil
}

// hurry lets a caller that does not read hold its watch for a moment only.
func (p *Proxy) hurry(one *passing) {
	_ = one.control.SetWriteDeadline(p.clock.Now().Add(leaveWithin)) // every server's connections have one
}

// guardAnswer puts the end of a watch into its answer.
func guardAnswer(answer *http.Response) error {
	ctx := answer.Request.Context()
	one := passingOf(ctx)
	if one == nil || !one.request.IsStream || answer.StatusCode != http.StatusOK {
		return nil
	}
	form, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	says := err == nil && form == "application/json" && answer.Header.Get("Content-Encoding") == ""
	answer.Body = &guarded{ReadCloser: answer.Body, ctx: ctx, says: says, whole: true}
	return nil
}

// guarded is the body of a watch. When the context ends for a reason of the server's, it ends as a watch does, with the
// reason as its last event where the form of the answer is one that this can be written in.
type guarded struct {
	io.ReadCloser
	ctx  context.Context
	says bool
	// whole is that no event was begun that has not ended.
	whole bool
	last  []byte
	over  bool
}

// Read implements io.Reader.
func (g *guarded) Read(into []byte) (int, error) {
	if g.over {
		n := copy(into, g.last)
		if g.last = g.last[n:]; n > 0 {
			return n, nil
		}
		return 0, io.EOF
	}
	n, err := g.ReadCloser.Read(into)
	if n > 0 {
		g.whole = into[n-1] == '\n'
		return n, nil // an error comes back at the next read
	}
	var refusal *Refusal
	cause := context.Cause(g.ctx)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case errors.As(cause, &refusal):
		if g.says && g.whole {
			g.last = lastEvent(refusal)
		}
	case !errors.Is(cause, errServerEnds):
		return n, err
	}
	g.over = true
	return g.Read(into)
}

// lastEvent returns an event of a watch that holds a refusal.
func lastEvent(refusal *Refusal) []byte {
	event, err := json.Marshal(map[string]any{"type": "ERROR", "object": refusal.status()})
	if err != nil { // a Status always marshals
		return nil
	}
	return append(event, '\n')
}
