package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/heliostat-dev/heliostat/tests/bench/dashboards"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// maxSockets is how many WebSockets are opened at most: as many as one cluster may have, or as the files of each process
	// allow.
	maxSockets = 5_000
	// openers is how many are opened at the same time.
	openers = 32
	// settleFor is after how long the memory of what is open is read, and releasedFor how long after their end.
	settleFor   = 15 * time.Second
	releasedFor = time.Minute
)

// errFull is that an end opens no more WebSockets.
var errFull = errors.New("the end is full")

// sockets opens as many WebSockets as the server has, first by nginx and then by the server.
func (m *measurement) sockets(ctx context.Context) (round dashboards.Sockets, err error) {
	server, err := m.startServer(ctx)
	if err != nil {
		return round, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	nginx, err := m.startNginx(ctx)
	if err != nil {
		return round, err
	}
	defer func() { err = errors.Join(err, nginx.Stop()) }()
	most := maxSockets
	for _, one := range []struct {
		end  *end
		into func(*dashboards.Pair) *float64
	}{
		{server, func(p *dashboards.Pair) *float64 { return &p.Proxy }},
		{nginx, func(p *dashboards.Pair) *float64 { return &p.Nginx }},
	} {
		held, err := m.hold(ctx, one.end, most)
		if err != nil {
			return round, fmt.Errorf("hold WebSockets by %s: %w", one.end.Path, err)
		}
		most, round.Open = held.open, held.open
		*one.into(&round.Idle), *one.into(&round.Held) = held.idle, held.held
		*one.into(&round.After), *one.into(&round.Released) = held.after, held.released
	}
	return round, nil
}

// holding is what an end needs for WebSockets.
type holding struct {
	open                        int
	idle, held, after, released float64
}

// hold opens so many WebSockets by an end, or as many as it takes, and closes them.
func (m *measurement) hold(ctx context.Context, by *end, most int) (found holding, err error) {
	files, err := filesOf(by.Process)
	if err != nil {
		return found, err
	}
	if found.idle, err = memoryOf(by.Process); err != nil {
		return found, err
	}
	opened, err := m.openAll(ctx, by, most)
	if err != nil && !errors.Is(err, errFull) {
		return found, err
	}
	found.open = len(opened)
	if err := pause(ctx, settleFor); err != nil {
		return found, err
	}
	if found.held, err = memoryOf(by.Process); err != nil {
		return found, err
	}
	open, err := filesOf(by.Process)
	if err == nil && open < files+2*found.open-idleFiles {
		err = fmt.Errorf("of %d WebSockets %d files are open", found.open, open-files)
	}
	if err != nil {
		return found, err
	}
	began := time.Now()
	closeAll(opened)
	err = live.Until(ctx, 3*releasedFor, "all to be released", func(context.Context) error {
		open, err := filesOf(by.Process)
		if err == nil && open > files+idleFiles {
			err = fmt.Errorf("%d files are open, %d at the start", open, files)
		}
		return err
	})
	if err != nil {
		return found, err
	}
	found.released = time.Since(began).Seconds()
	if err := pause(ctx, releasedFor-time.Since(began)); err != nil {
		return found, err
	}
	found.after, err = memoryOf(by.Process)
	return found, err
}

// idleFiles is by how many files an end may differ from the start: kept connections come and go.
const idleFiles = 20

// openAll opens so many WebSockets, in turn as one caller and the other. What is open is returned with errFull where an end
// takes no more.
func (m *measurement) openAll(ctx context.Context, by *end, most int) (opened []net.Conn, err error) {
	var (
		mutex sync.Mutex
		wait  sync.WaitGroup
		next  = make(chan int)
		ended = make(chan struct{}, openers)
	)
	for range openers {
		wait.Go(func() {
			for i := range next {
				one, failed := m.openOne(by, m.tokens[i%2])
				mutex.Lock()
				switch {
				case failed == nil:
					opened = append(opened, one)
				case err == nil || !errors.Is(failed, errFull):
					err = failed
				}
				mutex.Unlock()
				if failed != nil {
					ended <- struct{}{}
					return
				}
			}
		})
	}
	func() {
		for i := range most {
			select {
			case next <- i:
			case <-ended:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	close(next)
	wait.Wait()
	if ctx.Err() != nil {
		err = fmt.Errorf("open WebSockets: %w", ctx.Err())
	}
	return opened, err
}

// openOne opens a WebSocket as a program does.
func (m *measurement) openOne(by *end, token string) (net.Conn, error) {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: time.Minute}, Config: trusting()}
	connection, err := dialer.Dial("tcp", by.address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", by.Path, err)
	}
	_ = connection.SetDeadline(time.Now().Add(time.Minute)) // every connection has them
	_, err = fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
		by.before+socketPath, by.address, token)
	var said strings.Builder
	for one := make([]byte, 1); err == nil && !strings.HasSuffix(said.String(), "\r\n\r\n"); {
		if _, err = io.ReadFull(connection, one); err == nil {
			said.Write(one)
		}
	}
	switch {
	case err != nil:
		err = fmt.Errorf("open a WebSocket by %s: %w", by.Path, err)
	case strings.HasPrefix(said.String(), "HTTP/1.1 503 "):
		err = errFull
	case !strings.HasPrefix(said.String(), "HTTP/1.1 101 "):
		err = fmt.Errorf("open a WebSocket by %s: it answers %q", by.Path, said.String())
	}
	if err != nil {
		_ = connection.Close() // the failure is another
		return nil, err
	}
	_ = connection.SetDeadline(time.Time{}) // as above
	return connection, nil
}

func closeAll(all []net.Conn) {
	for _, one := range all {
		_ = one.Close() // it may have ended
	}
}

// pause waits, or until the context ends.
func pause(ctx context.Context, long time.Duration) error {
	select {
	case <-time.After(long):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", ctx.Err())
	}
}
