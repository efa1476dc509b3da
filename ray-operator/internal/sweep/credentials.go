package sweep

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
)

// Credentials remembers how the Redis of each cluster was reached last, in memory alone. A namespace that is deleted takes its
// Secrets along before its pods have ended, and the keys are removed after that. The zero value is empty, and a nil one
// remembers nothing.
type Credentials struct {
	mu    sync.Mutex
	known map[types.UID]credential
}

// credential is what was read by a note.
type credential struct {
	note   Note
	server controlstore.Server
}

// Remember keeps what was read by a note, in place of what was read for its cluster before.
func (c *Credentials) Remember(note Note, server controlstore.Server) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[types.UID]credential{}
	}
	c.known[note.UID] = credential{note, server}
}

// Find returns what was read by a note, and whether it is known. What was read by another note of the cluster's is not: it may
// be of another server.
func (c *Credentials) Find(note Note) (controlstore.Server, bool) {
	if c == nil {
		return controlstore.Server{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	one, is := c.known[note.UID]
	return one.server, is && one.note == note
}

// Forget forgets what is known of a cluster.
func (c *Credentials) Forget(cluster types.UID) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, cluster)
}
