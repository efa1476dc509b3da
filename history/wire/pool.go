package wire

import (
	"maps"
	"slices"
	"sync"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// Limits bound what all streams of an archiver take together.
type Limits struct {
	// Streams is how many there are at once, and NamespaceStreams of one namespace.
	Streams, NamespaceStreams int
	// Wide is how many bytes of room there are beyond the narrow room of each stream. No namespace has more than a quarter.
	Wide int
}

// pool has the streams and the room of all of them.
type pool struct {
	limits  Limits
	mutex   sync.Mutex
	streams map[pack.UID]*member
	counts  map[pack.UID]int // streams of a namespace
	wide    map[pack.UID]int // room of a namespace beyond the narrow one
	taken   int
	total   int // streams, and those that were replaced and have not ended
	closed  bool
}

// member is the stream of a pod.
type member struct {
	source Source
	end    func() // ends the stream
	ended  chan struct{}
	wide   int
}

func newPool(limits Limits) *pool {
	return &pool{limits: limits, streams: map[pack.UID]*member{}, counts: map[pack.UID]int{}, wide: map[pack.UID]int{}}
}

// enter takes a place for the stream of a pod. A former stream of that pod is returned and must have ended before the new one
// begins. It reports false where there is no place.
func (p *pool) enter(m *member) (former *member, isIn bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	former = p.streams[m.source.Pod]
	// A stream that replaces another one may come before that has ended, and counts beside it until then.
	spare := 0
	if former != nil {
		spare = 1
	}
	if p.total >= p.limits.Streams+spare*p.limits.Streams/8+spare || p.counts[m.source.Namespace] >= p.limits.NamespaceStreams+spare*p.limits.NamespaceStreams/8+spare {
		return nil, false
	}
	p.streams[m.source.Pod] = m
	p.total++
	p.count(m.source.Namespace, 1)
	return former, true
}

// close returns the streams that there are. Those that enter later must leave.
func (p *pool) close() []*member {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.closed = true
	return slices.Collect(maps.Values(p.streams))
}

func (p *pool) isClosed() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.closed
}

// leave gives back all that a stream has.
func (p *pool) leave(m *member) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.streams[m.source.Pod] == m {
		delete(p.streams, m.source.Pod)
	}
	p.total--
	p.count(m.source.Namespace, -1)
	p.give(m, m.wide)
	close(m.ended)
}

func (p *pool) count(namespace pack.UID, change int) {
	if p.counts[namespace] += change; p.counts[namespace] == 0 {
		delete(p.counts, namespace)
	}
}

// widen gives a stream the wide room, as far as there is some, and narrow takes back what is beyond so many bytes.
func (p *pool) widen(m *member) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	more := min(WideRoom-NarrowRoom-m.wide, p.limits.Wide-p.taken, p.limits.Wide/4-p.wide[m.source.Namespace])
	p.give(m, -max(more, 0))
}

func (p *pool) narrow(m *member, keep int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.give(m, m.wide-min(m.wide, max(keep, 0)))
}

func (p *pool) give(m *member, bytes int) {
	m.wide -= bytes
	p.taken -= bytes
	if p.wide[m.source.Namespace] -= bytes; p.wide[m.source.Namespace] == 0 {
		delete(p.wide, m.source.Namespace)
	}
}
