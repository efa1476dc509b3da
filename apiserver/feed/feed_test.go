package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
)

// begun returns a server with clusters of these names in namespaces of the same name, which runs until the test ends.
func begun(t *testing.T, names ...string) (*store, *replica) {
	t.Helper()
	world := newStore()
	for _, name := range names {
		world.put(newCluster(name, name, "Ready"))
	}
	server := newReplica(t, world, clock.RealClock{})
	go server.feed.Run(t.Context())
	return world, server
}

func open(t *testing.T, of *Feed, request Request) *Watch {
	t.Helper()
	if request.May == nil {
		request.May = everything().ask
	}
	watch, err := of.Watch(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Close)
	return watch
}

// said is an event in few words.
func said(event Event) string {
	if event.Line != nil {
		return event.Type + " " + event.Line.Name
	}
	return event.Type
}

// next returns the next events in few words, until none comes within a time.
func next(t *testing.T, of *Watch, within time.Duration) []string {
	t.Helper()
	var words []string
	for {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		event, err := of.Next(ctx)
		cancel()
		if err != nil {
			return words
		}
		words = append(words, said(event))
	}
}

func expect(t *testing.T, what string, have []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("%s: - want, + have:\n%s", what, diff)
	}
}

func TestWatch_SendsTheStateAndThenChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, server := begun(t, "a", "b")
		one := open(t, server.feed, Request{})
		expect(t, "the beginning", next(t, one, time.Second), "sync", "put a", "put b", "ready")
		world.put(newCluster("a", "a", "Failed"))
		world.remove(view.Key{Kind: view.Clusters, Namespace: "b", Name: "b"})
		world.put(newCluster("c", "c", "Ready"))
		server.deliver(t, view.Clusters, 9)
		expect(t, "changes", next(t, one, time.Second), "put a", "del b", "put c")
		server.deliver(t, view.Pods, 9)
		expect(t, "no change", next(t, one, time.Second))
	})
}

// TestWatch_FollowsItsFilter: what begins to match is put, and what does not match any more is deleted.
func TestWatch_FollowsItsFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, server := begun(t, "a", "b")
		one := open(t, server.feed, Request{Query: view.Query{Phases: []string{"Failed"}}})
		expect(t, "the beginning", next(t, one, time.Second), "sync", "ready")
		for phase, want := range map[string]string{"Failed": "put a"} {
			world.put(newCluster("a", "a", phase))
			server.deliver(t, view.Clusters, 9)
			expect(t, phase, next(t, one, time.Second), want)
		}
		world.put(newCluster("a", "a", "Ready"))
		server.deliver(t, view.Clusters, 9)
		expect(t, "it does not match any more", next(t, one, time.Second), "del a")
		world.put(newCluster("a", "a", "Starting"))
		server.deliver(t, view.Clusters, 9)
		expect(t, "it still does not", next(t, one, time.Second))
	})
}

// TestFeed_ChangesOfAWindowAreOne: one that is undone within it is none.
func TestFeed_ChangesOfAWindowAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, server := begun(t, "a")
		one := open(t, server.feed, Request{})
		next(t, one, time.Second)
		began := time.Now()
		for i := range 14 {
			world.put(newCluster("a", "a", fmt.Sprint("phase-", i)))
			server.deliver(t, view.Clusters, 1)
			<-time.After(10 * time.Millisecond)
		}
		event, err := one.Next(t.Context())
		if err != nil || event.Line.Phase != "phase-13" || time.Since(began) > window {
			t.Errorf("after %v comes %+v, %v", time.Since(began), event.Line, err)
		}
		own := newCluster("a", "a", "x")
		world.put(newPod(own, "p", 1))
		world.remove(view.Key{Kind: view.Pods, Namespace: "a", Name: "p"})
		server.deliver(t, view.Pods, 2)
		expect(t, "a pod that came and went", next(t, one, time.Second))
	})
}

