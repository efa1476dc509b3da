package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
)

// Bounds of a WebSocket.
const (
	// pingRounds is after how many rounds of the guard a ping is sent: each 20 s.
	pingRounds = 2
	// stuckAfter is how long the client may take no byte of what is there for it, or send none of a body.
	stuckAfter = time.Minute
	// fromClient and fromServer are how many bytes are read at once.
	fromClient = 2 << 10
	fromServer = 4 << 10
)

// serveSocket opens a WebSocket. It returns when that is open: what follows has goroutines of its own, so that an open
// socket keeps nothing of its request.
func (p *Proxy) serveSocket(w http.ResponseWriter, r *http.Request, x *exchange, giveBack func()) error {
	ctx, cancel := context.WithTimeout(r.Context(), openWithin)
	defer cancel()
	answer, err := p.open(r.WithContext(ctx), x)
	if err != nil {
		giveBack()
		p.refuseFailed(w, r, err)
		return nil
	}
	back, is := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !is {
		defer giveBack()
		defer func() { _ = answer.Body.Close() }()
		passOn(w, answer)
		return nil
	}
	connection, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		giveBack()
		_ = back.Close()
		return &Refusal{Code: http.StatusInternalServerError, Text: "the connection cannot carry a WebSocket: use HTTP/1.1"}
	}
	x.known.Code = http.StatusSwitchingProtocols
	p.sockets.Add(1)
	s := &socket{client: connection, server: back, clock: p.Clock, done: func() {
		giveBack()
		p.sockets.Done()
	}}
	return s.begin(p, x, answer, buffered.Reader)
}

// openWithin is how long an upstream may take to open a WebSocket.
const openWithin = time.Minute

// errBadUpgrade is that an upstream opened something else.
var errBadUpgrade = errors.New("the upstream opened another protocol than a WebSocket")

// open asks the upstream to open a WebSocket.
func (p *Proxy) open(r *http.Request, x *exchange) (*http.Response, error) {
	at, err := x.target.URL("")
	if err != nil {
		return nil, err
	}
	left := r.Header.Clone()
	for _, value := range r.Header["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			left.Del(strings.TrimSpace(name))
		}
	}
	out := r.Clone(r.Context())
	out.URL, out.RequestURI, out.Trailer, out.Close = at, "", nil, false
	out.Body, out.ContentLength, out.TransferEncoding = nil, 0, nil
	out.Header = p.headersFor(x, r.Header, left)
	answer, err := p.upstream.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusSwitchingProtocols {
		if upgraded := answer.Header["Upgrade"]; len(upgraded) != 1 || !strings.EqualFold(upgraded[0], "websocket") {
			err = errBadUpgrade
		}
	} else {
		err = p.clean(answer)
	}
	if err != nil {
		_ = answer.Body.Close() // the failure is another
		return nil, err
	}
	return answer, nil
}

