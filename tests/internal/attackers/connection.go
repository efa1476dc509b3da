package attackers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

const (
	// connectWithin is how long a connection may take to begin, and answerWithin a request that ends to be answered.
	connectWithin = 10 * time.Second
	answerWithin  = 20 * time.Second
	// dripAfter is when a body that does not end goes on by a byte: just before a minute without one is over.
	dripAfter = 59 * time.Second
	// none is the answer of a connection that ended before one.
	none = "none"
)

// dial connects to the attacker's listener. No bound for one address holds attackers back: each has its own.
func (a *attacker) dial(ctx context.Context, protocol string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	from := net.IPv4(127, 210, byte(a.number/250), byte(a.number%250+1))
	dialer := &tls.Dialer{
		NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: from}},
		Config:    &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}},
	}
	connection, err := dialer.DialContext(ctx, "tcp", a.Addresses[a.listener])
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	return connection, nil
}

// request is what is sent by HTTP/2, or by gRPC as HTTP/2 has it.
type request struct {
	method, path string
	headers      map[string]string
	// body names one of those that are prepared; empty is none.
	body string
	// isShort is that the last byte of the body never comes.
	isShort bool
}

// build returns the request as the attacker sends it.
func (r request) build(ctx context.Context, a *attacker) (*http.Request, error) {
	var all []byte
	if r.body != "" {
		all = prepared()[r.body]
	}
	body := io.Reader(bytes.NewReader(all))
	if r.isShort {
		body = io.MultiReader(bytes.NewReader(all[:len(all)-1]), waiting{ctx})
	}
	built, err := http.NewRequestWithContext(ctx, r.method, "https://"+a.Addresses[a.listener]+r.path, body)
	if err != nil {
		return nil, fmt.Errorf("build a request: %w", err)
	}
	built.ContentLength = int64(len(all))
	if a.token != "" {
		built.Header.Set("Authorization", "Bearer "+a.token)
	}
	for name, value := range r.headers {
		built.Header.Set(name, value)
	}
	return built, nil
}

// waiting is a body of which nothing comes.
type waiting struct{ ctx context.Context } //nolint:containedctx // a reader has no other way to end

// Read waits for the end.
func (w waiting) Read([]byte) (int, error) {
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}

// once sends a request on a connection of its own, and returns the code of its answer.
func once(r request) func(context.Context, *attacker) string {
	return func(ctx context.Context, a *attacker) string {
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		connection, err := a.dial(ctx, "h2")
		if err != nil {
			return none
		}
		defer func() { _ = connection.Close() }()
		client, err := (&http2.Transport{}).NewClientConn(connection) //nolint:staticcheck // the successor dials by itself
		if err != nil {
			return none
		}
		return r.exchange(ctx, a, client)
	}
}

// exchange sends a request, and returns the code of its answer. The rest of an answer is not read.
func (r request) exchange(ctx context.Context, a *attacker, client *http2.ClientConn) string { //nolint:staticcheck // as above
	ctx, end := context.WithCancel(ctx)
	defer end() // also of a body that does not end
	built, err := r.build(ctx, a)
	if err != nil {
		return err.Error()
	}
	answer, err := client.RoundTrip(built)
	if err != nil {
		return none
	}
	defer func() { _ = answer.Body.Close() }()
	if a.listener != GRPC {
		return fmt.Sprint(answer.StatusCode)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20)) // the status comes behind the message
	for _, header := range []http.Header{answer.Trailer, answer.Header} {
		if status := header.Get("Grpc-Status"); status != "" {
			return "gRPC " + status
		}
	}
	return fmt.Sprint(answer.StatusCode)
}

// many sends so many requests at once on one connection as the orders say, and returns when all are answered or the time is
// over. It notes each answer by itself.
func many(name string, r request) attack {
	return attack{name: name, send: func(ctx context.Context, a *attacker) string {
		connection, err := a.dial(ctx, "h2")
		if err != nil {
			return none
		}
		defer func() { _ = connection.Close() }()
		client, err := (&http2.Transport{}).NewClientConn(connection) //nolint:staticcheck // the successor dials by itself
		if err != nil {
			return none
		}
		var all sync.WaitGroup
		for i := range a.Streams {
			if i > 0 && !a.takeTurn(ctx) {
				break
			}
			all.Go(func() {
				answer := r.exchange(ctx, a, client)
				if ctx.Err() != nil {
					answer = "held to the end"
				}
				a.note(name, answer)
			})
		}
		all.Wait()
		return ""
	}}
}

// text sends a beginning by HTTP/1.1, and then a byte now and then, or nothing where drip is empty. It reads the head of the
// first answer, and nothing more: what else is answered fills the connection. It returns when the server closes that.
func text(begin func(a *attacker) string, drip string) func(context.Context, *attacker) string {
	return func(ctx context.Context, a *attacker) string {
		connection, err := a.dial(ctx, "http/1.1")
		if err != nil {
			return none
		}
		defer func() { _ = connection.Close() }()
		defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
		answered := make(chan string, 1)
		go func() {
			answer, err := http.ReadResponse(bufio.NewReaderSize(connection, 4<<10), nil) //nolint:bodyclose // it is not read on purpose; the connection closes
			if err != nil {
				answered <- none
				return
			}
			answered <- fmt.Sprint(answer.StatusCode)
		}()
		if _, err := io.Copy(connection, strings.NewReader(begin(a))); err != nil {
			return pending(answered)
		}
		pace := time.NewTicker(dripAfter)
		defer pace.Stop()
		for {
			select {
			case answer := <-answered:
				if answer != none && answer != "200" {
					return answer
				}
				if answer == none && ctx.Err() == nil {
					return none
				}
				<-ctx.Done() // what is answered stays unread
				return "held to the end"
			case <-ctx.Done():
				return "held to the end"
			case <-pace.C:
				if _, err := io.WriteString(connection, drip); err != nil {
					return pending(answered)
				}
			}
		}
	}
}

// pending returns the answer that has come, if one has.
func pending(answered <-chan string) string {
	select {
	case answer := <-answered:
		return answer
	case <-time.After(time.Second):
		return none
	}
}

// authorization is the header of the attacker's token, as HTTP/1.1 has it.
func (a *attacker) authorization() string {
	if a.token == "" {
		return ""
	}
	return "Authorization: Bearer " + a.token + "\r\n"
}
