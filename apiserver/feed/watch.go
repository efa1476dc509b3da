package feed

import (
	"context"
	"errors"
	"io"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/view"
)

// awaitWithin is how long a watcher waits for a position that another server has seen.
const awaitWithin = 2 * time.Second

// ErrUnready is that the server has not read everything yet.
var ErrUnready = errors.New("the server has not read all objects yet: try again in a moment")

// Request says what to watch.
type Request struct {
	// Query is about the lines to watch. Its Sort, Limit, Continue and May do not count.
	Query view.Query
	// Since is the ID of the last event that the caller has, or the cursor of a page, and empty to begin.
	Since string
	// May returns nil where the caller may watch a kind in a namespace, or everywhere where that is empty. Else it returns
	// access.ErrForbidden, access.ErrUnauthorized, or why nobody answered.
	May func(ctx context.Context, kind, namespace string) error
}

// Watch is the stream of one watcher. It is used by one goroutine.
type Watch struct {
	feed   *Feed
	filter *view.Filter
	rights *rights
	ticker clock.Ticker

	reach *view.Reach
	// next is a reach with more than reach. It waits until the watcher has caught up.
	next *view.Reach
	// seen is the number of the last batch that was made a run, and scope the hash of what can be seen behind it.
	seen  uint64
	scope uint64
	runs  []*run
	// id is where the watch stands.
	id string
	// resume is where to go on, until deadline.
	resume   *view.Mark
	deadline time.Time
	// why is why a full state has to be sent, and empty where it has not.
	why     string
	isStale bool
	bye     string
	isOver  bool
}

// Watch begins a stream. It asks for the caller's rights first, and fails with what May returns where there is none
// at all, with view.Findings for a query or an ID that cannot be read, and with ErrUnready. The stream must be
// closed.
func (f *Feed) Watch(ctx context.Context, request Request) (*Watch, error) {
	filter, err := view.NewFilter(request.Query)
	if err != nil {
		return nil, err
	}
	if !f.isReady() {
		return nil, ErrUnready
	}
	w := &Watch{feed: f, filter: filter, id: f.view.Place(view.Mark{})}
	if err := w.begin(request.Since); err != nil {
		return nil, err
	}
	w.rights = newRights(ctx, filter, request.May, f.clock)
	w.seen = f.newest()
	if w.reach, err = w.rights.begin(f.places(w.resume)); err != nil {
		w.letGo()
		return nil, err
	}
	w.ticker = f.clock.NewTicker(confirmEach)
	return w, nil
}

// begin reads where to go on.
func (w *Watch) begin(since string) error {
	if since == "" {
		w.why = whyBegin
		return nil
	}
	mark, err := w.feed.view.ParseMark(since)
	switch {
	case errors.Is(err, view.ErrForeign):
		w.why = whyUnknown + view.ErrForeign.Error()
	case err != nil:
		return err
	case mark.At == nil:
		w.why = whyPartial
	default:
		w.resume, w.deadline = &mark, w.feed.clock.Now().Add(awaitWithin)
		w.id = since
		w.feed.await(1)
	}
	return nil
}

// await notes that one more or one less watcher waits for a position.
func (f *Feed) await(more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting += more
}

// Close ends the stream.
func (w *Watch) Close() {
	w.ticker.Stop()
	w.letGo()
}

func (w *Watch) letGo() {
	if w.resume != nil {
		w.resume = nil
		w.feed.await(-1)
	}
	w.rights.stop()
}

// ID returns where the watch stands: an ID to go on from, for comments that keep a stream alive.
func (w *Watch) ID() string { return w.id }

// Next waits for the next event. It fails when the context ends, and with io.EOF after a bye.
func (w *Watch) Next(ctx context.Context) (Event, error) {
	for {
		woken := w.feed.wokenBy()
		w.lookUp()
		if event, is := w.Poll(); is {
			return event, nil
		}
		if w.isOver {
			return Event{}, io.EOF
		}
		if err := w.sleep(ctx, woken); err != nil {
			return Event{}, err
		}
	}
}

// sleep waits until there may be something.
func (w *Watch) sleep(ctx context.Context, woken <-chan struct{}) error {
	var late <-chan time.Time
	if w.resume != nil {
		timer := w.feed.clock.NewTimer(w.deadline.Sub(w.feed.clock.Now()))
		defer timer.Stop()
		late = timer.C()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-woken:
	case <-late:
	case <-w.ticker.C():
		w.confirm()
	case answer := <-w.rights.answers:
		w.heed(answer)
	}
	return nil
}

// lookUp does what is due for the caller's rights, also while there is always something to send.
func (w *Watch) lookUp() {
	select {
	case <-w.ticker.C():
		w.confirm()
	case answer := <-w.rights.answers:
		w.heed(answer)
	default:
	}
}

func (w *Watch) confirm() { w.rights.confirm(w.reach, w.feed.places(nil)) }

func (f *Feed) newest() uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.latest()
}

func (f *Feed) wokenBy() <-chan struct{} {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.woken
}
