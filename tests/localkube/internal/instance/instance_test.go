package instance

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestStateSurvives(t *testing.T) {
	i, err := New(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Load of nothing = %v, want fs.ErrNotExist", err)
	}
	want := State{Spec: Spec{Nodes: 2, GPUs: 1}, Index: 7, Programs: Programs{Kube: "/k"}}
	if err := i.Store(want); err != nil {
		t.Fatal(err)
	}
	if got, err := i.Load(); err != nil || got != want {
		t.Fatalf("Load = %+v, %v; want %+v", got, err, want)
	}
	taken, err := TakenIndexes(i.Base)
	if err != nil || len(taken) != 1 || !taken[7] {
		t.Fatalf("TakenIndexes = %v, %v; want 7", taken, err)
	}
}

func TestDiscardFinishesAnEarlierOne(t *testing.T) {
	i, err := New(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{i.Path("a", "b"), i.trash() + ".0/half"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Discard(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(i.Base)
	if err != nil || len(left) != 0 {
		t.Fatalf("after Discard: %v, %v; want nothing", left, err)
	}
}

func TestLongDirectoryIsRefused(t *testing.T) {
	long := filepath.Join("/var/lib", "a-directory-whose-name-is-far-too-long-for-a-socket-in-it-to-be-made-by-anyone-at-all")
	if _, err := New(long, "x"); err == nil {
		t.Fatal("a directory too long for a unix socket was accepted")
	}
}

func TestLockAdmitsOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				l, err := LockFile(path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold the lock at once", n)
				}
				if _, err := tryLock(path); !errors.Is(err, ErrBusy) {
					t.Errorf("second lock = %v, want ErrBusy", err)
				}
				inside.Add(-1)
				l.Release()
			}
		})
	}
	wg.Wait()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock's file is left: %v", err)
	}
}
