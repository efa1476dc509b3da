package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gocloud.dev/blob/fileblob"
)

// directory is that of a claim.
type directory struct{ root *os.Root }

// OpenClaim opens the directory where a claim is mounted.
func OpenClaim(path string) (*Store, error) {
	// A temporary directory is on another volume, from where a file cannot be renamed.
	bucket, err := fileblob.OpenBucket(path, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite, DirFileMode: 0o700})
	if err != nil {
		return nil, fmt.Errorf("open the store on a claim: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the store on a claim: %w", err)
	}
	return &Store{bucket: bucket, directory: &directory{root}}, nil
}

// sync makes a file durable with the directories that name it: fileblob renames it, and calls no fsync.
func (d *directory) sync(key string) error {
	for path := filepath.FromSlash(key); ; path = filepath.Dir(path) {
		file, err := d.root.Open(path)
		if err != nil {
			return fmt.Errorf("open %s of the claim: %w", path, err)
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return fmt.Errorf("sync %s of the claim: %w", path, err)
		}
		if path == "." {
			return nil
		}
	}
}

// prune removes the directories that a key leaves empty. One that a write has just made again fails that write, which is
// tried again.
func (d *directory) prune(key string) {
	for path := filepath.Dir(filepath.FromSlash(key)); path != "."; path = filepath.Dir(path) {
		if d.root.Remove(path) != nil {
			return // it is not empty
		}
	}
}
