package diagnose

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// shortestKept and longestKept bound for how long an answer is kept; between them it is a part of the object's age. While a
	// pod is young, what it waits for is told within 10 s.
	shortestKept, longestKept = 5 * time.Second, time.Minute
	keptPart                  = 4
	// readsPerSecond is how many reads there are at most, and readsAtOnce how many after a while without any.
	readsPerSecond = 5
	readsAtOnce    = 20
)

// EventCache keeps the events of pods that cannot be made, or whose containers cannot, by the UID of what they are about. No index of
// the API server finds events by their object, so that each read goes through all events of a namespace: an answer is kept for
// longer the older its object is, and reads are bounded. Nothing is kept of an object that nobody asks for any more. The zero
// value is ready.
type EventCache struct {
	mu    sync.Mutex
	known map[types.UID]remembered
	swept time.Time
	// tokens is how many reads were left at the time of filled.
	tokens float64
	filled time.Time
}

type remembered struct {
	at     time.Time
	events []corev1.Event
}

// Of returns the events of an object, as they were at most a minute ago. It is false where they are not known and may not be read
// now: it never waits for that.
func (c *EventCache) Of(object metav1.Object, now time.Time, read func() ([]corev1.Event, error)) ([]corev1.Event, bool, error) {
	known, isKnown, isDue := c.find(object, now)
	if !isDue {
		return known, isKnown, nil
	}
	events, err := read()
	if err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[object.GetUID()] = remembered{now, events}
	return events, true, nil
}

// find returns what is known of an object, and reports whether its events must be read now.
func (c *EventCache) find(object metav1.Object, now time.Time) (events []corev1.Event, isKnown, isDue bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known, c.tokens, c.filled = map[types.UID]remembered{}, readsAtOnce, now
	}
	c.sweep(now)
	known, isKnown := c.known[object.GetUID()]
	if isKnown && now.Sub(known.at) < kept(now.Sub(object.GetCreationTimestamp().Time)) {
		return known.events, true, false
	}
	c.tokens = min(readsAtOnce, c.tokens+readsPerSecond*max(0, now.Sub(c.filled).Seconds()))
	c.filled = now
	if c.tokens < 1 {
		return known.events, isKnown, false
	}
	c.tokens--
	return known.events, isKnown, true
}

// kept is for how long an answer about an object of an age is kept.
func kept(age time.Duration) time.Duration { return min(max(age/keptPart, shortestKept), longestKept) }

// sweep drops what is too old to be asked for still. The caller holds the lock.
func (c *EventCache) sweep(now time.Time) {
	if now.Sub(c.swept) < longestKept {
		return
	}
	c.swept = now
	for object, known := range c.known {
		if now.Sub(known.at) > 3*longestKept {
			delete(c.known, object)
		}
	}
}
