package headclient

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// partMemory is what reading a part of an answer takes, in bytes: up to 180 were measured of Protocol Buffers, and
	// 210 of Serve's JSON.
	partMemory = 220
	// smallMemory is what an answer may take without a turn. Those of most honest heads take less.
	smallMemory = 1 << 20
)

// Memory is what clients together may use at once to read large answers, so that many hostile
// heads take no more than a few. A nil Memory has no limit.
type Memory struct {
	size int64
	free *semaphore.Weighted
}

// NewMemory makes a Memory of so many bytes.
func NewMemory(bytes int64) *Memory {
	return &Memory{size: bytes, free: semaphore.NewWeighted(bytes)}
}

// take waits until so many bytes are free. A request above the size waits for the whole. The
// caller gives them back by calling what it returns. It fails when the context ends.
func (m *Memory) take(ctx context.Context, bytes int64) (giveBack func(), err error) {
	if m == nil || bytes <= smallMemory {
		return func() {}, nil
	}
	bytes = min(bytes, m.size)
	if err := m.free.Acquire(ctx, bytes); err != nil {
		return nil, fmt.Errorf("wait for memory to read a large answer: %w", err)
	}
	return sync.OnceFunc(func() { m.free.Release(bytes) }), nil
}