// passOn answers with what an upstream said instead of opening a WebSocket.
func passOn(w http.ResponseWriter, answer *http.Response) {
	for name, values := range answer.Header {
		if name != "Connection" && name != "Transfer-Encoding" && name != "Keep-Alive" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // who asks and goes needs no answer
}

// socket is a WebSocket between a client and an upstream. Frames pass untouched; between two of them the client gets pings,
// and the end in our own words.
type socket struct {
	client net.Conn
	server io.ReadWriteCloser
	clock  clock.PassiveClock
	done   func()

	// mutex is held while the client is written to.
	mutex  sync.Mutex
	frames frames
	rounds int
	// goodbye is what must be written between two frames, as the last thing.
	goodbye []byte
	isOver  bool
	over    sync.Once
}

// begin tells the client that the socket is open, and starts what carries it.
func (s *socket) begin(p *Proxy, x *exchange, answer *http.Response, early *bufio.Reader) error {
	watch := p.guard(x, func(refusal *Refusal) { s.finish(closeFrame(closePolicy, speaker+refusal.Text)) })
	watch.tick = s.ping
	isTail := isTail(x.target)
	stopEnding := context.AfterFunc(p.ending, func() { s.finish(leaving(isTail)) })
	done := s.done
	s.done = func() {
		watch.stop()
		stopEnding()
		done()
	}
	sent, err := early.Peek(early.Buffered())
	sent = append([]byte(nil), sent...)
	if err != nil || s.open(answer.Header) != nil {
		s.end()
		s.done()
		return nil
	}
	watch.start()
	var both sync.WaitGroup
	both.Go(func() { s.fromClient(sent) })
	both.Go(s.fromServer)
	go func() {
		both.Wait()
		s.done()
	}()
	return nil
}

// isTail reports whether a target is the output of a job that Ray's client follows.
func isTail(of route.Target) bool {
	return of.Kind == route.Cluster && strings.HasPrefix(of.Path, "/api/jobs/") && strings.HasSuffix(of.Path, "/logs/tail")
}

// leaving returns what a socket says last where the server ends. Ray's client prints messages, and not why a WebSocket
// closes.
func leaving(isTail bool) []byte {
	end := closeFrame(closeGoingAway, speaker+"it restarts: connect again")
	if !isTail {
		return end
	}
	return append(textFrame("\n"+speaker+"the server was replaced, and the job goes on: ask for its log again\n"), end...)
}

// open writes the head of the answer.
func (s *socket) open(header http.Header) error {
	var text strings.Builder
	text.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
	for _, name := range []string{"Sec-WebSocket-Accept", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions"} {
		for _, value := range header.Values(name) {
			text.WriteString(name + ": " + value + "\r\n")
		}
	}
	text.WriteString("\r\n")
	_ = s.client.SetDeadline(time.Time{})
	_, err := io.WriteString(s.client, text.String())
	return err
}

// fromClient carries what the client sends, beginning with what it has sent already.
func (s *socket) fromClient(part []byte) {
	defer s.end()
	buffer := make([]byte, fromClient)
	for {
		if _, err := s.server.Write(part); err != nil && !s.isEnding() {
			return
		}
		n, err := s.client.Read(buffer)
		if part = buffer[:n]; err != nil {
			_, _ = s.server.Write(part) // it is over in any case
			return
		}
	}
}

// fromServer carries what the upstream sends.
func (s *socket) fromServer() {
	buffer := make([]byte, fromServer)
	for {
		n, err := s.server.Read(buffer)
		if n > 0 && !s.write(buffer[:n]) {
			return
		}
		if err != nil {
			if !s.isEnding() {
				s.end()
			}
			return
		}
	}
}

// write writes a part of the upstream's frames, and the goodbye where there is one and a frame has ended. It reports whether
// more may follow.
func (s *socket) write(part []byte) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.goodbye == nil {
		_ = s.client.SetWriteDeadline(s.clock.Now().Add(stuckAfter))
	}
	for len(part) > 0 && !s.isOver {
		n := s.frames.advance(part)
		for s.goodbye == nil && n < len(part) { // nothing is put between them
			n += s.frames.advance(part[n:])
		}
		if _, err := s.client.Write(part[:n]); err != nil {
			s.end()
			return false
		}
		part = part[n:]
		s.part()
	}
	return !s.isOver
}

// part writes the goodbye where it is time for it. The mutex is held.
func (s *socket) part() {
	if s.goodbye == nil || s.isOver || !s.frames.isBetween() {
		return
	}
	s.isOver = true
	_, _ = s.client.Write(s.goodbye) // a client that is gone needs none
	_ = s.server.Close()
}

// ping sends a ping in each second round, unless something is on its way to the client.
func (s *socket) ping() {
	if s.rounds++; s.rounds%pingRounds != 0 || !s.mutex.TryLock() {
		return
	}
	defer s.mutex.Unlock()
	if s.goodbye == nil && s.frames.isBetween() {
		_ = s.client.SetWriteDeadline(s.clock.Now().Add(leaveWithin))
		if _, err := s.client.Write(pingFrame()); err != nil {
			s.end()
		}
	}
}

// finish closes the socket in our own words, once the frame that is on its way has ended, and in any case soon. The client
// may still send, so that it reads the end and not a connection that broke.
func (s *socket) finish(goodbye []byte) {
	_ = s.client.SetDeadline(s.clock.Now().Add(leaveWithin)) // also of a client that does not read
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.goodbye == nil {
		s.goodbye = goodbye
		_ = s.client.SetDeadline(s.clock.Now().Add(leaveWithin))
		s.part()
	}
}

func (s *socket) isEnding() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.goodbye != nil
}

// end breaks both connections.
func (s *socket) end() {
	s.over.Do(func() {
		_ = s.client.Close() // whatever had to be said was said
		_ = s.server.Close()
	})
}