func TestEvent_IsEncodedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, server := begun(t, "a")
		one, other := open(t, server.feed, Request{}), open(t, server.feed, Request{Query: view.Query{Kinds: []string{view.Clusters}}})
		next(t, one, time.Second)
		next(t, other, time.Second)
		for _, change := range []func(){
			func() { world.put(newCluster("a", "a", "Failed")) },
			func() { world.remove(view.Key{Kind: view.Clusters, Namespace: "a", Name: "a"}) },
		} {
			change()
			server.deliver(t, view.Clusters, 9)
			first, _ := one.Next(t.Context())
			second, _ := other.Next(t.Context())
			if &first.Encoded()[0] != &second.Encoded()[0] {
				t.Error("an event is encoded for each watcher")
			}
			if first.ID == second.ID {
				t.Error("watches of different queries have the same ID")
			}
			var message struct {
				ID, Type string
				Line     struct{ Name, Kind, Phase string }
			}
			if err := json.Unmarshal(first.Encoded(), &message); err != nil || message.Type != first.Type || message.Line.Name != "a" || message.ID != "" {
				t.Errorf("an event is encoded as %s, %v", first.Encoded(), err)
			}
			if proto := first.Proto(); proto.Id != first.ID || proto.Line.Kind != view.Clusters {
				t.Errorf("an event is the message %v", proto)
			}
		}
	})
}

// TestWatch_GoesOnElsewhere: after a bye of one server, on the other one, from there and from the cursor of a page.
func TestWatch_GoesOnElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, there := begun(t, "a", "b")
		here := newReplica(t, world, clock.RealClock{})
		ctx, stop := context.WithCancel(t.Context())
		go here.feed.Run(ctx)
		page, err := here.view.List(t.Context(), view.Query{May: func(string, string) bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		one := open(t, here.feed, Request{Since: page.Cursor})
		expect(t, "from a page", next(t, one, time.Second))
		world.put(newCluster("a", "a", "Failed"))
		here.deliverAll(t)
		expect(t, "a change", next(t, one, time.Second), "put a")
		stop()
		last, err := one.Next(t.Context())
		if err != nil || last.Type != Bye || last.Detail != whyEnds {
			t.Fatalf("a server that ends says %+v, %v", last, err)
		}
		if _, err := one.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("after a bye comes %v", err)
		}
		on := open(t, there.feed, Request{Since: last.ID})
		go func() { // the other server is behind for a moment
			<-time.After(time.Second)
			world.put(newCluster("b", "b", "Failed"))
			for _, kind := range sources {
				there.deliver(t, kind, 9)
			}
		}()
		expect(t, "on the other server", next(t, on, 5*time.Second), "put b")
	})
}

// TestWatch_WaitsForAnotherServersPosition: no longer than until the server is there, and if nothing but that has
// happened.
func TestWatch_WaitsForAnotherServersPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, server := begun(t, "a")
		one := open(t, server.feed, Request{})
		next(t, one, time.Second)
		mark, err := server.view.ParseMark(one.ID())
		if err != nil {
			t.Fatal(err)
		}
		world.put(newCluster("a", "a", "Failed"))
		server.deliver(t, view.Clusters, 9)
		next(t, one, time.Second)
		mark.At[len(mark.At)-1]++ // pods
		on := open(t, server.feed, Request{Since: view.JoinMark(server.view.Place(mark), mark.Scope)})
		time.AfterFunc(300*time.Millisecond, func() { server.deliver(t, view.Pods, 9) })
		began := time.Now()
		event, err := on.Next(t.Context())
		if err != nil || said(event) != "put a" || time.Since(began) > time.Second {
			t.Errorf("after %v comes %q, %v", time.Since(began), said(event), err)
		}
	})
}

func TestWatch_SaysWhyItBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, server := begun(t, "a")
		one := open(t, server.feed, Request{})
		middle, _ := one.Next(t.Context())
		next(t, one, time.Second)
		good := one.ID()
		ahead, _ := server.view.ParseMark(good)
		ahead.At = slices.Clone(ahead.At)
		ahead.At[0] += 100
		before := good
		world.put(newCluster("a", "a", "Failed"))
		server.list(t, view.Clusters)
		for name, test := range map[string]struct {
			request Request
			want    string
		}{
			"no ID":               {Request{}, whyBegin},
			"a sync":              {Request{Since: middle.ID}, whyPartial},
			"another query":       {Request{Since: good, Query: view.Query{Text: "x"}}, errScope.Error()},
			"other rights":        {Request{Since: good, May: may{{Kind: view.Clusters}: true}.ask}, errScope.Error()},
			"too long ago":        {Request{Since: before}, view.ErrGone.Error()},
			"never seen":          {Request{Since: view.JoinMark(server.view.Place(ahead), ahead.Scope)}, view.ErrAhead.Error()},
			"of other namespaces": {Request{Since: view.JoinMark(view.New("z").Place(ahead), 1)}, view.ErrForeign.Error()},
		} {
			if name != "too long ago" && strings.Contains(test.want, "caller's rights") {
				continue // they are tried below, at a position that is remembered
			}
			event, err := open(t, server.feed, test.request).Next(t.Context())
			if err != nil || event.Type != Sync || !strings.Contains(event.Detail, test.want) {
				t.Errorf("%s: %+v, %v", name, event, err)
			}
		}
		next(t, one, time.Second)
		for _, request := range []Request{{Since: one.ID(), Query: view.Query{Text: "x"}}, {Since: one.ID(), May: may{{Kind: view.Clusters}: true}.ask}} {
			event, err := open(t, server.feed, request).Next(t.Context())
			if err != nil || event.Type != Sync || !strings.Contains(event.Detail, errScope.Error()) {
				t.Errorf("another scope: %+v, %v", event, err)
			}
		}
	})
}

