// Package hostile stands for the servers of a tenant that wishes nobody well: a Redis, a Sentinel, and a head's job and
// Serve API, its GCS and its autoscaler.
//
// In: listeners. Out: answers that are too long, too deep, too slow, broken, or that lead elsewhere, another one on each
// connection. What a connection is sent is bounded, so that the tests' machine outlives it. It must never connect anywhere.
package hostile

import (
	"bytes"
	"net"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// longest is how much a connection is sent at most: far beyond what any reader of ours takes.
	longest = 64 << 20
	// patience is how long a connection lasts at most.
	patience = 30 * time.Second
)

// Manner answers on one connection, and returns when it has said all or nobody listens.
type Manner func(net.Conn)

// Server answers each connection in the next of its manners, the first one again after the last.
type Server struct {
	listener net.Listener
	manners  []Manner
	asked    atomic.Int64
}

// Serve answers the connections of a listener until the server is closed, and begins with the manner of a number: servers of
// consecutive numbers begin in different ones.
func Serve(listener net.Listener, manners []Manner, first int) *Server {
	at := first % len(manners)
	s := &Server{listener: listener, manners: slices.Concat(manners[at:], manners[:at])}
	go s.accept()
	return s
}

// Address is where it listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Asked is how many connections there were.
func (s *Server) Asked() int64 { return s.asked.Load() }

// Close ends the listener. A connection ends by itself.
func (s *Server) Close() error { return s.listener.Close() }

func (s *Server) accept() {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		manner := s.manners[int(s.asked.Add(1)-1)%len(s.manners)]
		go func() {
			end := time.AfterFunc(patience, func() { _ = connection.Close() })
			manner(connection)
			end.Stop()
			_ = connection.Close()
		}()
	}
}

// hear reads what is asked first. What is asked later stays unread.
func hear(connection net.Conn) []byte {
	buffer := make([]byte, 4<<10)
	n, _ := connection.Read(buffer) // who says nothing is answered too
	return buffer[:n]
}

// say answers with a text, and closes.
func say(text string) Manner {
	return func(connection net.Conn) {
		hear(connection)
		_, _ = connection.Write([]byte(text)) // who has gone misses it
	}
}

// endless answers with a beginning, and then with the same again and again.
func endless(begin, again string) Manner {
	block := bytes.Repeat([]byte(again), 64<<10/len(again)+1)
	return func(connection net.Conn) {
		hear(connection)
		n, err := connection.Write([]byte(begin))
		for said := n; said < longest && err == nil; said += n {
			n, err = connection.Write(block)
		}
	}
}

// drip answers with a beginning, and then a byte now and then.
func drip(begin string) Manner {
	return func(connection net.Conn) {
		hear(connection)
		_, err := connection.Write([]byte(begin))
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ; err == nil; <-tick.C {
			_, err = connection.Write([]byte{'1'})
		}
	}
}

// silent takes whatever is said, and answers nothing.
func silent(connection net.Conn) {
	buffer := make([]byte, 4<<10)
	for {
		if _, err := connection.Read(buffer); err != nil {
			return
		}
	}
}
