package binaries

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKeyFollowsTheSources(t *testing.T) {
	source, u := t.TempDir(), unit{name: "x", sources: "x", pkg: "./x"}
	key := func(goVersion string) string {
		k, err := u.key(source, goVersion)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	write(t, filepath.Join(source, "x", "go.mod"), "module x\n")
	write(t, filepath.Join(source, "y", "main.go"), "package y\n")
	first := key("go1")
	write(t, filepath.Join(source, "y", "main.go"), "package other\n")
	write(t, filepath.Join(source, "x", "README.md"), "about x\n")
	write(t, filepath.Join(source, "x", "main_test.go"), "package main\n")
	if key("go1") != first {
		t.Error("what is not built changes the key")
	}
	if key("go2") == first {
		t.Error("another Go does not change the key")
	}
	write(t, filepath.Join(source, "x", "go.mod"), "module x \n")
	if key("go1") == first {
		t.Error("another go.mod does not change the key")
	}
}

func TestPruneKeepsTheLastUsed(t *testing.T) {
	b, u := Builder{Cache: t.TempDir()}, unit{name: "x"}
	for i := range kept + 1 {
		dir := filepath.Join(b.Cache, "x-00000000000"+string(rune('0'+i)))
		write(t, filepath.Join(dir, "x"), "program")
		used := time.Now().Add(time.Duration(-i) * time.Hour)
		if err := os.Chtimes(dir, used, used); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.prune(u); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(b.Cache)
	if err != nil || len(left) != kept || left[0].Name() != "x-000000000000" {
		t.Errorf("left %v, %v; want the %d used last", left, err, kept)
	}
}

func TestFindSource(t *testing.T) {
	dir, err := FindSource()
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range units {
		if _, err := os.Stat(filepath.Join(dir, u.sources)); err != nil {
			t.Errorf("sources of %s: %v", u.name, err)
		}
	}
}
