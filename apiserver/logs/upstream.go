package logs

import (
	"context"
	"time"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// How long an output is left alone: firstPause after something new, up to lastPause while there is nothing.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 2 * time.Second
)

// inlet is what a head's answer is written into.
type inlet struct {
	ctx    context.Context //nolint:containedctx // io.Writer hands none on
	output *output
	mask   mask
}

// Write adds a part of the answer to the output, without the token.
func (i *inlet) Write(part []byte) (int, error) {
	if err := i.output.write(i.ctx, i.mask.pass(part)); err != nil {
		return 0, err
	}
	return len(part), nil
}

// readHead reads an output from its head until the job is over, the last reader has left, or the head fails.
func readHead(ctx context.Context, o *output) {
	job, err := follow(ctx, o)
	o.logs.settle(ctx, o, verdict{job: job, isOver: err == nil, err: err})
}

// follow looks at an output again and again, in one conversation. Each look makes the head send all of it, and what is
// kept already is dropped.
func follow(ctx context.Context, o *output) (job headclient.Job, err error) {
	c, err := o.logs.settings.Heads.Converse(ctx, o.key.head)
	if err != nil {
		return job, o.logs.explain(ctx, err)
	}
	defer func() { _ = c.Close() }() // nothing more is asked
	in := &inlet{ctx: ctx, output: o, mask: mask{token: []byte(c.Token())}}
	if o.key.log != (headclient.Log{}) {
		return job, o.logs.explain(ctx, c.Explain(followReplica(ctx, o, c, in)))
	}
	return followJob(ctx, o, c, in)
}

// followReplica looks at the log of a replica, which has no end.
func followReplica(ctx context.Context, o *output, c *heads.Conversation, in *inlet) error {
	for pause := firstPause; ; {
		begin := o.begin()
		in.mask.begin()
		if _, err := c.Serve().ReplicaLog(ctx, o.key.log, begin, in); err != nil {
			return err
		}
		o.note(headclient.Look{})
		if pause = min(2*pause, lastPause); o.size() > begin {
			pause = firstPause
		}
		if err := rest(ctx, o, pause); err != nil {
			return err
		}
	}
}

// followJob looks at the output of a job until that is over.
func followJob(ctx context.Context, o *output, c *heads.Conversation, in *inlet) (job headclient.Job, err error) {
	at := headclient.Place{ID: o.key.id}
	wasOver := false
	for pause := firstPause; ; {
		at.Offset = o.begin()
		in.mask.begin()
		look, err := c.Look(ctx, at, in)
		if look.Job.ID != "" {
			job, at.Start = look.Job, look.Job.Start
		}
		if err != nil {
			return job, o.logs.explain(ctx, c.Explain(err))
		}
		if look.Awaits == nil && (wasOver || !look.MayGrow) {
			return job, o.logs.explain(ctx, o.write(ctx, in.mask.rest()))
		}
		o.note(look)
		wasOver = job.Status.Over()
		if pause = min(2*pause, lastPause); o.size() > at.Offset {
			pause = firstPause
		}
		if err := rest(ctx, o, pause); err != nil {
			return job, o.logs.explain(ctx, err)
		}
	}
}

// explain returns why a look failed, if it did: that the server ends, or the failure as it is.
func (l *Logs) explain(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && l.life.Err() != nil {
		return errEnds
	}
	return err
}

// size is how much of the output is known.
func (o *output) size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end
}

// rest spares the head for a while. A reader that waits for a look shortens that, but never below what the size of the
// output asks for.
func rest(ctx context.Context, o *output, pause time.Duration) error {
	least := headclient.Reread(o.size())
	if err := o.logs.wait(ctx, least); err != nil {
		return err
	}
	timer := o.logs.settings.Clock.NewTimer(max(0, pause-least))
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-o.wake:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
