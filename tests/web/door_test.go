package web

import (
	"net"
	"sync"
)

// door is what browsers connect to: it leads to the server, and breaks connections where a test asks it to.
type door struct {
	mu   sync.Mutex
	open map[net.Conn]bool
}

func openDoor(b *bed) *door {
	b.t.Helper()
	d := &door{open: map[net.Conn]bool{}}
	listener, err := b.island.Listen(doorAddress)
	must(b.t, err)
	b.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			d.note(connection, true)
			go func() {
				defer d.note(connection, false)
				join(connection, func() (net.Conn, error) { return b.island.Dial(serverAddress) })
			}()
		}
	}()
	return d
}

func (d *door) note(connection net.Conn, isOpen bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if isOpen {
		d.open[connection] = true
	} else {
		delete(d.open, connection)
	}
}

// drop breaks all connections.
func (d *door) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for connection := range d.open {
		_ = connection.Close()
	}
}
