package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// When Go collects garbage. A server that holds much makes little garbage, so that memory is worth more than the time of a
// collection. One that holds little would collect again and again while it hands on many small requests.
const (
	collectAt    = 50       // percent of what is in use
	smallestHeap = 64 << 20 // bytes, below which nothing is collected
	weighEach    = 10 * time.Second
)

// percentFor returns after how much garbage Go collects it, in percent of the bytes in use.
func percentFor(live uint64) int {
	if live == 0 || live >= smallestHeap {
		return collectAt
	}
	return int(max(collectAt, (smallestHeap-live)*100/live))
}

// tuneCollector has Go collect garbage by what is in use, until the context ends.
func tuneCollector(ctx context.Context) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	ticker := time.NewTicker(weighEach)
	defer ticker.Stop()
	for now := collectAt; ; {
		metrics.Read(live)
		if percent := percentFor(live[0].Value.Uint64()); percent != now {
			now = percent
			debug.SetGCPercent(percent)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
