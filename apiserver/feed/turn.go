package feed

import (
	"errors"

	"github.com/heliostat-dev/heliostat/apiserver/view"
)

// Why a sync comes.
const (
	whyBegin   = "the watch begins"
	whyUnknown = "the watch cannot go on from this ID: "
	whyPartial = whyUnknown + "it is of the middle of a full state, or of a change of rights"
	whyLag     = "the watch has fallen too far behind"
	whyRights  = "the caller's rights changed while the watch was behind"
)

// Why a watch ends.
const (
	whyEnds        = "the server ends: watch again, since the last ID"
	whyForbidden   = "the caller has no right to it, or no longer: ask for the right"
	whyNobody      = "the API server does not accept the caller's token, or no longer: watch again with another token"
	whyUnconfirmed = "the API server did not confirm the caller's rights: watch again, since the last ID"
)

// run are events on their way: items of a full state, or changes.
type run struct {
	items   []*item
	changes []*change
	next    int
	// isFull is that a ready follows. isChosen is that the changes are for this watcher alone.
	isFull, isChosen bool
	// place and scope are where the run leads.
	place func() string
	scope uint64
}

func (r *run) isOver() bool { return r.next >= len(r.items)+len(r.changes) }

// Poll returns the next event if there is one now. A caller that gathers events must come back to Next soon: it alone asks for
// rights.
func (w *Watch) Poll() (Event, bool) {
	for !w.isOver {
		if w.bye == "" && w.rights.isUnsure() {
			return Event{}, false
		}
		w.goOn()
		for _, source := range []func() (Event, bool){w.end, w.restart, w.step, w.tell} {
			if event, is := source(); is {
				return event, true
			}
		}
		if w.resume != nil || !w.take() {
			return Event{}, false
		}
	}
	return Event{}, false
}

// end returns the bye, once there is a reason for it.
func (w *Watch) end() (Event, bool) {
	if w.bye == "" && w.feed.isEnded.Load() {
		w.bye = whyEnds
	}
	if w.bye == "" {
		return Event{}, false
	}
	w.isOver = true
	return Event{ID: w.id, Type: Bye, Detail: w.bye}, true
}

// restart begins a full state where one has to be sent.
func (w *Watch) restart() (Event, bool) {
	if w.why == "" {
		return Event{}, false
	}
	event := Event{Type: Sync, Detail: w.why}
	f := w.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.next != nil {
		w.reach, w.next = w.next, nil
	}
	w.jump(false)
	w.runs = []*run{{items: f.sorted(), isFull: true, place: f.place, scope: w.scope}}
	w.why, w.isStale = "", false
	w.id = f.view.Place(view.Mark{})
	event.ID = w.id
	return event, true
}

// jump goes over to what is published now. Places that were opened since rights were asked for may not have been
// asked about. Those in the reach stay in it where the watcher has lines of them. The feed is locked.
func (w *Watch) jump(hasLines bool) {
	f := w.feed
	for _, next := range f.ring[max(w.seen+1, f.first)-f.first:] {
		for _, place := range next.opened {
			if !hasLines || !w.reach.Has(place.Kind, place.Namespace) {
				w.open(place)
			}
		}
	}
	w.rights.askFresh(w.reach)
	w.seen, w.scope = f.latest(), w.reach.Scope(w.filter, f.hasLines)
}

// step returns the next event of a run.
func (w *Watch) step() (Event, bool) {
	for len(w.runs) > 0 {
		r := w.runs[0]
		for !r.isOver() {
			if event, is := w.event(r); is {
				return event, true
			}
		}
		w.runs = w.runs[1:]
		w.id = view.JoinMark(r.place(), r.scope)
		if r.isFull {
			return Event{ID: w.id, Type: Ready}, true
		}
	}
	return Event{}, false
}

