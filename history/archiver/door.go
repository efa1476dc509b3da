package archiver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// door takes connections, makes their TLS, and hands them to the server of their role: who calls is found before a byte of the call is
// read.
type door struct {
	listener net.Listener
	settings *tls.Config
	limits   limits
	// room returns where a connection goes on.
	room func(tls.ConnectionState) *room
	log  *slog.Logger

	mutex sync.Mutex
	open  int
	hosts map[string]int
}

// greetTime is how long a peer may take for its handshake.
const greetTime = 10 * time.Second

// serve takes connections until the listener is closed.
func (d *door) serve() error {
	wait := time.Duration(0)
	for {
		connection, err := d.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil { // as where the process has too many open files
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			d.log.Warn("Cannot take a connection", "err", err)
			<-time.After(wait)
			continue
		}
		wait = 0
		guest, is := d.enter(connection)
		if !is {
			_ = connection.Close() // nothing was read from it
			continue
		}
		go d.greet(guest)
	}
}

// greet makes the TLS of a connection, and hands it on. A peer that fails says nothing that is worth a line of the log.
func (d *door) greet(guest *guest) {
	ctx, cancel := context.WithTimeout(context.Background(), greetTime)
	defer cancel()
	secured := tls.Server(guest, d.settings)
	if err := secured.HandshakeContext(ctx); err != nil {
		d.log.Debug("A handshake failed", "peer", guest.host, "err", err)
		_ = guest.Close() // TLS said why
		return
	}
	state := secured.ConnectionState()
	if state.NegotiatedProtocol != "h2" || !d.room(state).let(secured) {
		_ = secured.Close() // nobody serves it
	}
}

// guest is a connection that is counted.
type guest struct {
	net.Conn
	door *door
	host string
	once sync.Once
}

// Close closes the connection, and counts it no more.
func (g *guest) Close() error {
	g.once.Do(func() {
		g.door.mutex.Lock()
		defer g.door.mutex.Unlock()
		g.door.open--
		if g.door.hosts[g.host]--; g.door.hosts[g.host] == 0 {
			delete(g.door.hosts, g.host)
		}
	})
	return g.Conn.Close()
}

// enter counts a connection, and reports false where there are too many.
func (d *door) enter(connection net.Conn) (*guest, bool) {
	host, _, err := net.SplitHostPort(connection.RemoteAddr().String())
	if err != nil {
		host = connection.RemoteAddr().String()
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.open >= d.limits.connections || d.hosts[host] >= d.limits.hostConnections {
		return nil, false
	}
	d.open++
	d.hosts[host]++
	return &guest{Conn: connection, door: d, host: host}, true
}

// room is the listener of a server: what was let in.
type room struct {
	address net.Addr
	guests  chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func newRoom(address net.Addr) *room {
	return &room{address: address, guests: make(chan net.Conn), closed: make(chan struct{})}
}

// let hands a connection to the server, and reports false where that has ended.
func (r *room) let(connection net.Conn) bool {
	select {
	case r.guests <- connection:
		return true
	case <-r.closed:
		return false
	}
}

// Accept returns a connection that was let in.
func (r *room) Accept() (net.Conn, error) {
	select {
	case connection := <-r.guests:
		return connection, nil
	case <-r.closed:
		return nil, fmt.Errorf("take a connection: %w", net.ErrClosed)
	}
}

// Close lets no other connection in.
func (r *room) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// Addr returns the address of the listener in front.
func (r *room) Addr() net.Addr { return r.address }
