// Package collector runs beside Ray in a pod: it follows Ray's files, and sends what is new in them to an archiver until the pod ends.
//
// In: the directory of Ray's sessions, the addresses of the archiver's replicas, and a context that ends when the pod is to end. Out:
// a stream to one replica at a time, and a log.
//
// It must never hold up Ray: it only reads, and waits where no replica answers. What a replica has is asked anew for each stream, so
// that nothing is kept on a disk.
package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/heliostat-dev/heliostat/history/collect"
	"github.com/heliostat-dev/heliostat/history/redact"
	"github.com/heliostat-dev/heliostat/history/replica"
	"github.com/heliostat-dev/heliostat/history/wire"
)

// Config is what a collector is told.
type Config struct {
	// Directory has the sessions of Ray, such as /tmp/ray.
	Directory string
	// Archivers are the addresses of the archiver's replicas, each host:port.
	Archivers []string
	// Cluster is the UID of the pod's cluster, all of whose pods prefer the same replica.
	Cluster string
	// Dial returns a connection to a replica, with the collector's credentials.
	Dial func(address string) (*grpc.ClientConn, error)
	// Redactor knows what to replace.
	Redactor *redact.Redactor
	Log      *slog.Logger
	// Times are those of DefaultTimes, but in tests.
	Times Times
	Now   func() time.Time
}

// Times are how long a collector waits.
type Times struct {
	// Pass is the time between two looks at the files.
	Pass time.Duration
	// Prefer is how long the preferred replica is tried alone. Between two rounds of all replicas it waits from Pass to Retry, each
	// time twice as long.
	Prefer, Retry time.Duration
	// Open is how long a replica may take to begin a stream.
	Open time.Duration
	// Quiet is how long a failure that goes on is not logged again.
	Quiet time.Duration
	// End is how long the pod may be held up after it has to end. Half of it is for files that are still written.
	End time.Duration
}

// DefaultTimes are those of each pod.
func DefaultTimes() Times {
	return Times{Pass: time.Second, Prefer: 10 * time.Second, Retry: time.Minute, Open: 10 * time.Second, Quiet: time.Hour, End: 10 * time.Second}
}

// Run follows the files until the context ends, sends what is left then, and returns once a replica has the list of all files, or the
// time for that is over.
func Run(ctx context.Context, cfg Config) error {
	files, err := collect.New(cfg.Directory, cfg.Redactor)
	for errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil { // Ray makes it, where its parent is the volume
		pause(ctx, cfg.Times.Pass)
		files, err = collect.New(cfg.Directory, cfg.Redactor)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Ray has not begun
	}
	if err != nil {
		return fmt.Errorf("follow the files of Ray: %w", err)
	}
	defer files.Close()
	c := &collector{Config: cfg, files: files, state: newState(), replicas: replica.Order(cfg.Cluster, cfg.Archivers)}
	return c.run(ctx)
}

// collector is a run.
type collector struct {
	Config
	files    *collect.Collector
	state    *state
	replicas []string
	logged   time.Time // of the last failure that was logged
}

// errEnded ends a stream after its list.
var errEnded = errors.New("all was sent")

// run keeps a stream to a replica until the pod has ended and all was sent, or the time for that is over.
func (c *collector) run(ctx context.Context) error {
	// Streams outlive ctx: what is left is sent after its end.
	streams, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		pause(streams, c.Times.End)
		cancel()
	})()
	alone, wait := c.Now(), c.Times.Pass
	for {
		for i, replica := range c.replicas {
			if i > 0 && c.Now().Sub(alone) < c.Times.Prefer && ctx.Err() == nil {
				break
			}
			isOfUse, err := c.stream(ctx, streams, replica)
			if errors.Is(err, errEnded) {
				return nil
			}
			if streams.Err() != nil {
				c.Log.Warn("Not all was archived before the pod had to end", "err", err)
				return nil
			}
			if isOfUse { // the next stream is to the preferred replica again. Archivers end old ones
				alone, wait = c.Now(), c.Times.Pass
				break
			}
			c.report(replica, err)
		}
		// Once the pod has to end, each moment counts.
		if ctx.Err() != nil {
			wait = c.Times.Pass
		}
		pause(ctx, wait)
		if c.Now().Sub(alone) >= c.Times.Prefer {
			wait = min(2*wait, c.Times.Retry)
		}
	}
}

