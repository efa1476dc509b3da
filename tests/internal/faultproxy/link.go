package faultproxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
)

// link is a client's connection, and the one to the server that belongs to it.
type link struct {
	*Proxy
	client, upstream net.Conn
	// asked and told are all bytes of the request, and of the reply, that are being read.
	asked, told bytes.Buffer
	requests    *bufio.Reader
	replies     *bufio.Reader
}

// refusals are what stands between a client and a server may say by itself; nonsense is
// what no server of the sort says.
func refusals() []string {
	return []string{"500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable"}
}

func nonsense() []string {
	return []string{
		"\x16\x03\x01\x02\x00\x01\x00",
		"HTTP/1.1 200 OK\r\nContent-Length: 16\r\nContent-Type: application/json\r\n\r\n{\"status\": \"SUCC",
		"HTTP/1.1 200 OK\r\nContent-Length: 26\r\nContent-Type: text/html\r\n\r\n<html>Please log in</html>",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	}
}

// serve passes requests on until one of the connections ends.
func (l *link) serve() {
	release := context.AfterFunc(l.ctx, func() { _ = l.client.Close() })
	defer release()
	defer func() {
		_ = l.client.Close()
		if l.upstream != nil {
			_ = l.upstream.Close()
		}
	}()
	l.requests = bufio.NewReader(io.TeeReader(l.client, &l.asked))
	for {
		l.asked.Reset()
		request, err := http.ReadRequest(l.requests)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		if !l.befall(request, l.choose()) {
			return
		}
	}
}

// befall does to a request what was chosen. False: the connections are over.
func (l *link) befall(request *http.Request, fault Fault) bool {
	switch fault {
	case DropRequest:
		l.reset()
		return false
	case TruncateRequest:
		if l.dial() == nil {
			_, _ = l.upstream.Write(l.part(l.asked.Bytes())) // both ends see that the connection breaks
		}
		l.reset()
		return false
	case Refuse:
		all := refusals()
		_, err := fmt.Fprintf(l.client, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", all[l.draw(len(all))])
		return err == nil
	case Hang:
		if l.draw(2) == 0 {
			_, _ = l.deliver(request) // what the server says is lost
		}
		_, _ = io.Copy(io.Discard, l.client) // until the client gives up
		return false
	case DelayRequest:
		l.late()
	}
	reply, err := l.deliver(request)
	if err == nil && fault == Duplicate {
		var second []byte
		if second, err = l.deliver(request); l.draw(2) == 0 {
			reply = second
		}
	}
	if err != nil {
		return false
	}
	l.replied(request)
	return l.answer(reply, fault)
}

// answer gives the client a reply, as far as the fault lets it.
func (l *link) answer(reply []byte, fault Fault) bool {
	switch fault {
	case DropReply:
		_, _ = l.client.Write(l.part(reply)) // the client sees that the connection breaks
		l.reset()
		return false
	case TruncateReply:
		_, _ = l.client.Write(l.part(reply))
		return false
	case DelayReply:
		l.late()
	case Garbage:
		all := nonsense()
		reply = []byte(all[l.draw(len(all))])
	}
	_, err := l.client.Write(reply)
	return err == nil && fault != Garbage
}

// deliver sends the request that was read, once, and reads the whole reply.
func (l *link) deliver(request *http.Request) ([]byte, error) {
	if err := l.dial(); err != nil {
		return nil, err
	}
	if _, err := l.upstream.Write(l.asked.Bytes()); err != nil {
		return nil, fmt.Errorf("pass a request on to %s: %w", l.server, err)
	}
	l.told.Reset()
	response, err := http.ReadResponse(l.replies, request)
	if err != nil {
		return nil, fmt.Errorf("read the reply of %s: %w", l.server, err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return nil, fmt.Errorf("read the rest of the reply of %s: %w", l.server, err)
	}
	return bytes.Clone(l.told.Bytes()), nil
}

// dial connects to the server, once.
func (l *link) dial() error {
	if l.upstream != nil {
		return nil
	}
	upstream, err := (&net.Dialer{}).DialContext(l.ctx, "tcp", l.server)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", l.server, err)
	}
	l.upstream = upstream
	context.AfterFunc(l.ctx, func() { _ = upstream.Close() })
	l.replies = bufio.NewReader(io.TeeReader(upstream, &l.told))
	return nil
}

// part is a beginning of some bytes, not all of them.
func (l *link) part(whole []byte) []byte { return whole[:l.draw(len(whole))] }

// reset breaks the client's connection, so that it sees more than an end.
func (l *link) reset() {
	if connection, ok := l.client.(*net.TCPConn); ok {
		_ = connection.SetLinger(0)
	}
	_ = l.client.Close()
}