// event returns what a watcher gets of the next part of a run, if anything.
func (w *Watch) event(r *run) (Event, bool) {
	at := r.next
	r.next++
	if len(r.items) > 0 {
		one := r.items[at]
		return Event{ID: w.id, Type: Put, Line: one.line, encoded: one.encoded}, w.isFor(one.line)
	}
	one := r.changes[at]
	var event Event
	switch {
	case one.after != nil && (r.isChosen || w.isFor(one.after.line)):
		event = Event{Type: Put, Line: one.after.line, encoded: one.after.encoded}
	case one.before != nil && (r.isChosen || w.isFor(one.before.line)):
		event = Event{Type: Del, Line: nameOf(one.before.line), encoded: one.deleted}
	default:
		return Event{}, false
	}
	if !r.isChosen {
		w.id = one.idFor(r.scope)
	} else if r.isOver() {
		w.id = view.JoinMark(r.place(), r.scope)
	}
	event.ID = w.id
	return event, true
}

// isFor reports whether a line is one that the watcher gets.
func (w *Watch) isFor(line *view.Line) bool {
	return line != nil && w.reach.Has(line.Kind, line.Namespace) && w.filter.Matches(line)
}

// tell returns an event about the server, to a watcher that has all lines.
func (w *Watch) tell() (Event, bool) {
	w.feed.mu.RLock()
	isStale := w.feed.isStale
	w.feed.mu.RUnlock()
	if w.resume != nil || w.isStale == isStale {
		return Event{}, false
	}
	w.isStale = isStale
	if isStale {
		return Event{ID: w.id, Type: Stale, Detail: "the API server does not answer: lines may be out of date"}, true
	}
	return Event{ID: w.id, Type: Ready, Detail: "the API server answers again"}, true
}

// take makes a run of the next batch, or of what more can be seen. It reports whether there is something.
func (w *Watch) take() bool {
	f := w.feed
	f.mu.RLock()
	defer f.mu.RUnlock()
	switch {
	case w.seen+1 < f.first:
		w.why = whyLag
		return true
	case w.seen == f.latest():
		w.id = view.JoinMark(f.place(), w.scope)
		return w.widen()
	}
	w.seen++
	next := f.ring[w.seen-f.first]
	if w.filter.IsOpen() {
		w.follow(next)
	}
	w.runs = []*run{{changes: next.changes, place: next.place, scope: w.scope}}
	return true
}

// follow goes along with places that have lines or have none any more, where the caller did not name any. The right
// to a place that had no lines was not asked for meanwhile.
func (w *Watch) follow(next *batch) {
	for _, place := range next.opened {
		w.open(place)
	}
	for _, place := range next.emptied {
		w.scope -= w.reach.ScopeOf(w.filter, place)
	}
	w.rights.askFresh(w.reach)
}

// open notes that the right to a place has to be asked for.
func (w *Watch) open(place view.Place) {
	if w.filter.IsOpen() && w.filter.Covers(place) && !w.reach.IsWide(place.Kind) {
		w.reach = w.reach.Without(place)
		w.rights.fresh = append(w.rights.fresh, place)
	}
}

// widen goes over to a reach that has waited. The watcher has caught up, and the feed is locked.
func (w *Watch) widen() bool {
	if w.next == nil {
		return false
	}
	before := w.reach
	w.reach, w.next = w.next, nil
	w.scope = w.reach.Scope(w.filter, w.feed.hasLines)
	only := &run{isChosen: true, place: w.feed.place, scope: w.scope}
	for _, one := range w.feed.items {
		if !w.filter.Matches(one.line) {
			continue
		}
		had, has := before.Has(one.line.Kind, one.line.Namespace), w.isFor(one.line)
		if had && !has {
			only.changes = append(only.changes, &change{key: one.line.Key, before: one})
		}
		if !had && has {
			only.changes = append(only.changes, &change{key: one.line.Key, after: one})
		}
	}
	w.feed.mark(only.changes, nil, nil)
	w.runs = []*run{only}
	w.id = w.feed.view.Place(view.Mark{})
	return true
}

