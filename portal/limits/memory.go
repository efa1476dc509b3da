package limits

import (
	"context"
	"errors"
	"math"
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
	free    *semaphore.Weighted
	callers callers[*semaphore.Weighted]
}

// NewMemory returns the memory of requests.
func NewMemory() *Memory { return &Memory{free: semaphore.NewWeighted(maxMemory)} }

// Take waits until a caller may have so many bytes, and takes them until they are given back. Where the context ends before, it
// fails by ErrCallerFull or ErrMemoryFull.
func (m *Memory) Take(ctx context.Context, key string, bytes int64) (giveBack func(), err error) {
	if bytes <= smallMemory {
		return func() {}, nil
	}
	bytes = min(bytes, MaxMemoryEach)
	own, _ := m.callers.join(key, math.MaxInt, func() *semaphore.Weighted { return semaphore.NewWeighted(MaxMemoryEach) })
	// A caller waits for themselves first, so that nobody waits for a caller who has too much.
	if !own.TryAcquire(bytes) && own.Acquire(ctx, bytes) != nil {
		m.callers.quit(key)
		return nil, ErrCallerFull
	}
	if m.free.Acquire(ctx, bytes) != nil {
		own.Release(bytes)
		m.callers.quit(key)
		return nil, ErrMemoryFull
	}
	return sync.OnceFunc(func() {
		m.free.Release(bytes)
		own.Release(bytes)
		m.callers.quit(key)
	}), nil
}
