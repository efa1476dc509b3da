package logs

import (
	"context"
	"fmt"
	"time"

	"github.com/heliostat-dev/heliostat/cli/console"
)

// patience is with one that is asked again and again while an output is followed.
type patience struct {
	console *console.Console
	// who is asked.
	who string
	// what is followed, and again is the command that follows it.
	what, again string
	silence     console.Silence
}

// rest waits until the next question, unless there was no answer for too long.
func (p *patience) rest(ctx context.Context, why error) error {
	c := p.console
	if p.silence.IsNew(c.Clock.Now()) {
		c.Note("%s does not answer: %s; trying for %s", p.who, said(why), console.Patience)
	}
	if p.silence.IsTooLong(c.Clock.Now()) {
		return fmt.Errorf("follow the output of %s: %w; follow again: %s", p.what, why, p.again)
	}
	return pause(ctx, c, console.Look)
}

// pause waits for some time, unless the context ends.
func pause(ctx context.Context, c *console.Console, during time.Duration) error {
	timer := c.Clock.NewTimer(during)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
