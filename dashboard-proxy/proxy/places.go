package proxy

import (
	"net/http"
	"sync"
	"time"
)

// Bounds of what goes on at once. An upload holds a connection to a head for minutes, so few of them are enough.
const (
	maxUploads      = 32
	maxSockets      = 10_000
	maxSocketsEach  = 5_000
	maxRequests     = 2_000
	maxRequestsEach = 500
	// smallBody is up to which size a body of known length is no upload.
	smallBody = 1 << 20
)

// SocketsFor returns for how many WebSockets so many open files are enough; 0 is that there is no limit of them. Each needs
// two, and some are left for all else: a server that has no file left answers nobody.
func SocketsFor(files uint64) int {
	const others = 1_000
	if files == 0 {
		return maxSockets
	}
	return int(min(maxSockets, (files-min(files, others))/2))
}

// places are those of all that goes on.
type places struct{ uploads, sockets, requests *counter }

// newPlaces returns places, of which so many are for WebSockets.
func newPlaces(sockets int) *places {
	return &places{
		uploads: newCounter(maxUploads, maxUploads), sockets: newCounter(sockets, min(sockets, maxSocketsEach)),
		requests: newCounter(maxRequests, maxRequestsEach),
	}
}

// take takes the places that a request needs until they are given back.
func (p *places) take(key string, r *http.Request, isSocket bool) (giveBack func(), err error) {
	if isSocket {
		return p.sockets.take(key, "WebSockets")
	}
	one, err := p.requests.take(key, "requests")
	isUpload := r.ContentLength < 0 || r.ContentLength > smallBody
	if err != nil || !isUpload {
		return one, err
	}
	another, err := p.uploads.take(key, "uploads")
	if err != nil {
		one()
		return nil, err
	}
	return func() {
		another()
		one()
	}, nil
}

// counter counts what goes on, by whose it is.
type counter struct {
	all, each int

	mutex sync.Mutex
	by    map[string]int
	taken int
}

func newCounter(all, each int) *counter { return &counter{all: all, each: each, by: map[string]int{}} }

func (c *counter) take(key, what string) (giveBack func(), err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.taken >= c.all || c.by[key] >= c.each {
		return nil, &Refusal{Code: http.StatusServiceUnavailable, RetryAfter: 5 * time.Second,
			Text: "there are as many " + what + " under way as there can be: try again, or end some"}
	}
	c.by[key]++
	c.taken++
	return func() { c.giveBack(key) }, nil
}

func (c *counter) giveBack(key string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.taken--
	if c.by[key]--; c.by[key] == 0 {
		delete(c.by, key)
	}
}

func (c *counter) count() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.taken
}

// buffers are those that bodies are copied through. They are used again.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

func newBuffers() *buffers {
	return &buffers{pool: sync.Pool{New: func() any { return new([bufferSize]byte) }}}
}

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if one, is := b.pool.Get().(*[bufferSize]byte); is {
		return one[:]
	}
	return make([]byte, bufferSize)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(one []byte) {
	if len(one) == bufferSize {
		b.pool.Put((*[bufferSize]byte)(one))
	}
}
