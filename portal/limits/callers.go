package limits

import "sync"

// callers has a value for each caller who has something under way.
type callers[V any] struct {
	mutex sync.Mutex
	by    map[string]*caller[V]
}

type caller[V any] struct {
	value V
	count int
}

// join counts something of a caller, and returns the caller's value. It reports false where the caller has as much as is allowed.
func (c *callers[V]) join(key string, most int, newValue func() V) (V, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	of := c.by[key]
	if of == nil {
		of = &caller[V]{value: newValue()}
		if c.by == nil {
			c.by = map[string]*caller[V]{}
		}
		c.by[key] = of
	}
	if of.count == most {
		return of.value, false
	}
	of.count++
	return of.value, true
}

// quit counts something of a caller no more.
func (c *callers[V]) quit(key string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	of := c.by[key]
	if of.count--; of.count == 0 {
		delete(c.by, key)
	}
}
