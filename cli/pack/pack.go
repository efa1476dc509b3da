// Package pack makes an archive of a directory, for a job to run in.
//
// In: a directory, patterns of what to leave out, and how large the archive may be. Out: a zip archive of what neither
// the patterns nor .gitignore nor .rayignore exclude, under the name that Ray gives to its content.
//
// It must never write, follow a link out of the directory, or hold more than the limit in memory.
package pack

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha1" //nolint:gosec // Ray names its packages so; nothing is proved by it
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// Options say how a directory is packed.
type Options struct {
	// Excludes are patterns in the form of .gitignore.
	Excludes []string
	// Prefix is a directory of the archive that holds everything, "" for none.
	Prefix string
	// Limit is how many bytes the archive may have.
	Limit int
}

// Package is an archive of a directory.
type Package struct {
	// Name is what Ray calls a package of that content: _ray_pkg_HASH.zip.
	Name    string
	Archive []byte
	// Files is how many files it holds.
	Files int
}

// TooLarge is that the archive would have more bytes than it may.
type TooLarge struct {
	// Limit is how many it may have, Size how many the files have before they are packed.
	Limit int
	Size  int64
	// Largest are the largest files.
	Largest []File
}

// File is one of the directory.
type File struct {
	Path string
	Size int64
}

// Error returns the sizes.
func (t *TooLarge) Error() string {
	var files []string
	for _, file := range t.Largest {
		files = append(files, fmt.Sprintf("%s %s", file.Path, Bytes(file.Size)))
	}
	return fmt.Sprintf("it has %s, which is more than %s when packed; the largest files are %s", Bytes(t.Size),
		Bytes(int64(t.Limit)), strings.Join(files, ", "))
}

// Bytes returns a number of bytes in the unit that people read.
func Bytes(count int64) string {
	switch {
	case count >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(count)/(1<<20))
	case count >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(count)/(1<<10))
	default:
		return fmt.Sprintf("%d bytes", count)
	}
}

// mostShown is how many of the largest files are named.
const mostShown = 5

// Pack packs a directory.
func Pack(directory string, options Options) (*Package, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, fmt.Errorf("read directory %s: %w", directory, err)
	}
	defer func() { _ = root.Close() }() // it was read
	entries, err := list(root, options.Excludes)
	if err != nil {
		return nil, fmt.Errorf("read directory %s: %w", directory, err)
	}
	packed, err := write(root, entries, options)
	switch {
	case errors.Is(err, errFull):
		return nil, measure(entries, options.Limit)
	case err != nil:
		return nil, fmt.Errorf("pack directory %s: %w", directory, err)
	case packed.Files == 0:
		return nil, fmt.Errorf("pack directory %s: it has no file that is not excluded", directory)
	}
	return packed, nil
}

// write writes the archive, and hashes the same bytes on the way.
func write(root *os.Root, entries []entry, options Options) (*Package, error) {
	packed, out, name := &Package{}, &buffer{limit: options.Limit}, newName()
	archive := zip.NewWriter(out)
	for _, one := range entries {
		digest := name.begin(one.path)
		if one.isDirectory && !one.isEmpty {
			name.end(digest)
			continue
		}
		if err := one.write(root, archive, options.Prefix, digest); err != nil {
			return nil, fmt.Errorf("pack %s: %w", one.path, err)
		}
		name.end(digest)
		if !one.isDirectory {
			packed.Files++
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("end the archive: %w", err)
	}
	packed.Name, packed.Archive = name.String(), out.bytes.Bytes()
	return packed, nil
}

// write writes one entry into an archive, and its content into a digest.
func (e entry) write(root *os.Root, archive *zip.Writer, prefix string, digest hash.Hash) error {
	header, err := zip.FileInfoHeader(e.info)
	if err != nil {
		return err
	}
	header.Name, header.Method = path.Join(prefix, e.path), zip.Deflate
	if e.isDirectory {
		header.Name += "/"
		_, err = archive.CreateHeader(header)
		return err
	}
	to, err := archive.CreateHeader(header)
	if err != nil {
		return err
	}
	file, err := root.Open(e.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was read
	_, err = io.Copy(io.MultiWriter(to, digest), file)
	return err
}

// measure says how large the files of a directory are.
func measure(entries []entry, limit int) *TooLarge {
	too := &TooLarge{Limit: limit}
	for _, one := range entries {
		if !one.isDirectory {
			too.Size += one.info.Size()
			too.Largest = append(too.Largest, File{one.path, one.info.Size()})
		}
	}
	slices.SortStableFunc(too.Largest, func(a, b File) int { return cmp.Compare(b.Size, a.Size) })
	too.Largest = too.Largest[:min(mostShown, len(too.Largest))]
	return too
}

var errFull = errors.New("the archive is full")

// buffer takes as many bytes as its limit says.
type buffer struct {
	bytes bytes.Buffer
	limit int
}

// Write implements io.Writer.
func (b *buffer) Write(part []byte) (int, error) {
	if b.bytes.Len()+len(part) > b.limit {
		return 0, errFull
	}
	return b.bytes.Write(part)
}

// name is the name of a package as Ray makes it: of the digests of all paths with their contents, in any order.
type name [8]byte

// newName returns the name of an empty directory.
func newName() *name {
	n := &name{'0', '0', '0', '0', '0', '0', '0', '0'}
	n.end(n.begin("."))
	return n
}

// begin returns the digest of a path, which takes the content.
func (n *name) begin(path string) hash.Hash {
	digest := sha1.New() //nolint:gosec // see the import
	_, _ = io.WriteString(digest, path)
	return digest
}

// end adds a path with its content.
func (n *name) end(digest hash.Hash) {
	for i, part := range digest.Sum(nil)[:len(n)] {
		n[i] ^= part
	}
}

// String returns the name of the file.
func (n *name) String() string { return "_ray_pkg_" + hex.EncodeToString(n[:]) + ".zip" }
