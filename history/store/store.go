// Package store keeps objects in a bucket of a cloud or on a claim: written once, read in ranges, listed by prefix, deleted.
//
// In: the URL of a bucket or the directory of a claim; keys and bytes. Out: objects that are whole and durable once Write has
// returned, and otherwise not there.
//
// It must never take a key that could lead out of its place, open a bucket by other than TLS, or take memory for an object beyond
// what a reader asks for.
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

var (
	// ErrNotFound is wrapped by errors about objects that are not there.
	ErrNotFound = errors.New("no such object")
	// ErrRefused is wrapped by errors about keys and URLs that are not allowed.
	ErrRefused = errors.New("not allowed")
)

// MaxKey is how many bytes a key has at most.
const MaxKey = 512

// Store is a bucket or a claim.
type Store struct {
	bucket *blob.Bucket
	// directory is that of a claim.
	directory *directory
}

// checkKey judges a key: parts of lower-case letters, digits and hyphens. No store has to escape one.
func checkKey(key string) error {
	if len(key) > MaxKey {
		return fmt.Errorf("key of %d bytes: %w", len(key), ErrRefused)
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || strings.Trim(part, "0123456789abcdefghijklmnopqrstuvwxyz-") != "" {
			return fmt.Errorf("key %.80q: %w", key, ErrRefused)
		}
	}
	return nil
}

// Close ends the use of the store.
func (s *Store) Close() error {
	if s.directory != nil {
		return errors.Join(s.bucket.Close(), s.directory.root.Close())
	}
	return s.bucket.Close()
}

// Write writes an object. When it returns without an error, the object is whole and outlives a crash. An object that was there
// is replaced. No key may begin with another one and a slash: on a claim one is a file, and the other in a directory.
func (s *Store) Write(ctx context.Context, key string, data []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	// The type is given, as it would be guessed from the bytes, which anybody may have written.
	options := &blob.WriterOptions{ContentType: "application/octet-stream", DisableContentTypeDetection: true}
	if err := s.bucket.WriteAll(ctx, key, data, options); err != nil {
		return fmt.Errorf("write object %s: %w", key, err)
	}
	if s.directory != nil {
		return s.directory.sync(key)
	}
	return nil
}

// Read returns so many bytes of an object from an offset on. Fewer are there only at its end.
func (s *Store) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	reader, err := s.bucket.NewRangeReader(ctx, key, offset, length, nil)
	if err != nil {
		return nil, failed("read", key, err)
	}
	defer reader.Close()
	data, err := io.ReadAll(io.LimitReader(reader, length))
	if err != nil {
		return nil, failed("read", key, err)
	}
	return data, nil
}

// Delete removes an object. It is no error if it is not there.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	err := s.bucket.Delete(ctx, key)
	if err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return failed("delete", key, err)
	}
	if s.directory != nil {
		s.directory.prune(key)
	}
	return nil
}

// List calls each with the objects whose keys begin with a prefix, in the order of their keys: with the size, and when it was written
// in milliseconds of Unix time. An error of each ends the list. Beside a directory no name may begin with that of the directory and a
// hyphen: fileblob leaves such keys out where a list has several pages.
func (s *Store) List(ctx context.Context, prefix string, each func(key string, size, at int64) error) error {
	list := s.bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		object, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list objects of %s: %w", prefix, err)
		}
		if err := each(object.Key, object.Size, object.ModTime.UnixMilli()); err != nil {
			return err
		}
	}
}

// Check writes, reads and deletes an object of its own, so that wrong credentials are found before a pack is lost by them.
func (s *Store) Check(ctx context.Context, key string) error {
	want := []byte("heliostat")
	if err := s.Write(ctx, key, want); err != nil {
		return err
	}
	if got, err := s.Read(ctx, key, 0, int64(len(want))); err != nil {
		return err
	} else if !bytes.Equal(got, want) {
		return fmt.Errorf("object %s has other bytes than were written", key)
	}
	return s.Delete(ctx, key)
}

// IsNotFound reports whether an error is about an object that is not there.
func (s *Store) IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// failed returns the error of a call for an object.
func failed(what, key string, err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("%s object %s: %w", what, key, ErrNotFound)
	}
	return fmt.Errorf("%s object %s: %w", what, key, err)
}
