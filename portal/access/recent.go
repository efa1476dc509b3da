package access

import (
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// recent remembers something by keys for a while. Where there are too many, those go that were not asked for lately: they
// are only learned again.
type recent[V any] struct {
	now  clock.PassiveClock
	kept *lru.Cache
}

type remembered[V any] struct {
	value V
	until time.Time
}

func newRecent[V any](now clock.PassiveClock, most int) *recent[V] {
	return &recent[V]{now: now, kept: lru.New(most)}
}

func (r *recent[V]) find(key string) (V, bool) {
	found, _ := r.kept.Get(key)
	one, is := found.(remembered[V])
	if !is || !r.now.Now().Before(one.until) {
		var none V
		return none, false
	}
	return one.value, true
}

func (r *recent[V]) put(key string, value V, keep time.Duration) {
	r.kept.Add(key, remembered[V]{value: value, until: r.now.Now().Add(keep)})
}

func (r *recent[V]) forget(key string) { r.kept.Remove(key) }
