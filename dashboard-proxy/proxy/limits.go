package proxy

import (
	"net/http"
	"sync"
	"time"

	"github.com/heliostat-dev/heliostat/portal/limits"
)

// Bounds of what goes on at once: in all, of each user, and of each cluster or service. An upload holds a connection to a head for minutes, so few of them are enough.
const (
	maxUploads      = 32
	maxUploadsEach  = 4
	maxUploadsOf    = 8
	maxSockets      = 10_000
	maxSocketsEach  = 5_000
	maxRequests     = 2_000
	maxRequestsEach = 500
	maxRequestsOf   = 1_000
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

// room is the places of all that goes on.
type room struct{ uploads, sockets, requests *limits.Limiter }

// newRoom returns places, of which so many are for WebSockets.
func newRoom(sockets int) *room {
	each := min(sockets, maxSocketsEach)
	return &room{
		uploads:  limits.New(limits.Bounds{All: maxUploads, User: maxUploadsEach, Namespace: maxUploadsOf, Target: maxUploadsOf}),
		sockets:  limits.New(limits.Bounds{All: sockets, User: each, Target: each}),
		requests: limits.New(limits.Bounds{All: maxRequests, User: maxRequestsEach, Target: maxRequestsOf}),
	}
}

// take takes the places that a request needs until they are given back.
func (m *room) take(holder limits.Holder, r *http.Request, isSocket bool) (giveBack func(), err error) {
	if isSocket {
		return takeOf(m.sockets, holder, "WebSockets")
	}
	one, err := takeOf(m.requests, holder, "requests")
	isUpload := r.ContentLength < 0 || r.ContentLength > smallBody
	if err != nil || !isUpload {
		return one, err
	}
	another, err := takeOf(m.uploads, holder, "uploads")
	if err != nil {
		one()
		return nil, err
	}
	return func() {
		another()
		one()
	}, nil
}

// takeOf takes a place of a kind, or returns a Refusal that says which bound is reached.
func takeOf(from *limits.Limiter, holder limits.Holder, what string) (giveBack func(), err error) {
	giveBack, err = from.Take(holder)
	if err == nil {
		return giveBack, nil
	}
	return nil, &Refusal{Code: http.StatusServiceUnavailable, RetryAfter: 5 * time.Second,
		Text: "no more " + what + " can be under way: " + err.Error() + ": try again, or end some"}
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
