package pass

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Told remembers since when the status of an object has been waiting to be told: one that
// only tells of progress may wait for more to tell. It is lost with the process, which
// then tells later by one wait at most. The zero value is ready.
type Told struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// Wait is how much longer a status waits that may wait for so long in all.
func (t *Told) Wait(object types.NamespacedName, most time.Duration, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since == nil {
		t.since = map[types.NamespacedName]time.Time{}
	}
	since, waits := t.since[object]
	if !waits {
		t.since[object], since = now, now
	}
	return since.Add(most).Sub(now)
}

// Forget ends the waiting: the status was told, or need not be.
func (t *Told) Forget(object types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.since, object)
}
