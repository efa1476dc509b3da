package app

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// begin adds n objects of a namespace, and returns on how many workers begin to work.
func (q *sharedQueue) begin(namespace string, n int) int {
	for i := range n {
		q.Add(request(namespace, fmt.Sprint(i)))
	}
	return q.run()
}

// run has workers take all that have a place, and returns how many these are.
func (q *sharedQueue) run() int {
	begun := 0
	for ; q.TypedInterface.Len() > 0; begun++ {
		_, _ = q.Get()
	}
	return begun
}

// TestSharedQueue_OneAloneHasAll: what others do not use is lent, so a namespace alone has as many workers as was asked for.
func TestSharedQueue_OneAloneHasAll(t *testing.T) {
	for most, all := range map[int]int{1: 2, 2: 4, 10: 20, 100: 200} {
		q := newSharedQueue("", most, func(int) {})
		if got := q.begin("alone", 2*all); got != most || q.workers != all {
			t.Errorf("of %d workers it has %d, want %d of %d", q.workers, got, most, all)
		}
		if got := q.Len(); got != 2*all-most {
			t.Errorf("%d wait, want %d", got, 2*all-most)
		}
	}
}

// TestSharedQueue_LeavesWorkersToOthers: four namespaces whose passes hang leave a worker to all others, which take turns.
func TestSharedQueue_LeavesWorkersToOthers(t *testing.T) {
	q := newSharedQueue("", 10, func(int) {})
	for _, slow := range []struct {
		namespace string
		want      int
	}{{"slow", 10}, {"slower", 6}, {"even slower", 2}, {"slowest", 1}} {
		if got := q.begin(slow.namespace, 100); got != slow.want {
			t.Errorf("%s has %d workers, want %d", slow.namespace, got, slow.want)
		}
	}
	for i := range 100 {
		namespace := fmt.Sprint("quick", i)
		if q.begin(namespace, 1) != 1 {
			t.Fatalf("%s finds no place", namespace)
		}
		q.Done(request(namespace, "0"))
		if q.run() > 0 {
			t.Fatal("a slow namespace has more than its share")
		}
	}
}

// TestSharedQueue_CallsThoseThatWait: in turn, once each, and what is added again goes behind them.
func TestSharedQueue_CallsThoseThatWait(t *testing.T) {
	q := newSharedQueue("", 1, func(int) {})
	for _, name := range []string{"first", "second", "second", "third"} {
		q.Add(request("n", name))
	}
	var worked []string
	for range 5 {
		if q.TypedInterface.Len() != 1 {
			t.Fatalf("%d requests of a namespace have a place, want 1", q.TypedInterface.Len())
		}
		got, _ := q.Get()
		if worked = append(worked, got.Name); len(worked) < 3 {
			q.Add(got)
			q.Add(got)
		}
		q.Done(got)
	}
	if want := []string{"first", "second", "third", "first", "second"}; fmt.Sprint(worked) != fmt.Sprint(want) {
		t.Errorf("worked on %v, want %v", worked, want)
	}
	if q.busy != 0 || q.Len() != 0 || len(q.held)+len(q.lines)+len(q.states) != 0 {
		t.Errorf("something is kept of passes that have ended: %+v", q)
	}
}

// TestSharedQueue_EndsWithWhatHasAPlace: after the end nothing is called.
func TestSharedQueue_EndsWithWhatHasAPlace(t *testing.T) {
	q := newSharedQueue("", 1, func(int) {})
	q.Add(request("n", "first"))
	q.Add(request("n", "second"))
	got, _ := q.Get()
	q.ShutDown()
	q.Done(got)
	if _, isShutDown := q.Get(); !isShutDown || got != (reconcile.Request{NamespacedName: request("n", "first").NamespacedName}) {
		t.Errorf("worked on %s, and shut down: %t", got, isShutDown)
	}
}
