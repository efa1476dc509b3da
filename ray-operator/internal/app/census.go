package app

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// census knows which namespaces have an object of a kind. Elsewhere an event of a pod or a cluster costs no list. An
// object is counted before its first pass, which sees in the cache what came before.
type census struct {
	mu    sync.RWMutex
	names map[string]map[string]bool
}

// newCensus returns one that knows of none.
func newCensus() *census { return &census{names: map[string]map[string]bool{}} }

// has reports whether a namespace has one.
func (c *census) has(namespace string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.names[namespace]) > 0
}

// counts counts the objects of a kind by their events, and lets all events through.
func (c *census) counts() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return c.add(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return c.remove(e.Object) },
	}
}

func (c *census) add(obj client.Object) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names[obj.GetNamespace()] == nil {
		c.names[obj.GetNamespace()] = map[string]bool{}
	}
	c.names[obj.GetNamespace()][obj.GetName()] = true
	return true
}

func (c *census) remove(obj client.Object) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.names[obj.GetNamespace()], obj.GetName())
	if len(c.names[obj.GetNamespace()]) == 0 {
		delete(c.names, obj.GetNamespace())
	}
	return true
}
