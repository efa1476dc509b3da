package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
)

// TestWatch_EndsWhenARightGoes: within 30 s, and only what the right covered.
func TestWatch_EndsWhenARightGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := begun(t, "a", "b")
		rights := map[string]*atomic.Bool{"a": {}, "b": {}}
		one := open(t, server.feed, Request{May: func(_ context.Context, kind, namespace string) error {
			if right := rights[namespace]; right != nil && !right.Load() {
				return nil
			}
			return access.ErrForbidden
		}})
		expect(t, "the beginning", next(t, one, time.Second), "sync", "put a", "put b", "ready")
		rights["a"].Store(true)
		expect(t, "one right is gone", next(t, one, 30*time.Second), "del a")
		rights["b"].Store(true)
		began := time.Now()
		event, err := one.Next(t.Context())
		if err != nil || event.Type != Bye || event.Detail != whyForbidden || time.Since(began) > 30*time.Second {
			t.Errorf("no right is left: after %v %+v, %v", time.Since(began), event, err)
		}
	})
}

// TestWatch_AsksForWhatIsNew: at once for a namespace that gets its first object, and in a while for rights that come.
func TestWatch_AsksForWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, server := begun(t, "a", "b")
		var later atomic.Bool
		one := open(t, server.feed, Request{May: func(_ context.Context, kind, namespace string) error {
			if namespace == "a" || namespace == "c" || namespace == "b" && later.Load() {
				return nil
			}
			return access.ErrForbidden
		}})
		expect(t, "the beginning", next(t, one, time.Second), "sync", "put a", "ready")
		world.put(newCluster("c", "c", "Ready"))
		world.put(newCluster("d", "d", "Ready"))
		server.deliver(t, view.Clusters, 9)
		expect(t, "a namespace is new", next(t, one, time.Second), "put c")
		id := one.ID()
		later.Store(true)
		expect(t, "a right is new", next(t, one, wholeEach*confirmEach), "put b")
		if one.ID() == id {
			t.Error("the ID does not tell of the right")
		}
	})
}

// TestWatch_GoesOnAfterANamespaceEmpties: what has no lines does not count for where a watch stands.
func TestWatch_GoesOnAfterANamespaceEmpties(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, server := begun(t, "a", "b")
		single := may{{Kind: view.Clusters, Namespace: "a"}: true, {Kind: view.Clusters, Namespace: "b"}: true}
		one := open(t, server.feed, Request{May: single.ask})
		next(t, one, time.Second)
		world.remove(view.Key{Kind: view.Clusters, Namespace: "a", Name: "a"})
		server.deliver(t, view.Clusters, 9)
		expect(t, "the namespace empties", next(t, one, time.Second), "del a")
		on := open(t, server.feed, Request{May: single.ask, Since: one.ID()})
		expect(t, "from there", next(t, on, 10*time.Second))
		if places := one.reach.Places(); len(places) != 2 {
			t.Errorf("before its rights are confirmed the watch may see %v", places)
		}
		expect(t, "later", next(t, one, 10*time.Second))
		if places := one.reach.Places(); len(places) != 1 {
			t.Errorf("after that it may see %v", places)
		}
		single[view.Place{Kind: view.Clusters, Namespace: "a"}] = false
		world.put(newCluster("a", "a", "Ready"))
		server.deliver(t, view.Clusters, 9)
		expect(t, "it has lines again, and the right has gone", next(t, one, time.Second))
	})
}

// TestWatch_ConfirmsWhileBusy: rights are asked for again while there is always something to send.
func TestWatch_ConfirmsWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := begun(t, many()...)
		var isGone atomic.Bool
		one := open(t, server.feed, Request{May: func(context.Context, string, string) error {
			if isGone.Load() {
				return access.ErrForbidden
			}
			return nil
		}})
		isGone.Store(true)
		for began := time.Now(); ; <-time.After(time.Second) {
			event, err := one.Next(t.Context())
			if err != nil || time.Since(began) > 15*time.Second {
				t.Fatalf("after %v comes %+v, %v", time.Since(began), event, err)
			}
			if event.Type == Bye {
				return
			}
		}
	})
}

// TestWatch_SendsNothingMoreOnceARightHasGone: also what was on its way.
func TestWatch_SendsNothingMoreOnceARightHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := begun(t, many()...)
		var isGone atomic.Bool
		one := open(t, server.feed, Request{May: func(_ context.Context, _, namespace string) error {
			if namespace == "" || namespace == "n9" && isGone.Load() {
				return access.ErrForbidden
			}
			return nil
		}})
		isGone.Store(true)
		var syncs []string
		for {
			event, err := one.Next(t.Context())
			if err != nil || said(event) == "put n9" {
				t.Fatalf("what may not be seen any more is sent: %+v, %v", event, err)
			}
			if event.Type == Sync {
				syncs = append(syncs, event.Detail)
			}
			if event.Type == Ready {
				break
			}
			<-time.After(time.Second)
		}
		expect(t, "syncs", syncs, whyBegin, whyRights)
	})
}

// many returns forty names.
func many() []string {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprint("n", i))
	}
	return names
}

func TestWatch_EndsWhenNobodyConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, err := range map[string]error{whyUnconfirmed: io.ErrUnexpectedEOF, whyNobody: access.ErrUnauthorized} {
			_, server := begun(t, "a")
			var isAway atomic.Bool
			one := open(t, server.feed, Request{May: func(ctx context.Context, _, _ string) error {
				if !isAway.Load() {
					return nil
				}
				if err != io.ErrUnexpectedEOF { //nolint:errorlint // it is the same value
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			}})
			next(t, one, time.Second)
			isAway.Store(true)
			began := time.Now()
			event, failure := one.Next(t.Context())
			if failure != nil || event.Type != Bye || event.Detail != want || time.Since(began) > 30*time.Second {
				t.Errorf("after %v: %+v, %v", time.Since(began), event, failure)
			}
		}
	})
}

// TestWatch_WaitsForConfirmation: a caller that did not read for long gets nothing before its rights are confirmed
// again.
func TestWatch_WaitsForConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, server := begun(t, "a")
		var isGone atomic.Bool
		one := open(t, server.feed, Request{May: func(ctx context.Context, kind, namespace string) error {
			if isGone.Load() {
				return access.ErrForbidden
			}
			return nil
		}})
		next(t, one, time.Second)
		isGone.Store(true)
		world.put(newCluster("a", "a", "Failed"))
		server.deliver(t, view.Clusters, 9)
		<-time.After(time.Minute)
		expect(t, "after a minute", next(t, one, time.Second), "bye")
	})
}

// TestWatch_AsksForNoMoreWithoutAnAnswer: an API server that has too much to do is not asked for each namespace as well.
func TestWatch_AsksForNoMoreWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := begun(t, "a", "b")
		var asked atomic.Int32
		_, err := server.feed.Watch(t.Context(), Request{May: func(context.Context, string, string) error {
			asked.Add(1)
			return errors.New("it takes too long")
		}})
		if !errors.Is(err, errUnanswered) || int(asked.Load()) != len(view.Kinds()) {
			t.Errorf("%d questions were asked: %v", asked.Load(), err)
		}
	})
}
