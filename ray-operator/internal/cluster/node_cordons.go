package cluster

import (
	"sync"
	"time"
)

// Cordons remembers since when nodes take no new pods of which nobody says so: the taint with the time follows the
// field by a moment, and not everywhere. The zero value is ready.
type Cordons struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// dateNode returns a node with the time since when it is cordoned: the one that it says itself, or when it was first
// seen.
func (c *Cordons) dateNode(name string, node Node, now time.Time) Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !node.Closed || !node.Cordoned.IsZero() {
		delete(c.since, name)
		return node
	}
	if _, known := c.since[name]; !known {
		if c.since == nil {
			c.since = map[string]time.Time{}
		}
		c.since[name] = now
	}
	node.Cordoned = c.since[name]
	return node
}
