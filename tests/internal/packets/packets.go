// Package packets searches the packets of network namespaces for secrets while they pass.
//
// In: files of network namespaces, and secrets. Out: how often each secret was sent, and how many packets nobody
// searched. It finds what nothing encrypts: a secret as it is, in base64, and in the Huffman code of HTTP/2's headers,
// also where it is split over two segments. It takes root.
//
// It must never keep a packet, print a secret, or lose a packet without saying so. It reassembles nothing: segments
// that come in another order than they were sent may hide a secret that is split over them.
package packets

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Capture searches what passes in network namespaces, on all their interfaces. Its methods may be called at any time.
type Capture struct {
	sockets []*socket
	index   atomic.Pointer[index]

	mutex  sync.Mutex
	sought []form
	counts map[string]int
	// sent are the secrets that were seen, so that one that passes several interfaces counts once.
	sent map[sighting]bool
}

// sighting is a secret at a place in what a sender sent. Neither a route nor the address translation of a Service
// changes a sequence number of TCP.
type sighting struct {
	name     string
	sequence uint32
}

// LeastSecret is how many bytes a secret has: what is shorter may stand anywhere by chance.
const LeastSecret = 16

// receiveBuffer is what the kernel may keep of packets in each namespace that were not searched yet.
const receiveBuffer = 256 << 20

// Open begins a capture in the network namespaces that files hold. It needs root. Who opened it must close it.
func Open(networks ...string) (*Capture, error) { return open(receiveBuffer, networks) }

func open(buffer int, networks []string) (*Capture, error) {
	c := &Capture{counts: map[string]int{}, sent: map[sighting]bool{}}
	c.index.Store(newIndex(nil))
	for _, network := range networks {
		s, err := listen(network, buffer)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("capture packets in %s: %w", network, err)
		}
		c.sockets = append(c.sockets, s)
		s.start(c)
	}
	if len(c.sockets) == 0 {
		return nil, errors.New("capture packets: no network namespace was named")
	}
	return c, nil
}

// Seek has a secret sought from now on; what passed earlier is not searched. HTTP/2 sends a header in full once per
// connection, so begin before the connections do. Several secrets may have one name, and count together. A secret of
// fewer than LeastSecret bytes panics.
func (c *Capture) Seek(name string, secret []byte) {
	if len(secret) < LeastSecret {
		panic(fmt.Sprintf("seek the secret %s: it has %d bytes, of at least %d", name, len(secret), LeastSecret))
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.counts[name] += 0
	for _, text := range texts(secret) {
		if sought := (form{name, string(text)}); !slices.Contains(c.sought, sought) {
			c.sought = append(c.sought, sought)
		}
	}
	c.index.Store(newIndex(c.sought))
}

// see counts a secret that ends in a segment of TCP.
func (c *Capture) see(name string, sequence uint32) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if at := (sighting{name, sequence}); !c.sent[at] {
		c.sent[at] = true
		c.counts[name]++
	}
}

// seeDatagram counts a secret in a packet that is not of TCP over IPv4.
func (c *Capture) seeDatagram(name string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.counts[name]++
}

// Found returns how often each secret was sent, by its name, with 0 for one that was not seen. It waits until what
// has passed by now is searched. A segment counts once, however many interfaces and namespaces it passes and however
// often TCP repeats it; a packet without sequence numbers counts at each interface.
func (c *Capture) Found() map[string]int {
	for _, s := range c.sockets {
		s.catchUp()
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return maps.Clone(c.counts)
}

// Count returns how many packets came by now, each once per interface that it passed, and how many of those were not
// searched as the kernel had dropped them or they were cut off. While dropped is not 0, a secret that was not found
// may have been sent.
func (c *Capture) Count() (packets, dropped int) {
	for _, s := range c.sockets {
		came, lost := s.catchUp()
		packets, dropped = packets+came, dropped+lost
	}
	return packets, dropped
}

// Close ends the capture. Found and Count go on to tell of what passed before.
func (c *Capture) Close() {
	for _, s := range slices.Backward(c.sockets) {
		s.close()
	}
}
