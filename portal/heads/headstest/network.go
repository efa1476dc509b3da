package headstest

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// Network leads connections to listeners, by pipes within the process.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*Listener
	pipes     []net.Conn
	dials     map[string]int
}

// NewNetwork makes a network in which nobody listens.
func NewNetwork() *Network {
	return &Network{listeners: map[string]*Listener{}, dials: map[string]int{}}
}

// Listen returns a listener at a host:port, in place of a former one.
func (n *Network) Listen(address string) *Listener {
	l := &Listener{address: address, incoming: make(chan net.Conn), closed: make(chan struct{})}
	n.Lead(address, l)
	return l
}

// Lead leads what is dialled at an address to a listener, nowhere if that is nil.
func (n *Network) Lead(address string, to *Listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[address] = to; to == nil {
		delete(n.listeners, address)
	}
}

// Break breaks all connections.
func (n *Network) Break() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, pipe := range n.pipes {
		_ = pipe.Close()
	}
	n.pipes = nil
}

// Dials is how often an address was dialled.
func (n *Network) Dials(address string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[address]
}

// Connect is a headclient.Connect.
func (n *Network) Connect(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.dials[address]++
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	if l == nil {
		return nil, refused
	}
	here, there := net.Pipe()
	select {
	case l.incoming <- there:
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pipes = append(n.pipes, here, there)
	return here, nil
}

// Listener is a net.Listener of a Network.
type Listener struct {
	address  string
	incoming chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case pipe := <-l.incoming:
		return pipe, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses further connections.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns what was asked for.
func (l *Listener) Addr() net.Addr { return place(l.address) }

type place string

// Network returns the name of the network.
func (place) Network() string { return "pipe" }

// String returns the address.
func (p place) String() string { return string(p) }
