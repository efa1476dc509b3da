package rest

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

const (
	eventStreamType = "text/event-stream"
	// aliveEach is how often a stream says that it is there, so that no proxy between ends it.
	aliveEach = 15 * time.Second
	// leaveWithin is how long the last words of a stream may take, also to who does not read: 28 s and this are less than 30 s.
	leaveWithin = time.Second
	// A watch of which nothing is read for stuckAfter ends: it asks for its rights between two events. It is looked at each
	// lookEach.
	stuckAfter = 20 * time.Second
	lookEach   = 5 * time.Second
	// maxWrite is how many bytes are written at once: a connection keeps a buffer as large as its largest frame.
	maxWrite = 4 << 10
)

// serveStream answers a request whose answer goes on.
func (a *API) serveStream(w http.ResponseWriter, r *http.Request, request Request) error {
	switch asked := request.message.(type) {
	case *heliostatv1.WatchObjectsRequest:
		return a.serveWatch(w, r, asked)
	case *heliostatv1.DownloadFilesRequest:
		return a.serveDownload(w, r, asked)
	case *heliostatv1.ReadFileRequest:
		if err := takeOffset(r, asked); err != nil {
			return err
		}
		return a.serveFile(w, r, asked)
	case logRequest:
		if err := takeOffset(r, asked); err != nil {
			return err
		}
		return a.serveLog(w, r, asked)
	}
	return fmt.Errorf("serve %s: nothing does", request.route.Call)
}

// comment is what a stream says where it has nothing to say.
var comment = []byte(": \n\n")

// eventStream writes server-sent events.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	clock   clock.WithTickerAndDelayedExecution

	mutex sync.Mutex
	begun bool
}

func newEventStream(w http.ResponseWriter, clock clock.WithTickerAndDelayedExecution) *eventStream {
	return &eventStream{w: w, control: http.NewResponseController(w), clock: clock}
}

func (s *eventStream) hasBegun() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.begun
}

// send writes an event, or a comment.
func (s *eventStream) send(text []byte) error { return s.sendAll(slices.Values([][]byte{text})) }

// sendAll writes parts that follow each other, and hands them on together. A part that is longer than maxWrite must not change
// afterwards, as it may still be read from where writing has failed.
func (s *eventStream) sendAll(parts iter.Seq[[]byte]) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.begun {
		header := s.w.Header()
		header.Set("Content-Type", eventStreamType)
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Accel-Buffering", "no") // nginx hands events on at once
		s.w.WriteHeader(http.StatusOK)
		s.begun = true
	}
	for part := range parts {
		for piece := range slices.Chunk(part, maxWrite) {
			if _, err := s.w.Write(piece); err != nil {
				return err
			}
		}
	}
	return s.control.Flush()
}

// endStuck ends a write of which nothing is read, until the function that it returns is called.
func (s *eventStream) endStuck() (stop func()) {
	began, done := s.clock.Now(), make(chan struct{})
	timer := s.clock.AfterFunc(stuckAfter, func() {
		defer close(done)
		_ = s.control.SetWriteDeadline(began) // which is over; every server's connections have one
	})
	return func() {
		if !timer.Stop() {
			<-done // what it does is for this answer alone
		}
	}
}

// sendOrEnd sends an event, and ends the stream where nothing of it is read for a while.
func (s *eventStream) sendOrEnd(text []byte) error {
	defer s.endStuck()()
	return s.send(text)
}

// leave ends writes a short while after a context has ended, so that a caller who does not read holds nothing. The function
// that it returns must be called before the handler returns: what it does is for this answer alone.
func leave(ctx context.Context, control *http.ResponseController, now clock.PassiveClock) func() {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = control.SetWriteDeadline(now.Now().Add(leaveWithin)) // every server's connections have one
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// keepAlive writes a comment now and then until the function that it returns is called. When the context ends, a caller who
// does not read holds the stream for a short while only.
func (s *eventStream) keepAlive(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	stop := leave(ctx, s.control, s.clock)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := s.clock.NewTicker(aliveEach)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
				if s.send(comment) != nil {
					return // the next event fails too
				}
			}
		}
	}()
	return func() { cancel(); stop(); <-done }
}
