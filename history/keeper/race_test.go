package keeper

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// turns lets several keepers call a store in an order that is drawn.
type turns struct {
	*bucket
	asks, may chan struct{}
}

func (s turns) wait() { s.asks <- struct{}{}; <-s.may }

func (s turns) Write(ctx context.Context, key string, data []byte) error {
	s.wait()
	return s.bucket.Write(ctx, key, data)
}

func (s turns) Delete(ctx context.Context, key string) error {
	s.wait()
	return s.bucket.Delete(ctx, key)
}

func (s turns) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	s.wait()
	return s.bucket.Read(ctx, key, offset, length)
}

func (s turns) List(ctx context.Context, prefix string, each func(string, int64, int64) error) error {
	s.wait()
	return s.bucket.List(ctx, prefix, each)
}

// race runs passes of two keepers, whose calls come in an order that is drawn. The clock goes on within the grace.
func (s *story) race(doors []turns, keepers []*Keeper, seed uint64) {
	s.bucket.now = s.now
	active, waiting, ends := map[int]bool{0: true, 1: true}, map[int]bool{}, []chan error{make(chan error, 1), make(chan error, 1)}
	for i := range doors {
		go func() {
			var err error
			for after := int64(0); after < 4 && err == nil; after++ {
				err = keepers[i].Pass(context.Background(), s.now+after*minute)
			}
			ends[i] <- err
		}()
	}
	for draw := newWorld(s.t, seed).random; len(active) > 0; {
		for _, i := range slices.Sorted(maps.Keys(active)) {
			if waiting[i] {
				continue
			}
			select {
			case <-doors[i].asks:
				waiting[i] = true
			case err := <-ends[i]:
				s.must(err)
				delete(active, i)
			}
		}
		all := slices.Sorted(maps.Keys(waiting))
		if len(all) == 0 {
			continue
		}
		i := all[0]
		if draw.IntN(20) == 0 { // now and then the other one goes on
			i = all[len(all)-1]
		}
		delete(waiting, i)
		doors[i].may <- struct{}{}
	}
}

func TestPass_IsHarmlessWhereTwoKeepersRun(t *testing.T) {
	for seed := range uint64(20) {
		s := newStory(t)
		s.now += 2 * hour
		doors, keepers := make([]turns, 2), make([]*Keeper, 2)
		for i := range doors {
			doors[i] = turns{s.bucket, make(chan struct{}), make(chan struct{})}
			keepers[i] = s.keeper(doors[i])
			keepers[i].work.step = 1 + s.random.Int64N(9000)
		}
		for round := range uint64(3) {
			s.race(doors, keepers, seed*8+round)
			s.check(fmt.Sprintf("order %d, round %d", seed, round))
			s.now += 5 * minute
		}
		s.finish(fmt.Sprintf("order %d", seed))
	}
}

// slow is a store on which one call of a keeper takes its time.
type slow struct {
	*bucket
	// is reports whether it is that call.
	is   func(call, key string) bool
	wait func()
}

func (s *slow) pause(call, key string) {
	if s.wait != nil && s.is(call, key) {
		wait := s.wait
		s.wait = nil
		wait()
	}
}

func (s *slow) Write(ctx context.Context, key string, data []byte) error {
	s.pause("write", key)
	return s.bucket.Write(ctx, key, data)
}

func (s *slow) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	s.pause("read", key)
	return s.bucket.Read(ctx, key, offset, length)
}

// TestPass_IsHarmlessWhereOneIsSlow has a keeper that goes on, with a clock ahead, after another one has done all that was due.
func TestPass_IsHarmlessWhereOneIsSlow(t *testing.T) {
	reads := 0
	for name, one := range map[string]struct {
		is      func(call, key string) bool
		minutes int
	}{
		"before its manifest":     {func(call, key string) bool { return call == "write" && strings.Contains(key, "/m/") }, 5},
		"before a final object":   {func(call, key string) bool { return call == "write" && strings.Contains(key, "/f/") }, 30},
		"within the bytes of one": {func(call, _ string) bool { reads++; return call == "read" && reads == 7 /* two times three indexes */ }, 30},
	} {
		w := newWorld(t, 1)
		key := w.cluster(1)
		for n := range int64(3) {
			w.pack(key, 0, w.now+n, func(p *pack.Writer) { w.add(p, file(1, uint64(n+1)), 0, 500, w.now) })
		}
		w.end(key, pack.UID{1})
		want := w.read(w.bucket, key)
		other := w.keeper(w.bucket)
		store := &slow{bucket: w.bucket, is: one.is, wait: func() {
			for range one.minutes {
				w.pass(other, minute)
			}
		}}
		k := w.keeper(store)
		k.work.step = 1
		w.now += 2 * minute
		w.must(k.Pass(t.Context(), w.now+hour))
		if store.wait != nil {
			t.Errorf("%s: the call never came", name)
		}
		w.same(name, want, w.read(w.bucket, key))
		for range 15 {
			w.pass(other, minute)
		}
		w.pass(other, day+2*hour)
		w.pass(other, minute)
		w.same(name+", a day later", want, w.read(w.bucket, key))
		w.tidy(key)
	}
}
