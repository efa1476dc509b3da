package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// buffer is how many bytes each way of a connection holds: there may be many connections, and most wait.
const buffer = 4 << 10

// pause is how long nobody is accepted after that has failed.
const pause = 100 * time.Millisecond

// relay hands on what clients send over TLS, and what they are answered.
type relay struct {
	to     string
	config *tls.Config
	log    *slog.Logger
	limits limits

	// away is whether the last connection to the other end failed.
	away atomic.Bool
}

// serve accepts clients until its context ends, and then gives those that are there a moment. It closes the listener.
func (r *relay) serve(ctx context.Context, on net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = on.Close() })() // nobody else comes
	var clients sync.WaitGroup
	defer clients.Wait()
	living, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	for {
		client, err := on.Accept()
		switch {
		case err == nil:
			clients.Go(func() { r.carry(living, client) })
		case ctx.Err() != nil:
			defer time.AfterFunc(r.limits.leave, cut).Stop()
			clients.Wait()
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept clients: %w", err)
		default: // the machine has none left of something
			r.log.Error("Cannot accept clients; retrying", "error", err.Error())
			wait(ctx, pause)
		}
	}
}

func wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// carry serves one client.
func (r *relay) carry(ctx context.Context, raw net.Conn) {
	defer func() { _ = raw.Close() }() // all was said, or nobody wants to know
	client := tls.Server(raw, r.config)
	if r.greet(ctx, client) != nil {
		return // any caller could fill the log
	}
	target, err := r.connect(ctx)
	if err != nil {
		return
	}
	defer func() { _ = target.Close() }() // as above
	end := func() {
		_ = raw.Close()
		_ = target.Close()
	}
	defer context.AfterFunc(ctx, end)()
	var both sync.WaitGroup
	both.Go(func() { forward(target, client, end) })
	forward(client, target, end)
	_ = raw.SetReadDeadline(time.Now().Add(r.limits.linger)) // where it fails, the client has gone
	both.Wait()
}

// notTLS is for people and programs that come without TLS.
const notTLS = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\nThis port takes HTTPS, and not HTTP.\n"

// greet shakes hands with a client.
func (r *relay) greet(ctx context.Context, client *tls.Conn) error {
	ctx, stop := context.WithTimeout(ctx, r.limits.handshake)
	defer stop()
	err := client.HandshakeContext(ctx)
	var other tls.RecordHeaderError
	if errors.As(err, &other) && other.Conn != nil {
		_ = other.Conn.SetWriteDeadline(time.Now().Add(r.limits.handshake)) // the failure is another
		_, _ = io.WriteString(other.Conn, notTLS)                           // as above
	}
	return err
}

// connect connects to the other end, and logs when that begins and ends to fail.
func (r *relay) connect(ctx context.Context) (net.Conn, error) {
	target, err := (&net.Dialer{Timeout: r.limits.connect}).DialContext(ctx, "tcp", r.to)
	if away := err != nil; r.away.Swap(away) != away {
		if away {
			r.log.Error("The dashboard does not answer; refusing clients", "address", r.to, "error", err.Error())
		} else {
			r.log.Info("The dashboard answers again", "address", r.to)
		}
	}
	return target, err
}

// half is a connection of which each way ends by itself.
type half interface{ CloseWrite() error }

// forward hands on what comes from one end until that has said all, and then says so to the other. Where that fails, it
// ends both.
func forward(to, from net.Conn, end func()) {
	closing, ok := to.(half)
	if !ok {
		end()
		return
	}
	// Without the methods by which one of them would take a buffer of its own.
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, buffer))
	if err != nil || closing.CloseWrite() != nil {
		end()
	}
}
