package killafter

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Gate names the writes that come to it, each as "POST pods #2", and holds one of them back.
type Gate struct {
	// Hold is the name of the write that is held, AtHold is called when it comes. It goes on after Release.
	Hold   string
	AtHold func()

	mu       sync.Mutex
	passed   []string
	counts   map[string]int
	released chan struct{}
}

// NewGate returns a gate that holds a write of a name.
func NewGate(hold string) *Gate {
	return &Gate{Hold: hold, counts: map[string]int{}, released: make(chan struct{})}
}

// Pass takes note of a write, and returns when it may go on.
func (g *Gate) Pass(request *http.Request) {
	what := nameOf(request)
	if what == "" {
		return
	}
	g.mu.Lock()
	g.counts[what]++
	name := fmt.Sprintf("%s #%d", what, g.counts[what])
	g.passed = append(g.passed, name)
	g.mu.Unlock()
	if name == g.Hold {
		g.AtHold()
		<-g.released
	}
}

// Release lets the write go on that is held.
func (g *Gate) Release() { close(g.released) }

// Passed returns the names of the writes so far.
func (g *Gate) Passed() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.passed)
}

// nameOf names a write in a namespace by its method, resource and subresource; it returns nothing for what is in none.
func nameOf(request *http.Request) string {
	_, path, namespaced := strings.Cut(request.URL.Path, "/namespaces/")
	parts := strings.Split(path, "/") // namespace, resource, name, subresource
	if !namespaced || len(parts) < 2 {
		return ""
	}
	if len(parts) > 3 {
		return request.Method + " " + parts[1] + "/" + parts[3]
	}
	return request.Method + " " + parts[1]
}
