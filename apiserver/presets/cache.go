package presets

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mostKept is about how much memory the presets of a Cache may take, in bytes. One takes at most a quarter of it.
const mostKept = 16 << 20

// leastSize is about how much memory a preset takes of which nothing is known but why.
const leastSize = 2 << 10

// perValue is about how much memory a value of a manifest takes beside its bytes, and perByte how much a byte of a schema
// takes once the schema is compiled.
const perValue, perByte = 64, 32

// Cache parses the presets of ConfigMaps that are read again and again, each once for each of its resourceVersions. It
// parses one at a time. The zero value is ready. Its presets are shared, and not to be changed.
type Cache struct {
	// turn is held by who parses.
	turn sync.Mutex

	mu sync.Mutex
	// kept are by the UID of their ConfigMap. The order is from the oldest to the newest.
	kept  map[types.UID]entry
	order []types.UID
	size  int
}

// entry is a preset as it is at a resourceVersion.
type entry struct {
	version string
	preset  *Preset
}

// List returns what the function List does.
func (c *Cache) List(sources []*corev1.ConfigMap, namespace, release string) []*Preset {
	return list(sources, namespace, release, c.parse)
}

// Find returns what the function Find does.
func (c *Cache) Find(sources []*corev1.ConfigMap, namespace, release, name string) (*Preset, bool) {
	return find(choose(sources, namespace, release)[name], c.parse)
}

// parse returns the preset of a ConfigMap, which has its error.
func (c *Cache) parse(source *corev1.ConfigMap) *Preset {
	if preset := c.known(source); preset != nil {
		return preset
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	if preset := c.known(source); preset != nil {
		return preset // somebody else has parsed it meanwhile
	}
	preset := parse(source)
	c.keep(source, preset)
	return preset
}

// known returns the kept preset of a ConfigMap at its resourceVersion, or nil.
func (c *Cache) known(source *corev1.ConfigMap) *Preset {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, is := c.kept[source.UID]; is && found.version == source.ResourceVersion {
		return found.preset
	}
	return nil
}

// keep keeps a preset in place of the one before, and lets the oldest go where there are too many.
func (c *Cache) keep(source *corev1.ConfigMap, preset *Preset) {
	if source.UID == "" || source.ResourceVersion == "" {
		return // it comes from no API server
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(source.UID)
	if c.kept == nil {
		c.kept = map[types.UID]entry{}
	}
	c.kept[source.UID] = entry{version: source.ResourceVersion, preset: preset}
	c.order = append(c.order, source.UID)
	c.size += preset.size
	for c.size > mostKept {
		c.forget(c.order[0])
	}
}

// forget removes the preset of a ConfigMap.
func (c *Cache) forget(uid types.UID) {
	if found, is := c.kept[uid]; is {
		c.size -= found.preset.size
		delete(c.kept, uid)
		c.order = slices.DeleteFunc(c.order, func(one types.UID) bool { return one == uid })
	}
}
