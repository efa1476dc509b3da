package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestChosen(t *testing.T) {
	for _, test := range []struct{ args, want []string }{
		{[]string{"redis"}, []string{"redis"}},
		{[]string{"operator", "ray", "ray"}, []string{"ray", "operator"}},
		{[]string{"redis", "all"}, []string{"ray", "redis", "operator"}},
		{[]string{"frameworks", "all"}, []string{"ray", "redis", "operator", "frameworks"}},
	} {
		if got := chosen(test.args); !slices.Equal(got, test.want) {
			t.Errorf("chosen(%q) = %q, want %q", test.args, got, test.want)
		}
	}
}

func TestLocate(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	where, err := locate("", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(where.repository, "images", "redis", "packages.txt")); err != nil {
		t.Errorf("repository = %q: %v", where.repository, err)
	}
	if want := filepath.Join(cache, "heliostat", "images"); where.store.Dir != want {
		t.Errorf("store = %q, want %q", where.store.Dir, want)
	}
	t.Chdir(t.TempDir())
	if where, err := locate("", ""); err == nil {
		t.Errorf("found repository %q above an empty directory", where.repository)
	}
}
