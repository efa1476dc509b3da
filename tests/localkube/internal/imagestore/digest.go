package imagestore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/instance"
)

// Archive is an image archive, as docker save or go-containerregistry write it.
type Archive struct {
	Path   string
	Digest string // sha256 of the file, in hex
	Size   int64  // bytes
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}\b`)

// Open finds out an archive's digest. Reading one of a gigabyte takes seconds:
// so the digest comes from <path>.sha256 if that is not older than the archive,
// or else from cache, where it is kept with what tells a file from a later one.
func Open(path, cache string) (Archive, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Archive{}, fmt.Errorf("open image archive: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return Archive{}, fmt.Errorf("open image archive: %w", err)
	}
	if digest := beside(path, info.ModTime()); digest != "" {
		return Archive{Path: path, Digest: digest, Size: info.Size()}, nil
	}
	name := sha256.Sum256([]byte(path))
	known := filepath.Join(cache, hex.EncodeToString(name[:8])+".json")
	now := seen{Size: info.Size(), Changed: info.ModTime(), Inode: info.Sys().(*syscall.Stat_t).Ino}
	if old, err := remembered(known); err == nil && now.same(old) {
		return Archive{Path: path, Digest: old.Digest, Size: info.Size()}, nil
	}
	if now.Digest, err = sum(path); err != nil {
		return Archive{}, fmt.Errorf("read image archive: %w", err)
	}
	data, err := json.Marshal(now)
	if err != nil {
		return Archive{}, fmt.Errorf("remember the digest of %s: %w", path, err)
	}
	return Archive{Path: path, Digest: now.Digest, Size: info.Size()}, instance.WriteFile(known, data)
}

type seen struct {
	Size    int64     `json:"size"`
	Changed time.Time `json:"changed"`
	Inode   uint64    `json:"inode"`
	Digest  string    `json:"digest"`
}

func (s seen) same(o seen) bool {
	return s.Size == o.Size && s.Changed.Equal(o.Changed) && s.Inode == o.Inode && hexDigest.MatchString(o.Digest)
}

func beside(path string, changed time.Time) string {
	info, err := os.Stat(path + ".sha256")
	if err != nil || info.ModTime().Before(changed) {
		return ""
	}
	data, err := os.ReadFile(path + ".sha256")
	if err != nil {
		return ""
	}
	return string(hexDigest.Find(data))
}

func remembered(path string) (seen, error) {
	var s seen
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	err = errors.Join(err, json.Unmarshal(data, &s))
	return s, err
}

func sum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
