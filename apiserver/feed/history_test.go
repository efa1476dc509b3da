package feed

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
)

// histories is how many are played, unless HELIOSTAT_HISTORIES gives another number.
const histories = 200

// caller is a watcher as it is outside of the server: it knows what it was told, and nothing else.
type caller struct {
	query  view.Query
	rights may
	watch  *Watch
	has    map[view.Key]view.Line
	since  string
	// resumed counts streams that went on without a sync, and begun those that were asked to.
	resumed, begun int
	isResuming     bool
}

// connect begins a stream on a server, from where the client is.
func (c *caller) connect(t *testing.T, to *replica) {
	t.Helper()
	watch, err := to.feed.Watch(t.Context(), Request{Query: c.query, Since: c.since, May: c.rights.ask})
	if errors.Is(err, access.ErrForbidden) {
		c.since, c.has = "", map[view.Key]view.Line{} // what it may not see any more, it forgets
		return
	}
	if err != nil {
		t.Fatalf("watch since %q: %v", c.since, err)
	}
	c.watch = watch
	if c.isResuming = c.since != ""; c.isResuming {
		c.begun++
	}
}

func (c *caller) cut() {
	if c.watch != nil {
		c.watch.Close()
		c.watch = nil
	}
}

// read takes up to so many events in, and checks each.
func (c *caller) read(t *testing.T, count int) {
	t.Helper()
	for ; c.watch != nil && count > 0; count-- {
		event, is := c.watch.Poll()
		isAsking := c.watch.rights.isAsking
		for c.watch.rights.isAsking {
			c.watch.heed(<-c.watch.rights.answers)
		}
		switch {
		case is:
			c.take(t, event)
		case !isAsking:
			return
		}
	}
}

func (c *caller) take(t *testing.T, event Event) {
	t.Helper()
	if c.isResuming && event.Type != Bye {
		c.isResuming = false
		if event.Type != Sync {
			c.resumed++
		}
	}
	c.since = event.ID
	switch event.Type {
	case Sync:
		if event.Detail == "" {
			t.Error("a sync does not say why")
		}
		c.has = map[view.Key]view.Line{}
	case Put:
		if had, is := c.has[event.Line.Key]; is && cmp.Equal(had, *event.Line) {
			t.Errorf("%s is put twice as it is", event.Line.Key)
		}
		c.has[event.Line.Key] = *event.Line
	case Del:
		if had, is := c.has[event.Line.Key]; !is || had.UID != event.Line.UID {
			t.Errorf("%s is deleted, and the client has %+v", event.Line.Key, had)
		}
		delete(c.has, event.Line.Key)
	case Bye:
		if event.Detail == "" {
			t.Error("a bye does not say why")
		}
		c.cut()
	}
}

// confirm asks for the client's rights, as each 8 s.
func (c *caller) confirm(isWhole bool) {
	if c.watch == nil || c.watch.rights.isAsking {
		return
	}
	r := c.watch.rights
	found := r.survey(c.watch.reach, c.watch.feed.places(nil), isWhole)
	found.isRound = true
	c.watch.heed(found)
}

// want returns what the client must have at last.
func (c *caller) want(t *testing.T, of *replica) map[view.Key]view.Line {
	t.Helper()
	query := c.query
	query.Limit = 500
	query.May = func(kind, namespace string) bool { return c.rights.ask(t.Context(), kind, namespace) == nil }
	page, err := of.view.List(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[view.Key]view.Line{}
	for _, line := range page.Lines {
		lines[line.Key] = *line
	}
	return lines
}

// regrant gives the client a right, or takes one.
func (c *caller) regrant(random *rand.Rand) {
	place := view.Place{Kind: view.Kinds()[random.IntN(3)], Namespace: []string{"", "a", "b", "c"}[random.IntN(4)]}
	c.rights[place] = !c.rights[place]
}

// newCallers returns watchers with different queries and rights.
func newCallers() []*caller {
	some := may{{Kind: view.Clusters, Namespace: "a"}: true, {Kind: view.Jobs, Namespace: "b"}: true, {Kind: view.Services}: true}
	callers := []*caller{
		{rights: everything()},
		{rights: everything(), query: view.Query{Phases: []string{"Ready"}}},
		{rights: everything(), query: view.Query{Namespaces: []string{"a"}, Kinds: []string{view.Jobs, view.Clusters}}},
		{rights: some},
	}
	for _, one := range callers {
		one.has = map[view.Key]view.Line{}
	}
	return callers
}

// count returns how many histories must be played.
func count(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("HELIOSTAT_HISTORIES")
	if text == "" {
		return histories
	}
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("HELIOSTAT_HISTORIES: %v", err)
	}
	return number
}

