package limits

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

// over is a context that has ended.
func over(t *testing.T) context.Context {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	end()
	return ctx
}

// fill begins messages of a caller, and returns what ends each.
func fill(t *testing.T, arrivals *Arrivals, key string, count int) (contexts []context.Context, ends []func()) {
	t.Helper()
	for range count {
		ctx, end, err := arrivals.Begin(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		contexts, ends = append(contexts, ctx), append(ends, end)
	}
	return contexts, ends
}

func TestArrivals_LetACallerWaitForThemselves(t *testing.T) {
	arrivals := NewArrivals()
	_, ends := fill(t, arrivals, "mallory", maxArrivalsEach)
	if _, _, err := arrivals.Begin(over(t), "mallory"); !errors.Is(err, context.Canceled) {
		t.Errorf("one more of a caller is %v", err)
	}
	fill(t, arrivals, "alice", 1)
	ends[0]()
	ends[0]() // a second time is nothing
	fill(t, arrivals, "mallory", 1)
	if len(arrivals.callers.by["mallory"].value) != maxArrivalsEach {
		t.Errorf("%d places are taken", len(arrivals.callers.by["mallory"].value))
	}
}

// countOf returns how many messages of a caller arrive or wait.
func countOf(arrivals *Arrivals, key string) int {
	arrivals.callers.mutex.Lock()
	defer arrivals.callers.mutex.Unlock()
	return arrivals.callers.by[key].count
}

func TestArrivals_RefuseACallerWhoWaitsTooOften(t *testing.T) {
	arrivals := NewArrivals()
	fill(t, arrivals, "mallory", maxArrivalsEach)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, maxWaitingEach)
	for range maxWaitingEach - maxArrivalsEach {
		go func() {
			_, _, err := arrivals.Begin(ctx, "mallory")
			ended <- err
		}()
	}
	for countOf(arrivals, "mallory") < maxWaitingEach { // until all of them wait
		runtime.Gosched()
	}
	if _, _, err := arrivals.Begin(over(t), "mallory"); !errors.Is(err, ErrCallerFull) {
		t.Errorf("one that is too many is %v", err)
	}
	end()
	for range maxWaitingEach - maxArrivalsEach {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("one that waits ends by %v", err)
		}
	}
}

func TestArrivals_EndTheOldestWhereAllAreTaken(t *testing.T) {
	arrivals := NewArrivals()
	var oldest []context.Context
	var ends []func()
	for i := range maxArrivals / maxArrivalsEach {
		contexts, one := fill(t, arrivals, string(rune('a'+i)), maxArrivalsEach)
		oldest, ends = append(oldest, contexts...), append(ends, one...)
	}
	contexts, _ := fill(t, arrivals, "alice", 1)
	if !errors.Is(context.Cause(oldest[0]), ErrTooSlow) || oldest[1].Err() != nil || contexts[0].Err() != nil {
		t.Errorf("the oldest is %v, the next %v, the newest %v", context.Cause(oldest[0]), oldest[1].Err(), contexts[0].Err())
	}
	for _, end := range ends {
		end()
	}
	if len(arrivals.callers.by) != 1 || arrivals.oldest.Len() != 1 {
		t.Errorf("%d callers and %d messages are left", len(arrivals.callers.by), arrivals.oldest.Len())
	}
}

func TestMemory_LeavesNobodyAll(t *testing.T) {
	memory := NewMemory()
	take := func(ctx context.Context, key string, bytes int64) func() {
		t.Helper()
		giveBack, err := memory.Take(ctx, key, bytes)
		if err != nil {
			t.Fatal(err)
		}
		return giveBack
	}
	giveBack := take(t.Context(), "mallory", 10*maxMemory) // as much as there is for one
	if _, err := memory.Take(over(t), "mallory", 2*smallMemory); !errors.Is(err, ErrCallerFull) {
		t.Errorf("more than a third for one is %v", err)
	}
	take(t.Context(), "bob", MaxMemoryEach)
	last := take(t.Context(), "alice", MaxMemoryEach)
	if _, err := memory.Take(over(t), "carol", 2*smallMemory); !errors.Is(err, ErrMemoryFull) {
		t.Errorf("more than there is is %v", err)
	}
	take(over(t), "carol", smallMemory)()
	giveBack()
	giveBack() // a second time is nothing
	take(t.Context(), "carol", MaxMemoryEach)
	last()
	if len(memory.callers.by) != 2 {
		t.Errorf("%d callers are left", len(memory.callers.by))
	}
}
