// Package feed is the streams of changes: for each watcher the lines that it asked for, and then each change of one.
//
// In: the lines of a view, and what may be seen by whom, asked again and again. Out: events, each encoded once
// however many watchers get it. Changes of one object within a window of 150 ms arrive as one. A watcher is a cursor
// into a ring that all share: it has no queue, and one that lags behind the ring gets the full state again.
//
// What is guaranteed: a watcher that applies its events in their order has the same lines as the view whenever all
// events so far were read. No put repeats what a watcher has, and no del is of what it does not have. This holds
// across servers: the ID of an event says up to which resourceVersion each kind was read, not what one process
// counted. A server goes on from an ID if its memory reaches back so far and it has seen as much, for which it waits
// 2 s. Else it sends a new sync that says why.
//
// It must never send a line without a right to it that was confirmed within the last 30 s.
package feed

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/view"
)

// How changes are gathered, and how many are kept.
const (
	// A page paints a change within 200 ms, and needs some of them itself. A longer window spares no CPU.
	window = 150 * time.Millisecond
	// keptChanges is how many changes the ring has.
	keptChanges = 4096
)

// item is a line that was published.
type item struct {
	line    *view.Line
	encoded func() []byte
}

func newItem(line *view.Line) *item {
	return &item{line: line, encoded: sync.OnceValue(func() []byte { return encode(Event{Type: Put, Line: line}) })}
}

// change is one object before and after a batch. One of the two may be nil.
type change struct {
	key           view.Key
	before, after *item
	// place is the text of the mark after this change, and deleted the encoded del.
	place   func() string
	deleted func() []byte
	// latest is the ID that was made last. Most watchers see the same, and share it.
	latest atomic.Pointer[scopedID]
}

// scopedID is an ID and the scope that it was made for.
type scopedID struct {
	scope uint64
	text  string
}

// idFor returns the ID after this change for watchers of a scope.
func (c *change) idFor(scope uint64) string {
	latest := c.latest.Load()
	if latest == nil || latest.scope != scope {
		latest = &scopedID{scope, view.JoinMark(c.place(), scope)}
		c.latest.Store(latest)
	}
	return latest.text
}

func lineOf(one *item) *view.Line {
	if one == nil {
		return nil
	}
	return one.line
}

// batch are changes that were published together, by key.
type batch struct {
	changes []*change
	// opened are places that had no line before and have one now, and emptied those that have none any more.
	opened, emptied []view.Place
	// place is the text of the mark behind the batch.
	place func() string
}

// Feed publishes changes to watchers. It may be used by many goroutines.
type Feed struct {
	view  *view.View
	clock clock.WithTicker
	// isEnded is that the server ends.
	isEnded atomic.Bool

	mu     sync.RWMutex
	at     view.Position
	place  func() string
	items  map[view.Key]*item
	counts map[view.Place]int
	// ring has the last batches; the first one has the number first.
	ring  []*batch
	first uint64
	held  int
	keep  int
	// full are all items by key, made for the first one that asks after a batch.
	full []*item
	// isStale is that the view may be behind.
	isStale bool
	// waiting counts watchers that wait for a position.
	waiting int
	woken   chan struct{}
}

// New returns a feed of a view, which takes changes from no other place. Run publishes.
func New(of *view.View, with clock.WithTicker) *Feed {
	return &Feed{
		view: of, clock: with, first: 1, keep: keptChanges,
		items: map[view.Key]*item{}, counts: map[view.Place]int{}, woken: make(chan struct{}),
	}
}

// Run publishes changes until the context ends. Then every watcher gets a bye.
func (f *Feed) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-f.view.Changes():
			f.pause(ctx)
			f.publish()
		}
	}
	f.isEnded.Store(true)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake()
}