func TestWatch_Refuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := begun(t, "a")
		failing := func(err error) func(context.Context, string, string) error {
			return func(context.Context, string, string) error { return err }
		}
		for name, test := range map[string]struct {
			request Request
			want    error
		}{
			"no right":  {Request{May: may{}.ask}, access.ErrForbidden},
			"no token":  {Request{May: failing(access.ErrUnauthorized)}, access.ErrUnauthorized},
			"no answer": {Request{May: failing(io.ErrUnexpectedEOF)}, io.ErrUnexpectedEOF},
		} {
			if _, err := server.feed.Watch(t.Context(), test.request); !errors.Is(err, test.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		var findings view.Findings
		for _, request := range []Request{{Since: "x"}, {Query: view.Query{Kinds: []string{"x"}}}} {
			request.May = everything().ask
			if _, err := server.feed.Watch(t.Context(), request); !errors.As(err, &findings) {
				t.Errorf("%+v: %v", request.Query, err)
			}
		}
		if _, err := New(view.New(), clock.RealClock{}).Watch(t.Context(), Request{May: everything().ask}); !errors.Is(err, ErrUnready) {
			t.Errorf("a server that has read nothing says %v", err)
		}
	})
}

// TestWatch_FallsBehind: a watcher that does not read gets the state again once the ring has gone past it.
func TestWatch_FallsBehind(t *testing.T) {
	world := newStore()
	server := newReplica(t, world, clock.RealClock{})
	server.feed.keep = 3
	one := open(t, server.feed, Request{})
	drain(one)
	for i := range 6 {
		world.put(newCluster("a", "a", fmt.Sprint(i)))
		server.deliverAll(t)
	}
	server.feed.isStale, one.isStale = true, true
	first, _ := one.Poll()
	if first.Type != Sync || first.Detail != whyLag {
		t.Errorf("behind comes %+v", first)
	}
	var words []string
	for event, ok := one.Poll(); ok; event, ok = one.Poll() {
		words = append(words, said(event))
	}
	expect(t, "behind, and the API server is away", words, "put a", "ready", "stale")
}

// away is an API server that can be away.
type away struct {
	client.WithWatch
	isAway atomic.Bool
	watch  atomic.Pointer[watch.RaceFreeFakeWatcher]
}

func (a *away) IsWatchListSemanticsUnSupported() bool { return true }

func (a *away) err() error {
	if a.isAway.Load() {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (a *away) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.SetResourceVersion("10")
	return a.err()
}

func (a *away) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	events := watch.NewRaceFreeFake()
	a.watch.Store(events)
	return events, a.err()
}

func TestWatch_SaysThatItIsStale(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil // they count on the time outside of the bubble
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	synctest.Test(t, func(t *testing.T) {
		server, known := &away{}, view.New()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = known.Run(ctx, server) }() // it fails for no reason but a scheme
		synctest.Wait()
		of := New(known, clock.RealClock{})
		go of.Run(ctx)
		one := open(t, of, Request{})
		expect(t, "the beginning", next(t, one, time.Second), "sync", "ready")
		server.isAway.Store(true)
		server.watch.Load().Stop()
		expect(t, "the API server goes", next(t, one, time.Minute), "stale")
		expect(t, "somebody comes meanwhile", next(t, open(t, of, Request{}), time.Second), "sync", "ready", "stale")
		server.isAway.Store(false)
		expect(t, "the API server comes back", next(t, one, 2*time.Minute), "ready")
	})
}
