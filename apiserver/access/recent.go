package access

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// recent remembers something about tokens for a while.
type recent[V any] struct {
	now clock.PassiveClock
	// keep is for how long, and most for how many tokens at once.
	keep time.Duration
	most int

	mutex sync.Mutex
	by    map[Key]remembered[V]
}

type remembered[V any] struct {
	value V
	until time.Time
}

func newRecent[V any](now clock.PassiveClock, keep time.Duration, most int) *recent[V] {
	return &recent[V]{now: now, keep: keep, most: most, by: map[Key]remembered[V]{}}
}

func (r *recent[V]) find(key Key) (V, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	one, is := r.by[key]
	return one.value, is && r.now.Now().Before(one.until)
}

// put remembers a value. Where there are too many, those that are over go, and else all: they are only learned again.
func (r *recent[V]) put(key Key, value V) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := r.now.Now()
	if _, is := r.by[key]; !is && len(r.by) >= r.most {
		maps.DeleteFunc(r.by, func(_ Key, one remembered[V]) bool { return !now.Before(one.until) })
		if len(r.by) >= r.most {
			clear(r.by)
		}
	}
	r.by[key] = remembered[V]{value: value, until: now.Add(r.keep)}
}

func (r *recent[V]) forget(key Key) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.by, key)
}