// pause lets a window pass, so that changes within it are published together.
func (f *Feed) pause(ctx context.Context) {
	timer := f.clock.NewTimer(window)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

// publish takes what has changed and wakes watchers if there is something for them.
func (f *Feed) publish() {
	if !f.view.IsSynced() {
		return
	}
	isStale := f.view.Lost() != nil
	f.mu.Lock()
	defer f.mu.Unlock()
	lines, at := f.view.Take()
	next := &batch{}
	had := map[view.Place]int{}
	for key, line := range lines {
		if before := f.items[key]; !line.Same(lineOf(before)) {
			next.changes = append(next.changes, f.apply(key, before, line, had))
		}
	}
	for place, count := range had {
		if count == 0 && f.hasLines(place) {
			next.opened = append(next.opened, place)
		}
		if count > 0 && !f.hasLines(place) {
			next.emptied = append(next.emptied, place)
		}
	}
	isNews := len(next.changes) > 0 || isStale != f.isStale || f.waiting > 0
	f.place = f.placeOf(at)
	if len(next.changes) > 0 {
		f.full = nil
	}
	if len(next.changes) > 0 && f.at != nil { // nobody watches before the first time
		next.place = f.place
		f.mark(next.changes, f.at, at)
		f.append(next)
	}
	f.at, f.isStale = at, isStale
	if isNews {
		f.wake()
	}
}

// apply puts a line into the published state. had gets how many lines a place had before.
func (f *Feed) apply(key view.Key, before *item, line *view.Line, had map[view.Place]int) *change {
	one := &change{key: key, before: before}
	place := view.Place{Kind: key.Kind, Namespace: key.Namespace}
	if _, is := had[place]; !is {
		had[place] = f.counts[place]
	}
	switch {
	case line == nil:
		delete(f.items, key)
		if f.counts[place]--; f.counts[place] == 0 {
			delete(f.counts, place)
		}
	case before == nil:
		f.counts[place]++
	}
	if line != nil {
		one.after = newItem(line)
		f.items[key] = one.after
	}
	return one
}

// placeOf returns the text of the mark at a position, made when it is needed first.
func (f *Feed) placeOf(at view.Position) func() string {
	return sync.OnceValue(func() string { return f.view.Place(view.Mark{At: at}) })
}

// mark sorts changes that lead from one position to another, and gives them what watchers share.
func (f *Feed) mark(changes []*change, before, at view.Position) {
	slices.SortFunc(changes, func(a, b *change) int { return a.key.Compare(b.key) })
	for i, one := range changes {
		mark := view.Mark{At: at}
		if i < len(changes)-1 {
			mark.Before, mark.Last = before, &one.key
		}
		one.place = sync.OnceValue(func() string { return f.view.Place(mark) })
		if gone := lineOf(one.before); gone != nil {
			one.deleted = sync.OnceValue(func() []byte { return encode(Event{Type: Del, Line: nameOf(gone)}) })
		}
	}
}

// append puts a batch into the ring and drops the oldest ones.
func (f *Feed) append(next *batch) {
	f.ring = append(f.ring, next)
	f.held += len(next.changes)
	for f.held > f.keep && len(f.ring) > 1 {
		f.held -= len(f.ring[0].changes)
		f.ring[0] = nil
		f.ring = f.ring[1:]
		f.first++
	}
}

func (f *Feed) wake() {
	close(f.woken)
	f.woken = make(chan struct{})
}

// latest is the number of the last batch.
func (f *Feed) latest() uint64 { return f.first + uint64(len(f.ring)) - 1 }

// hasLines reports whether a place has lines. The caller holds the lock.
func (f *Feed) hasLines(place view.Place) bool { return f.counts[place] > 0 }

// isReady reports whether there is something to watch.
func (f *Feed) isReady() bool {
	f.mu.RLock()
	isPublished := f.at != nil
	f.mu.RUnlock()
	if !isPublished && f.view.IsSynced() {
		f.publish() // the first time, so that no watcher waits for a window
		return true
	}
	return isPublished
}

// places returns where there are lines, and where there were some at a mark.
func (f *Feed) places(mark *view.Mark) []view.Place {
	f.mu.RLock()
	defer f.mu.RUnlock()
	places := slices.Collect(maps.Keys(f.counts))
	if mark == nil {
		return places
	}
	then, err := f.view.Since(mark.At)
	if err != nil { // a full state is sent
		return places
	}
	for _, line := range then {
		if place := placeOf(line); line != nil && !f.hasLines(place) && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return places
}

func placeOf(line *view.Line) view.Place {
	if line == nil {
		return view.Place{}
	}
	return view.Place{Kind: line.Kind, Namespace: line.Namespace}
}

// sorted returns all items by key. Watchers share them. The caller holds the lock for writing.
func (f *Feed) sorted() []*item {
	if f.full == nil {
		f.full = make([]*item, 0, len(f.items))
		for _, one := range f.items {
			f.full = append(f.full, one)
		}
		slices.SortFunc(f.full, func(a, b *item) int { return a.line.Compare(b.line.Key) })
	}
	return f.full
}

// nameOf returns a line that only names its object.
func nameOf(line *view.Line) *view.Line { return &view.Line{Key: line.Key, UID: line.UID} }
