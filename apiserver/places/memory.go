package places

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Bounds of what requests take while they are answered. A caller alone never has more than a third of it, and that is enough
// for the largest request.
const (
	maxMemory     = 96 << 20
	MaxMemoryEach = maxMemory / 3
	// smallMemory is what a request may take without a turn: most take less, and all places of requests together 32 MiB.
	smallMemory = 64 << 10
)

// ErrMemoryFull is that the requests under way take all that there is for requests.
var ErrMemoryFull = errors.New("the requests under way take as much memory as they may together")

// Memory is what requests take together while they are answered, by whose they are. It may be used by many goroutines.
type Memory struct {
	free *semaphore.Weighted

	mutex sync.Mutex
	by    map[string]*part
}

// part is that of one caller, and how many requests use it or wait for it.
type part struct {
	free  *semaphore.Weighted
	count int
}

// NewMemory returns the memory of requests.
func NewMemory() *Memory {
	return &Memory{free: semaphore.NewWeighted(maxMemory), by: map[string]*part{}}
}

// Take waits until a caller may have so many bytes, and takes them until they are given back. Where the context ends before, it
// fails by ErrCallerFull or ErrMemoryFull.
func (m *Memory) Take(ctx context.Context, key string, bytes int64) (giveBack func(), err error) {
	if bytes <= smallMemory {
		return func() {}, nil
	}
	bytes = min(bytes, MaxMemoryEach)
	own := m.join(key)
	// A caller waits for themselves first, so that nobody waits for a caller who has too much.
	if !own.free.TryAcquire(bytes) && own.free.Acquire(ctx, bytes) != nil {
		m.quit(key)
		return nil, ErrCallerFull
	}
	if m.free.Acquire(ctx, bytes) != nil {
		own.free.Release(bytes)
		m.quit(key)
		return nil, ErrMemoryFull
	}
	return sync.OnceFunc(func() {
		m.free.Release(bytes)
		own.free.Release(bytes)
		m.quit(key)
	}), nil
}

// join counts a request of a caller.
func (m *Memory) join(key string) *part {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	own := m.by[key]
	if own == nil {
		own = &part{free: semaphore.NewWeighted(MaxMemoryEach)}
		m.by[key] = own
	}
	own.count++
	return own
}

// quit counts a request of a caller no more.
func (m *Memory) quit(key string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	own := m.by[key]
	if own.count--; own.count == 0 {
		delete(m.by, key)
	}
}
