package presets_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/apiserver/presets"
)

// TestParse_ExpandsNoAnchorsBeyondAnObject: a ConfigMap of a few KiB takes no gigabytes when a user lists presets.
func TestParse_ExpandsNoAnchorsBeyondAnObject(t *testing.T) {
	text := strings.Repeat("x", 64<<10)
	for _, aliases := range []int{2_000, 20_000} {
		manifest := head + "spec:\n  a: &a " + text + "\n  b: [" + strings.TrimSuffix(strings.Repeat("*a,", aliases), ",") + "]\n"
		source := sourceOf("team", "p", map[string]string{presets.KeySchema: bare, presets.KeyManifest: manifest})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := presets.Parse(source)
		runtime.ReadMemStats(&after)
		want := "manifest.yaml: the text has more than 1 MiB when its anchors are written out; write out what it needs"
		if err == nil || err.Error() != want {
			t.Errorf("with %d aliases: %v", aliases, err)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 32 {
			t.Errorf("%d KiB take %d MiB", len(manifest)>>10, took)
		}
	}
}

// kept is a preset as an API server has it.
func kept(uid, version string, data map[string]string) *corev1.ConfigMap {
	source := sourceOf("team", "p-"+uid, data)
	source.UID, source.ResourceVersion = types.UID(uid), version
	return source
}

// only returns the only preset of a list.
func only(t *testing.T, cache *presets.Cache, source *corev1.ConfigMap) *presets.Preset {
	t.Helper()
	all := cache.List([]*corev1.ConfigMap{source}, "team", "")
	if len(all) != 1 {
		t.Fatalf("there are %d presets", len(all))
	}
	return all[0]
}

func TestCache_ParsesOncePerResourceVersion(t *testing.T) {
	t.Parallel()
	cache := &presets.Cache{}
	first := only(t, cache, kept("a", "1", nil))
	if again := only(t, cache, kept("a", "1", nil)); again != first {
		t.Error("it is parsed twice")
	}
	if found, is := cache.Find([]*corev1.ConfigMap{kept("a", "1", nil)}, "team", "", "p-a"); !is || found != first {
		t.Error("Find does not know what List has parsed")
	}
	if _, is := cache.Find(nil, "team", "", "p-a"); is {
		t.Error("a preset is found that is gone")
	}
	changed := only(t, cache, kept("a", "2", map[string]string{presets.KeyTitle: "changed"}))
	if changed.Title != "changed" {
		t.Errorf("after a change it has the title %q", changed.Title)
	}
	if other := only(t, cache, kept("b", "2", nil)); other.Name != "p-b" {
		t.Errorf("another one is %s", other.Name)
	}
	broken := map[string]string{presets.KeySchema: "{"}
	if one := only(t, cache, kept("c", "1", broken)); one.Error == "" || one != only(t, cache, kept("c", "1", broken)) {
		t.Error("a broken one is parsed twice")
	}
	if only(t, cache, sourceOf("team", "p", nil)) == only(t, cache, sourceOf("team", "p", nil)) {
		t.Error("one without a UID is kept")
	}
}

// TestCache_IsBounded: who writes many large presets makes the cache no larger.
func TestCache_IsBounded(t *testing.T) {
	t.Parallel()
	const many = 20
	large := map[string]string{presets.KeySchema: sized(`{"type": "object", "title": "`, `"}`, 32<<10), presets.KeyManifest: head}
	cache := &presets.Cache{}
	first := only(t, cache, kept("0", "1", large))
	if first.Error != "" {
		t.Fatal(first.Error)
	}
	for i := 1; i < many; i++ {
		only(t, cache, kept(fmt.Sprint(i), "1", large))
	}
	last := only(t, cache, kept(fmt.Sprint(many-1), "1", large))
	if last != only(t, cache, kept(fmt.Sprint(many-1), "1", large)) {
		t.Error("the newest is not kept")
	}
	if first == only(t, cache, kept("0", "1", large)) {
		t.Errorf("the oldest of %d is kept", many)
	}
	small := only(t, cache, kept("small", "1", nil))
	for i := range many {
		only(t, cache, kept("small-"+fmt.Sprint(i), "1", nil))
	}
	if small != only(t, cache, kept("small", "1", nil)) {
		t.Errorf("one of %d small ones is not kept", many)
	}
}

func TestCache_IsForManyAtOnce(t *testing.T) {
	t.Parallel()
	cache := &presets.Cache{}
	made := make([]*presets.Preset, 16)
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() { made[i] = cache.List([]*corev1.ConfigMap{kept("a", "1", nil)}, "team", "")[0] })
	}
	all.Wait()
	for _, one := range made {
		if one != made[0] {
			t.Fatal("it is parsed twice")
		}
	}
}
