package server

import (
	"crypto/sha256"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/wire"
)

// What a connection may do before it has proved that it knows the token.
const (
	// A connection has patience to prove it, in introduction bytes: two small calls, with all
	// that HTTP/2 says around them.
	patience     = wire.Greeting
	introduction = 16 << 10
	// As many connections may wait; when there is one more, the one that waits for the
	// longest goes. Each costs about 100 KiB.
	waiting = 32
	// Each source may make as many connections each period. An honest operator makes one.
	newcomers = 10
	period    = time.Second
)

var errTalkative = errors.New("it sent too much before it proved the token")

// door is a listener that lets strangers in only for a moment.
type door struct {
	net.Listener

	mu sync.Mutex
	// recent counts the connections of a source in the last period; the machine itself is
	// one source, because it has millions of addresses. strangers are those that have
	// proved no token, the earliest first.
	recent    map[netip.Addr]int
	strangers []*visitor
}

func newDoor(listener net.Listener) *door {
	return &door{Listener: listener, recent: map[netip.Addr]int{}}
}

// Accept waits for a connection that may come in.
func (d *door) Accept() (net.Conn, error) {
	for {
		connection, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !d.welcome(source(connection.RemoteAddr())) {
			_ = connection.Close() // nobody wants to know
			continue
		}
		v := &visitor{Conn: connection, door: d}
		v.leave()
		return v, nil
	}
}

// welcome reports whether a source may make one more connection now.
func (d *door) welcome(from netip.Addr) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recent[from] >= newcomers {
		return false
	}
	d.recent[from]++
	time.AfterFunc(period, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.recent[from]--; d.recent[from] == 0 {
			delete(d.recent, from)
		}
	})
	return true
}

func source(address net.Addr) netip.Addr {
	parsed, err := netip.ParseAddrPort(address.String())
	if err != nil || parsed.Addr().Unmap().IsLoopback() {
		return netip.Addr{}
	}
	return parsed.Addr().Unmap()
}

// visitor is a connection.
type visitor struct {
	net.Conn
	door *door

	// The door's lock guards these.
	stranger bool
	closed   bool
	read     int
	patience *time.Timer

	// The server's lock guards these: what the next proof is of, and the digest of the token that was proved.
	nonce  []byte
	proved [sha256.Size]byte
}

// address is a visitor's, by which it is found again.
type address struct {
	net.Addr
	visitor *visitor
}

// RemoteAddr is where the visitor comes from.
func (v *visitor) RemoteAddr() net.Addr { return address{v.Conn.RemoteAddr(), v} }

// leave makes a visitor a stranger, at first and when its stream has ended.
func (v *visitor) leave() {
	if longest := v.wait(); longest != nil {
		_ = longest.Close() // nobody wants to know
	}
}

// wait adds a visitor to the strangers. It gives the one that must go for it.
func (v *visitor) wait() (goes *visitor) {
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	if v.closed || v.stranger {
		return nil
	}
	v.stranger = true
	v.patience = time.AfterFunc(patience, func() { _ = v.Close() })
	if len(v.door.strangers) == waiting {
		goes = v.door.strangers[0]
	}
	v.door.strangers = append(v.door.strangers, v)
	return goes
}

// stay makes a visitor one that has proved the token.
func (v *visitor) stay() {
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	v.known()
}

// known ends that a visitor is a stranger. The caller holds the lock.
func (v *visitor) known() {
	v.stranger = false
	v.patience.Stop()
	v.door.strangers = slices.DeleteFunc(v.door.strangers, func(other *visitor) bool { return other == v })
}

// Read reads from a visitor, from a stranger only so much.
func (v *visitor) Read(p []byte) (int, error) {
	n, err := v.Conn.Read(p)
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	if !v.stranger {
		return n, err
	}
	if v.read += n; v.read > introduction {
		return 0, errTalkative
	}
	return n, err
}

// Close ends the connection.
func (v *visitor) Close() error {
	v.door.mu.Lock()
	v.known()
	v.closed = true
	v.door.mu.Unlock()
	return v.Conn.Close()
}