// TestWatch_EveryHistoryEndsRight: whatever changes, is cut and goes on elsewhere, each watcher has at last what the
// store has. Nothing that it was told repeats what it had, and nothing was taken that it had not.
func TestWatch_EveryHistoryEndsRight(t *testing.T) {
	begun, resumed, played := 0, 0, count(t)
	for seed := range played {
		callers := play(t, rand.New(rand.NewPCG(seed, 3)))
		for _, one := range callers {
			begun, resumed = begun+one.begun, resumed+one.resumed
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d histories, %d of %d streams went on without a sync", played, resumed, begun)
	if resumed < begun/3 {
		t.Errorf("only %d of %d streams went on without a sync", resumed, begun)
	}
}

// play plays one history, and returns its watchers.
func play(t *testing.T, random *rand.Rand) []*caller {
	t.Helper()
	world, now := newStore(), clocktesting.NewFakeClock(time.Unix(1e9, 0))
	for range random.IntN(20) {
		world.change(random)
	}
	replicas := []*replica{newReplica(t, world, now), newReplica(t, world, now)}
	callers := newCallers()
	if random.IntN(4) == 0 {
		replicas[0].feed.keep = 5
	}
	for range 20 + random.IntN(120) {
		server, one := replicas[random.IntN(2)], callers[random.IntN(len(callers))]
		switch action := random.IntN(40); {
		case action < 12:
			world.change(random)
		case action < 22:
			server.deliver(t, sources[random.IntN(4)], 1+random.IntN(4))
		case action < 28:
			server.feed.publish()
		case action < 35:
			if one.watch == nil {
				one.connect(t, server)
			}
			one.read(t, 1+random.IntN(12))
		case action < 37:
			one.cut()
		case action < 38:
			one.regrant(random)
			one.confirm(random.IntN(2) == 0)
		case action < 39:
			server.list(t, sources[random.IntN(4)])
		default:
			now.Step(time.Duration(random.IntN(3000)) * time.Millisecond)
			for _, other := range callers {
				other.confirm(false)
			}
		}
	}
	settle(t, replicas, callers, random)
	return callers
}

// settle lets all servers see everything and all callers read it, and compares.
func settle(t *testing.T, replicas []*replica, callers []*caller, random *rand.Rand) {
	t.Helper()
	for _, one := range replicas {
		one.deliverAll(t)
	}
	for i, one := range callers {
		one.confirm(true)
		one.read(t, 1<<20)
		if one.watch == nil { // it was cut, or had a bye
			one.connect(t, replicas[random.IntN(2)])
			one.read(t, 1<<20)
		}
		want := one.want(t, replicas[0])
		if diff := cmp.Diff(want, one.has); diff != "" {
			t.Errorf("client %d: - the store, + what it has:\n%s", i, diff)
		}
		if diff := cmp.Diff(want, one.want(t, replicas[1])); diff != "" {
			t.Errorf("client %d: the servers differ:\n%s", i, diff)
		}
		if one.watch != nil && (strings.HasPrefix(one.watch.ID(), "0") || one.watch.ID() == "") {
			t.Errorf("client %d stands at %q", i, one.watch.ID())
		}
		one.cut()
	}
}