// heed goes by what was answered about the caller's rights.
func (w *Watch) heed(answer answer) {
	if w.bye = w.rights.judge(answer); w.bye != "" {
		return
	}
	isCurrent := w.prune()
	now := w.reach
	if w.next != nil {
		now = w.next
	}
	next := apply(now, answer)
	switch {
	case next.IsEmpty():
		w.bye = whyForbidden
		return
	case next.Equals(now):
	case w.resume != nil:
		w.reach = next
	case isCurrent || next.Includes(w.reach):
		w.next = next
	default: // what the watcher has not got yet must not be sent any more
		w.reach, w.next = next, nil
		w.runs, w.why = nil, whyRights
	}
	w.rights.askFresh(next)
}

// prune forgets places that have no lines, and reports whether the watcher has all that is published.
func (w *Watch) prune() bool {
	w.feed.mu.RLock()
	defer w.feed.mu.RUnlock()
	if len(w.runs) > 0 || w.resume != nil || w.why != "" || w.seen != w.feed.latest() {
		return false
	}
	if w.filter.IsOpen() {
		for _, place := range w.reach.Places() {
			if place.Namespace != "" && !w.feed.hasLines(place) {
				w.reach = w.reach.Without(place)
			}
		}
	}
	return true
}

// goOn finds the way from where the caller says that it is, or decides that a full state is needed.
func (w *Watch) goOn() {
	if w.resume == nil {
		return
	}
	runs, err := w.way(w.resume)
	if errors.Is(err, view.ErrAhead) && w.feed.clock.Now().Before(w.deadline) {
		return
	}
	w.resume = nil
	w.feed.await(-1)
	if err != nil {
		w.why = whyUnknown + err.Error()
		return
	}
	w.runs = runs
}

// errScope is that a mark is of something else that can be seen.
var errScope = errors.New("it is of another query, or the caller's rights have changed")

// way returns the changes that lead from a mark to what is published now: first to the position of the mark, where it
// is in the middle of a batch, and then on.
func (w *Watch) way(from *view.Mark) ([]*run, error) {
	f := w.feed
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.at.Covers(from.At) {
		return nil, view.ErrAhead
	}
	then, err := f.view.Since(from.At)
	if err != nil {
		return nil, err
	}
	if w.reach.Scope(w.filter, f.hadLines(then)) != from.Scope {
		return nil, errScope
	}
	var runs []*run
	if from.Last != nil {
		before, err := f.view.Since(from.Before)
		if err != nil {
			return nil, err
		}
		rest := &run{place: f.placeOf(from.At), scope: from.Scope}
		for key, line := range before {
			after := f.items[key]
			if former, differs := then[key]; differs {
				after = itemOf(former)
			}
			if key.Compare(*from.Last) > 0 {
				rest.changes = appendChange(rest.changes, key, line, after)
			}
		}
		f.mark(rest.changes, from.Before, from.At)
		runs = append(runs, rest)
	}
	w.jump(true)
	on := &run{place: f.place, scope: w.scope}
	for key, line := range then {
		on.changes = appendChange(on.changes, key, line, f.items[key])
	}
	f.mark(on.changes, from.At, f.at)
	return append(runs, on), nil
}

// hadLines returns a function that reports whether a place had lines, by lines that were different then.
func (f *Feed) hadLines(then map[view.Key]*view.Line) func(view.Place) bool {
	more := map[view.Place]int{}
	for key, line := range then {
		place := view.Place{Kind: key.Kind, Namespace: key.Namespace}
		if line != nil {
			more[place]++
		}
		if f.items[key] != nil {
			more[place]--
		}
	}
	return func(place view.Place) bool { return f.counts[place]+more[place] > 0 }
}

// appendChange appends a change if there is one.
func appendChange(changes []*change, key view.Key, before *view.Line, after *item) []*change {
	if before.Same(lineOf(after)) {
		return changes
	}
	return append(changes, &change{key: key, before: itemOf(before), after: after})
}

// itemOf returns an item of a line that is published no more, where there is one.
func itemOf(line *view.Line) *item {
	if line == nil {
		return nil
	}
	return newItem(line)
}
