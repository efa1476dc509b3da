package testkit

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/service"
)

// class is a kind of object and what happened to it.
type class struct {
	kind  string
	event watch.EventType
}

func (c class) has(event Event) bool { return event.Type == c.event && kindOf(event.Object) == c.kind }

// trouble is what goes wrong all through a story.
type trouble struct {
	// behind is how late the operator's cache is while anything happens.
	behind late
	// unseen is a class of events that the operator does not see where another event of
	// the same object follows within blindness; nil is none.
	unseen *class
	// blindSince is since when an event of the class has been held back, zero if none is.
	blindSince time.Time
	// wipe takes something of a cluster or job away before each pass over it that follows a
	// change of substance; nil does nothing.
	wipe func(client.Object)
	// forgets: what only a status tells is lost.
	forgets bool
	// substance counts the changes of substance, wiped is for which of them wipe was called
	// for which object.
	substance int
	wiped     map[key]int
	// bare are clusters and jobs as they are, without what the operator writes.
	bare map[key]client.Object
}

func wipeStatus(found client.Object) {
	switch found := found.(type) {
	case *v1beta1.ComputeCluster:
		found.Status = v1beta1.ComputeClusterStatus{}
	case *v1beta1.ClusterJob:
		found.Status = v1beta1.ClusterJobStatus{}
	case *v1beta1.ClusterService:
		found.Status = v1beta1.ClusterServiceStatus{}
	}
}

func removeRecord(found client.Object) {
	annotations := found.GetAnnotations()
	delete(annotations, v1beta1.AnnotationRecord)
	found.SetAnnotations(annotations)
}

// controlled reports whether an object is a cluster or a job that the operator manages.
func controlled(obj client.Object) bool {
	switch obj := obj.(type) {
	case *v1beta1.ComputeCluster:
		return cluster.IsManaged(obj)
	case *v1beta1.ClusterJob:
		return job.IsManaged(obj)
	case *v1beta1.ClusterService:
		return service.IsManaged(obj)
	default:
		return false
	}
}

// saw takes note of a revision: all are of substance but those of a cluster's or a job's
// status and record, which the operator writes itself.
func (t *trouble) saw(event Event) {
	if !hasController(kindOf(event.Object)) {
		t.substance++
		return
	}
	if t.bare == nil {
		t.bare = map[key]client.Object{}
	}
	at, now := keyOf(event.Object), bare(event.Object)
	if before := t.bare[at]; before == nil || !equality.Semantic.DeepEqual(before, now) {
		t.substance++
	}
	t.bare[at] = now
}

// bare is an object without what its operator writes.
func bare(of client.Object) client.Object {
	kept := copied(of)
	wipeStatus(kept)
	removeRecord(kept)
	if len(kept.GetAnnotations()) == 0 {
		kept.SetAnnotations(nil)
	}
	kept.SetResourceVersion("")
	kept.SetManagedFields(nil)
	return kept
}

// before is called before each pass over an object.
func (t *trouble) before(w *World, at key) {
	if t.wipe == nil || w.operator.calm || t.wiped[at] == t.substance {
		return
	}
	if t.wiped == nil {
		t.wiped = map[key]int{}
	}
	if held := w.server.latest.find(at); held != nil && controlled(held) {
		obj := copied(held)
		t.wipe(obj)
		w.Must(w.server.replace(w.Ctx, obj))
		w.wake(w.view.deliver(late{}))
	}
	t.wiped[at] = t.substance
}

// blindness is for how long of the fake clock an event is held back: a watch that tells
// nothing at all for longer is not one that misses states.
const blindness = 5 * time.Second

// deliver lets the cache catch up as far as it may.
func (t *trouble) deliver(w *World) []Event {
	if t.unseen == nil {
		return w.view.deliver(t.behind)
	}
	now, delivered := w.Clock.Now(), w.view.deliverBut(*t.unseen)
	switch {
	case len(w.view.queue) == 0:
		t.blindSince = time.Time{}
	case t.blindSince.IsZero():
		t.blindSince = now
	case now.Sub(t.blindSince) >= blindness:
		t.blindSince = time.Time{}
		delivered = append(delivered, w.view.deliver(late{})...)
	}
	return delivered
}

// blindFor is for how long an event will still be held back, 0 if none is.
func (t *trouble) blindFor(now time.Time) time.Duration {
	if t.blindSince.IsZero() {
		return 0
	}
	return t.blindSince.Add(blindness).Sub(now)
}

// catchUp lets one late event into the cache, once there is nothing else to do.
func (t *trouble) catchUp(w *World) bool {
	queued := len(w.view.queue)
	if t.unseen != nil || queued == 0 {
		return false
	}
	behind := t.behind
	behind.by = queued - 1
	w.wake(w.view.deliver(behind))
	return true
}

// release lets all events in that were held back, and reports whether there were any.
func (t *trouble) release(w *World) bool {
	queued := len(w.view.queue) > 0
	w.wake(w.view.deliver(late{}))
	return queued
}
