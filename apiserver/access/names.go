package access

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// names remembers whose tokens are, for a short while.
type names struct {
	now   clock.PassiveClock
	mutex sync.Mutex
	by    map[Key]named
}

type named struct {
	name  string
	until time.Time
}

func newNames(now clock.PassiveClock) *names { return &names{now: now, by: map[Key]named{}} }

func (n *names) find(key Key) (string, bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	one, is := n.by[key]
	return one.name, is && n.now.Now().Before(one.until)
}

// keep remembers a name. Where there are too many, those that are over go, and else all: they are only asked for again.
func (n *names) keep(key Key, name string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	now := n.now.Now()
	if len(n.by) >= maxNames {
		maps.DeleteFunc(n.by, func(_ Key, one named) bool { return !now.Before(one.until) })
	}
	if len(n.by) >= maxNames {
		clear(n.by)
	}
	n.by[key] = named{name: name, until: now.Add(keepName)}
}
