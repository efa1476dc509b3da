package imagestore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, path, cache string) string {
	t.Helper()
	a, err := Open(path, cache)
	if err != nil {
		t.Fatal(err)
	}
	return a.Digest
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDigestFollowsTheContent(t *testing.T) {
	cache, path := t.TempDir(), filepath.Join(t.TempDir(), "a.tar")
	put(t, path, "one")
	first := open(t, path, cache)
	if again := open(t, path, cache); again != first {
		t.Errorf("digest of the same file changed from %s to %s", first, again)
	}
	put(t, path, "two!")
	if second := open(t, path, cache); second == first {
		t.Error("the digest did not follow the file")
	}
}

func TestDigestBesideTheArchive(t *testing.T) {
	cache, path := t.TempDir(), filepath.Join(t.TempDir(), "a.tar")
	put(t, path, "one")
	real := open(t, path, cache)
	said := strings.Repeat("a", 64)
	put(t, path+".sha256", said+"  a.tar\n")
	if got := open(t, path, cache); got != said {
		t.Errorf("digest = %s, want the one beside the archive", got)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path+".sha256", old, old); err != nil {
		t.Fatal(err)
	}
	if got := open(t, path, cache); got != real {
		t.Errorf("digest = %s, want %s: the file beside is older than the archive", got, real)
	}
}

func TestKeyIsOfTheSet(t *testing.T) {
	a, b := Archive{Digest: "a"}, Archive{Digest: "b"}
	if key("v1", []Archive{a, b}) != key("v1", []Archive{b, a, a}) {
		t.Error("the order or a repetition changes the seed")
	}
	if key("v1", []Archive{a}) == key("v2", []Archive{a}) || key("v1", []Archive{a}) == key("v1", []Archive{a, b}) {
		t.Error("another containerd or another image does not change the seed")
	}
}

func TestPruneKeepsTheLastUsed(t *testing.T) {
	dir := t.TempDir()
	for i := range kept + 2 {
		seed := filepath.Join(dir, string(rune('a'+i)))
		if err := os.Mkdir(seed, 0o755); err != nil {
			t.Fatal(err)
		}
		used := time.Now().Add(time.Duration(-i) * time.Hour)
		if err := os.Chtimes(seed, used, used); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune(dir); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != kept || left[0].Name() != "a" {
		t.Errorf("left %v, %v; want the %d used last", left, err, kept)
	}
}

func TestSplitKeepsWhatChangesApart(t *testing.T) {
	first, rest := split([]Archive{{Path: "ray", Size: large}, {Path: "operator", Size: large - 1}, {Path: "redis", Size: large + 1}})
	if len(first) != 2 || len(rest) != 1 || rest[0].Path != "operator" {
		t.Errorf("split = %v, %v", first, rest)
	}
}
