package app

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// unreadWithin is how long the rest of a body may take whose request is refused.
const unreadWithin = 5 * time.Second

// unreadAnswer is an answer to a request of HTTP/1.1 with a body. net/http reads up to 256 KiB of a body before it sends the answer,
// however long that takes: a caller who sends nothing of it would never be answered, and keep the connection.
type unreadAnswer struct {
	http.ResponseWriter
	clock  clock.PassiveClock
	body   *notedBody
	isSent bool
}

// endUnread returns a handler whose refusals wait a short while for the rest of a body, and whose other answers for none of which
// nothing was read. A handler that reads a body sets deadlines of its own.
func endUnread(next http.Handler, now clock.PassiveClock) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		body := &notedBody{ReadCloser: r.Body}
		r = r.WithContext(r.Context()) // net/http looks at the body of its own request
		r.Body = body
		next.ServeHTTP(&unreadAnswer{ResponseWriter: w, clock: now, body: body}, r)
	})
}

// WriteHeader implements http.ResponseWriter.
func (u *unreadAnswer) WriteHeader(code int) {
	if !u.isSent && code >= http.StatusOK {
		u.isSent = true
		switch {
		case code >= http.StatusBadRequest && !u.body.isWhole.Load(): // most callers send all before they read, and go on by the same connection
			_ = http.NewResponseController(u.ResponseWriter).SetReadDeadline(u.clock.Now().Add(unreadWithin))
		case code < http.StatusBadRequest && !u.body.isRead.Load():
			u.Header().Set("Connection", "close") // then net/http reads nothing
		}
	}
	u.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (u *unreadAnswer) Write(body []byte) (int, error) {
	if !u.isSent {
		u.WriteHeader(http.StatusOK)
	}
	return u.ResponseWriter.Write(body)
}

// Unwrap lets http.ResponseController find what is below.
func (u *unreadAnswer) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// notedBody notes whether anything was read of it, and its end. A transport reads it in a goroutine of its own.
type notedBody struct {
	io.ReadCloser
	isRead, isWhole atomic.Bool
}

// Read implements io.Reader.
func (n *notedBody) Read(into []byte) (int, error) {
	n.isRead.Store(true)
	read, err := n.ReadCloser.Read(into)
	if errors.Is(err, io.EOF) {
		n.isWhole.Store(true)
	}
	return read, err
}
