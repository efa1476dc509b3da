// Package podevents reads what was told of pods that cannot be made, or whose containers cannot, at a bounded cost: no index
// of the API server finds events by their object, so that each read goes through all events of a namespace.
//
// In: a pod or what makes one, and a reader that goes past the cache. Out: its events, as they were at most a minute ago. The
// answer is kept for longer the older the object is. It never waits: where the operator has read as much as it may, the former
// answer counts, or none. It must never keep anything of an object that nobody asks for any more.
package podevents

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// shortest and longest bound for how long an answer is kept; between them it is a part of the object's age. While a pod
	// is young, what it waits for is told within 10 s.
	shortest, longest = 5 * time.Second, time.Minute
	part              = 4
	// perSecond is how many reads there are at most, and atOnce how many after a while without any.
	perSecond = 5
	atOnce    = 20
)

// Memory remembers events by the UID of what they are about. The zero value is ready.
type Memory struct {
	mu    sync.Mutex
	known map[types.UID]answer
	swept time.Time
	// tokens is how many reads were left at the time of filled.
	tokens float64
	filled time.Time
}

type answer struct {
	at     time.Time
	events []corev1.Event
}

// Of gives the events of an object. It is false where they are not known and may not be read now.
func (m *Memory) Of(ctx context.Context, live client.Reader, object client.Object, now time.Time) ([]corev1.Event, bool, error) {
	known, there, reads := m.look(object, now)
	if !reads {
		return known, there, nil
	}
	var list corev1.EventList
	about := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("involvedObject.uid", string(object.GetUID()))}
	if err := live.List(ctx, &list, client.InNamespace(object.GetNamespace()), about); err != nil {
		return nil, false, fmt.Errorf("list the events of %s: %w", object.GetName(), err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[object.GetUID()] = answer{now, list.Items}
	return list.Items, true, nil
}

// look returns what is known of an object, and reports whether its events must be read now.
func (m *Memory) look(object client.Object, now time.Time) (events []corev1.Event, there, reads bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known, m.tokens, m.filled = map[types.UID]answer{}, atOnce, now
	}
	m.sweep(now)
	known, there := m.known[object.GetUID()]
	if there && now.Sub(known.at) < kept(now.Sub(object.GetCreationTimestamp().Time)) {
		return known.events, true, false
	}
	m.tokens = min(atOnce, m.tokens+perSecond*max(0, now.Sub(m.filled).Seconds()))
	m.filled = now
	if m.tokens < 1 {
		return known.events, there, false
	}
	m.tokens--
	return known.events, there, true
}

// kept is for how long an answer about an object of an age is kept.
func kept(age time.Duration) time.Duration { return min(max(age/part, shortest), longest) }

// sweep drops what is too old to be asked for still. The caller holds the lock.
func (m *Memory) sweep(now time.Time) {
	if now.Sub(m.swept) < longest {
		return
	}
	m.swept = now
	for pod, known := range m.known {
		if now.Sub(known.at) > 3*longest {
			delete(m.known, pod)
		}
	}
}
