package instance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrBusy says that another process holds the lock.
var ErrBusy = errors.New("locked by another command")

// Lock is held until Release, or until the kernel releases it for a process
// that is gone.
type Lock struct {
	file *os.File
	path string
}

// Lock keeps every other command that changes the instance out. It waits for
// one that is under way, calling waiting once when there is one.
func (i Instance) Lock(waiting func()) (*Lock, error) {
	return LockFile(i.Dir+".lock", waiting)
}

// LockFile takes the lock that the file at path stands for.
func LockFile(path string, waiting func()) (*Lock, error) {
	l, err := tryLock(path)
	if errors.Is(err, ErrBusy) && waiting != nil {
		waiting()
	}
	for errors.Is(err, ErrBusy) {
		l, err = waitLock(path)
	}
	return l, err
}

func tryLock(path string) (*Lock, error)  { return lock(path, unix.LOCK_EX|unix.LOCK_NB) }
func waitLock(path string) (*Lock, error) { return lock(path, unix.LOCK_EX) }

// lock also looks whether the file is still the one at path: Release removes
// it, and a process that waited then holds a lock on nothing.
func lock(path string, how int) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := flock(f, how); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrBusy
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	mine, err1 := f.Stat()
	there, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || !os.SameFile(mine, there) {
		f.Close()
		return nil, ErrBusy
	}
	return &Lock{file: f, path: path}, nil
}

// Release lets the next one in and removes the lock's file.
func (l *Lock) Release() {
	if l.path != "" {
		os.Remove(l.path)
	}
	l.file.Close()
}

// LockDir takes the lock that an existing directory stands for. It leaves no
// file behind, even when its holder is killed.
func LockDir(dir string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := flock(f, unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return &Lock{file: f}, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
