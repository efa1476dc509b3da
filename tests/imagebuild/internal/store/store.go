// Package store keeps built images in a directory, found by what they were built from.
//
// In go an image's short name, its key and a function that builds it; out comes the path of an archive
// <name>-<key>.tar, with <name>-<key>.tar.sha256 beside it in the format of sha256sum. An archive that is there is
// whole: it gets its name last. Two processes that want the same image at once build it once. The two archives of a
// name used last are kept. It must never remove a file that it did not name.
package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/archive"
)

// kept is how many archives of one name stay: the current one, and the one before for who goes back and forth.
const kept = 2

// Store is a directory of archives.
type Store struct{ Dir string }

// Entry names an image: Name is short and is a file name's part, Ref is the full name it is imported under, Key is a
// hash, in hexadecimal, of all that it is built from.
type Entry struct{ Name, Ref, Key string }

// Build makes an image in a directory that is its own until the image is written.
type Build func(ctx context.Context, dir string) (v1.Image, error)

// Ensure returns the path of the entry's archive. If it is missing, build is called with an empty directory to work
// in, which is removed afterwards. The directory is on the same file system as the store.
func (s Store) Ensure(ctx context.Context, entry Entry, build Build) (string, error) {
	unlock, err := s.Lock(entry.Name)
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(s.Dir, entry.Name+"-"+entry.Key+".tar")
	if s.touch(path) {
		return path, nil
	}
	// It may have been cancelled while it waited for the lock.
	if err := ctx.Err(); err != nil {
		return "", err
	}
	dir := filepath.Join(s.Dir, ".build-"+entry.Name)
	// What is there belongs to a build that was killed: who builds holds the lock.
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("remove unfinished build: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("create build directory: %w", err)
	}
	image, err := build(ctx, dir)
	if err == nil {
		err = publish(entry, image, filepath.Join(dir, "image.tar"), path)
	}
	if removeErr := os.RemoveAll(dir); removeErr != nil {
		err = errors.Join(err, fmt.Errorf("remove build directory: %w", removeErr))
	}
	if err != nil {
		return "", err
	}
	return path, s.prune(entry.Name)
}

func publish(entry Entry, image v1.Image, temporary, path string) error {
	digest, err := archive.Write(temporary, entry.Ref, image)
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%s  %s\n", digest, filepath.Base(path))
	if err := os.WriteFile(temporary+".sha256", []byte(sum), 0o644); err != nil {
		return fmt.Errorf("write digest of %s: %w", entry.Ref, err)
	}
	if err := os.Rename(temporary+".sha256", path+".sha256"); err != nil {
		return fmt.Errorf("publish digest of %s: %w", entry.Ref, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("publish archive of %s: %w", entry.Ref, err)
	}
	return nil
}

// Lock waits until no other process holds the lock of the name, and returns the function that gives it back. The
// kernel gives it back when this process ends, however it ends. Ensure takes the lock of its entry's name.
func (s Store) Lock(name string) (func(), error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("create image store: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(s.Dir, name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock of image %s: %w", name, err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock image %s: %w", name, err)
	}
	return func() { file.Close() }, nil
}

// touch says whether the archive is there, and marks it as used now. The mark is on the digest's file, so that caches
// keyed by the archive's modification time stay valid.
func (s Store) touch(path string) bool {
	if _, err := os.Stat(path); err != nil {
		return false
	}
	now := time.Now()
	return os.Chtimes(path+".sha256", now, now) == nil
}

// prune removes all but the archives of the name used last.
func (s Store) prune(name string) error {
	archives, err := s.archives(name)
	if err != nil {
		return err
	}
	for _, old := range archives[:max(0, len(archives)-kept)] {
		if err := os.Remove(old); err != nil {
			return fmt.Errorf("remove old image: %w", err)
		}
		if err := os.Remove(old + ".sha256"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove old image's digest: %w", err)
		}
	}
	return nil
}

// archives lists the archives of the name, the one used longest ago first.
func (s Store) archives(name string) ([]string, error) {
	files, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("list image store: %w", err)
	}
	ours := regexp.MustCompile("^" + regexp.QuoteMeta(name) + `-[0-9a-f]+\.tar$`)
	used := map[string]time.Time{}
	var paths []string
	for _, file := range files {
		if !ours.MatchString(file.Name()) {
			continue
		}
		path := filepath.Join(s.Dir, file.Name())
		paths = append(paths, path)
		if sum, err := os.Stat(path + ".sha256"); err == nil {
			used[path] = sum.ModTime()
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return used[a].Compare(used[b]) })
	return paths, nil
}