// pause waits for a time, or until the pod has to end. After that it waits for the whole time, so that tries do not spin.
func pause(ctx context.Context, wait time.Duration) {
	ended := ctx.Done()
	if ctx.Err() != nil {
		ended = nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// report logs a failure, unless one was logged a short time ago.
func (c *collector) report(replica string, err error) {
	if c.Now().Sub(c.logged) < c.Times.Quiet {
		return
	}
	c.logged = c.Now()
	c.Log.Warn("Nothing is archived: no stream to the archiver; allow egress to it", "archiver", replica, "err", err)
}

// stream sends to a replica until the stream breaks, or the pod has ended. It reports whether the replica acknowledged anything, or kept
// the stream for a while: one that takes streams and no bytes is of no use.
func (c *collector) stream(ctx, streams context.Context, replica string) (isOfUse bool, err error) {
	connection, err := c.Dial(replica)
	if err != nil {
		return false, fmt.Errorf("dial %s: %w", replica, err)
	}
	defer func() { _ = connection.Close() }() // nothing is sent any more
	sender, err := c.open(streams, connection)
	if err != nil {
		return false, err
	}
	defer sender.Close()
	begin, acked := c.Now(), c.state.acknowledged()
	defer func() { isOfUse = c.state.acknowledged() > acked || c.Now().Sub(begin) > c.Times.Prefer }()
	if !c.logged.IsZero() {
		c.Log.Info("Archiving", "archiver", replica)
		c.logged = time.Time{}
	}
	c.files.Resume(c.state.resume(sender.Resume()))
	out := &outlet{ctx: streams, sender: sender, state: c.state, now: c.Now}
	for {
		if _, _, err := c.look(out, false); err != nil {
			return false, err
		}
		select {
		case <-sender.Done():
			return false, fmt.Errorf("send to the archiver: %w", sender.Err())
		case <-ctx.Done():
			return false, c.end(out)
		case <-time.After(c.Times.Pass):
		}
	}
}

// open begins a stream, within a time.
func (c *collector) open(ctx context.Context, connection *grpc.ClientConn) (*wire.Sender, error) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(c.Times.Open, cancel)
	sender, err := wire.Open(ctx, connection, wire.Version, c.state.ack)
	if err != nil || !timer.Stop() {
		cancel()
		return nil, cmp.Or(err, context.DeadlineExceeded)
	}
	return sender, nil //nolint:govet // the stream ends by Close
}

// look sends what is new in all files, and how much could not be sent. It reports whether it sent anything, and has to send more.
func (c *collector) look(out *outlet, isEnd bool) (hasSent, isBehind bool, err error) {
	sent, err := c.files.Pass(out, isEnd)
	if err != nil {
		return sent, false, fmt.Errorf("look at the files of Ray: %w", err)
	}
	if ended := c.state.pending(); len(ended) > 0 {
		if err := out.sender.Ended(out.ctx, ended); err != nil {
			return sent, false, fmt.Errorf("send the files that ended: %w", err)
		}
		c.state.end(ended)
	}
	behind, age := c.state.progress(c.Now(), c.files)
	if (behind > 0 || out.isBehind) && out.sender.Room() > 0 { // it must not wait: files that are not opened can go
		out.isBehind = behind > 0
		if err := out.sender.Behind(out.ctx, behind, age); err != nil {
			return sent, false, fmt.Errorf("send how much is left: %w", err)
		}
	}
	return sent, behind > 0, nil
}

// end sends what is left of all files, and the list of them. A sidecar is told to end after Ray has ended, so nothing comes after. What
// another container goes on writing does not prevent the list.
func (c *collector) end(out *outlet) error {
	until := c.Now().Add(c.Times.End / 2)
	for _, isEnd := range []bool{false, true} {
		for {
			hasSent, isBehind, err := c.look(out, isEnd)
			if err != nil {
				return err
			}
			if !hasSent && !isBehind || c.Now().After(until) {
				break
			}
			if !hasSent { // there is no room, or a file cannot be opened now
				pause(out.ctx, c.Times.Pass/20)
			}
		}
	}
	if err := out.sender.List(out.ctx, c.state.list(c.files.List())); err != nil {
		return fmt.Errorf("send the list of files: %w", err)
	}
	return errEnded
}
