package services

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// TestLife_BesidesAPart: what others have while our part is sent is what the head took of each, with one's options for all.
func TestLife_BesidesAPart(t *testing.T) {
	first, last := service("demo"), service("demo-z") // before and after ours
	asks := func(options string, drop []string, names ...string) *Config {
		return changed(config(options, names...), func(c *Config) { c.Options, c.Drop = json.RawMessage(options), drop })
	}
	for name, c := range map[string]struct {
		accepted, wanted map[types.NamespacedName]*Config
		apps             map[string]string
		drop             []string
		options          string
	}{
		"nothing before anything was taken": {
			wanted:  map[types.NamespacedName]*Config{first: asks("first", nil, "f"), us: asks("ours", nil, "a")},
			options: "ours",
		},
		"what was taken, and not what is wanted now": {
			accepted: map[types.NamespacedName]*Config{first: asks("first", []string{"e"}, "f")},
			wanted:   map[types.NamespacedName]*Config{first: asks("next", []string{"f"}, "g"), us: asks("ours", nil, "a")},
			apps:     map[string]string{"f": "demo"}, drop: []string{"e"}, options: "first",
		},
		"our options before those of later names": {
			accepted: map[types.NamespacedName]*Config{last: asks("last", nil, "z"), us: asks("former", nil, "a")},
			wanted:   map[types.NamespacedName]*Config{last: asks("last", nil, "z"), us: asks("ours", nil, "a")},
			apps:     map[string]string{"z": "demo-z"}, options: "ours",
		},
		"what is given up and asked for is ours": {
			accepted: map[types.NamespacedName]*Config{last: asks("last", nil, "a", "z")},
			wanted:   map[types.NamespacedName]*Config{last: asks("last", nil, "z"), us: asks("ours", nil, "a")},
			apps:     map[string]string{"z": "demo-z"}, options: "ours",
		},
		"what is only asked for stays the other's": {
			accepted: map[types.NamespacedName]*Config{last: asks("last", nil, "a")},
			wanted:   map[types.NamespacedName]*Config{last: asks("last", nil, "a"), us: asks("ours", nil, "a")},
			apps:     map[string]string{"a": "demo-z"}, options: "ours",
		},
	} {
		var l life
		l.update(c.wanted)
		for service, config := range c.accepted {
			l.accept(service, config)
		}
		have := l.beside(us, c.wanted)
		apps := map[string]string{}
		for name, held := range have.applications {
			apps[name] = held.service
		}
		if c.apps == nil {
			c.apps = map[string]string{}
		}
		if diff := cmp.Diff(c.apps, apps); diff != "" || !cmp.Equal(have.dropped, c.drop) || string(have.options) != c.options {
			t.Errorf("%s: %s; dropped %q, options %s", name, diff, have.dropped, have.options)
		}
	}
}

// TestLife_HandsOver an application to the service that took it.
func TestLife_HandsOver(t *testing.T) {
	var l life
	l.update(map[types.NamespacedName]*Config{us: config("1", "a", "b"), other: config("2", "b")})
	l.accept(us, config("1", "a", "b"))
	l.accept(other, config("2", "b"))
	if left := l.parts[us].accepted.Applications; len(left) != 1 || left["a"] == nil {
		t.Errorf("it still counts %v as its own", left)
	}
}
