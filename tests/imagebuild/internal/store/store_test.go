package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/archive"
)

func entry(key string) Entry { return Entry{Name: "ray", Ref: "docker.io/rayproject/ray:1", Key: key} }

func empty(context.Context, string) (v1.Image, error) { return archive.Image(v1.Config{User: "1"}) }

func forbidden(context.Context, string) (v1.Image, error) {
	return nil, errors.New("built what is there already")
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range found {
		names = append(names, file.Name())
	}
	return names
}

func TestEnsureBuildsOnce(t *testing.T) {
	store := Store{Dir: filepath.Join(t.TempDir(), "images")}
	path, err := store.Ensure(t.Context(), entry("0a"), empty)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := store.Ensure(t.Context(), entry("0a"), forbidden); err != nil || again != path {
		t.Errorf("second Ensure = %q, %v, want %q", again, err, path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(path + ".sha256")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x  ray-0a.tar\n", sha256.Sum256(content)); string(sum) != want {
		t.Errorf("digest file = %q, want %q", sum, want)
	}
	if got, want := files(t, store.Dir), []string{"ray-0a.tar", "ray-0a.tar.sha256", "ray.lock"}; !slices.Equal(got, want) {
		t.Errorf("store holds %q, want %q", got, want)
	}
}

func TestEnsureBuildsAgainWithoutDigest(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	path, err := store.Ensure(t.Context(), entry("0a"), empty)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".sha256"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Ensure(t.Context(), entry("0a"), empty); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".sha256"); err != nil {
		t.Errorf("digest is not written again: %v", err)
	}
}

func TestEnsureLeavesNothingOfAFailedBuild(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	broken := errors.New("no network")
	_, err := store.Ensure(t.Context(), entry("0a"), func(_ context.Context, dir string) (v1.Image, error) {
		if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o644); err != nil {
			t.Error(err)
		}
		return nil, broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("error = %v, want the build's", err)
	}
	if got, want := files(t, store.Dir), []string{"ray.lock"}; !slices.Equal(got, want) {
		t.Errorf("store holds %q, want %q", got, want)
	}
}

func TestEnsureStartsEmptyAfterAKilledBuild(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(store.Dir, ".build-ray", "root"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := store.Ensure(t.Context(), entry("0a"), func(ctx context.Context, dir string) (v1.Image, error) {
		if left := files(t, dir); len(left) != 0 {
			t.Errorf("build directory holds %q", left)
		}
		return empty(ctx, dir)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestEnsureDoesNotBuildWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Store{Dir: t.TempDir()}).Ensure(ctx, entry("0a"), empty); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that it was cancelled", err)
	}
}

func TestEnsureAtOnceBuildsOnce(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	var builds atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := store.Ensure(t.Context(), entry("0a"), func(ctx context.Context, dir string) (v1.Image, error) {
				builds.Add(1)
				return empty(ctx, dir)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := builds.Load(); got != 1 {
		t.Errorf("built %d times, want once", got)
	}
}

func TestPruneKeepsTheTwoUsedLast(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	bystanders := []string{"ray-extra-0a.tar", "redis-0a.tar", "ray-notes.tar"}
	for _, name := range bystanders {
		if err := os.WriteFile(filepath.Join(store.Dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-time.Hour)
	for i, key := range []string{"0a", "0b"} {
		path, err := store.Ensure(t.Context(), entry(key), empty)
		if err != nil {
			t.Fatal(err)
		}
		used := long.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(path+".sha256", used, used); err != nil {
			t.Fatal(err)
		}
	}
	// The older one is used again, so the other goes when a third comes.
	if _, err := store.Ensure(t.Context(), entry("0a"), forbidden); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Ensure(t.Context(), entry("0c"), empty); err != nil {
		t.Fatal(err)
	}
	want := append([]string{"ray-0a.tar", "ray-0a.tar.sha256", "ray-0c.tar", "ray-0c.tar.sha256", "ray.lock"}, bystanders...)
	slices.Sort(want)
	if got := files(t, store.Dir); !slices.Equal(got, want) {
		t.Errorf("store holds %q, want %q", got, want)
	}
}
