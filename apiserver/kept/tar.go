package kept

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/history/client"
)

// pageOfTar is how many files are listed at once for a tar.
const pageOfTar = 200

// missingFile is an entry of a tar with all ranges that no file of it has, and maxMissingFile how many bytes it has at most.
const (
	missingFile    = "missing.txt"
	maxMissingFile = 1 << 20
)

// errEnough ends the reading of a file that has grown since it was listed.
var errEnough = errors.New("the entry is full")

// WriteTar writes all files of an object whose paths match patterns as a tar. Ranges that are missing are left out of a file, and are
// listed in an entry at the end.
func (k *Kept) WriteTar(ctx context.Context, object *Object, patterns []string, to io.Writer) error {
	w := &tarWriter{kept: k, object: object, tar: tar.NewWriter(to)}
	for next, isFirst := "", true; isFirst || next != ""; isFirst = false {
		page, err := k.List(ctx, object, patterns, pageOfTar, next)
		if err != nil {
			return err
		}
		for _, file := range page.Files {
			if err := w.write(ctx, file); err != nil {
				return fmt.Errorf("write file %q: %w", file.GetPath(), err)
			}
		}
		next = page.Next
	}
	if err := w.entry(missingFile, int64(w.missing.Len()), time.Unix(0, 0)); err != nil {
		return err
	}
	if _, err := io.WriteString(w.tar, w.missing.String()); err != nil {
		return err
	}
	return w.tar.Close()
}

// tarWriter writes files into a tar.
type tarWriter struct {
	kept    *Kept
	object  *Object
	tar     *tar.Writer
	missing strings.Builder
	// last is the name of the entry before, without a number, and same how many entries have had it.
	last string
	same int
}

func (w *tarWriter) entry(name string, size int64, at time.Time) error {
	return w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: at, Format: tar.FormatPAX})
}

// nameOf returns the name of a file in the tar. No part of it leads elsewhere, whatever the file was called.
func (w *tarWriter) nameOf(file File) string {
	parts := strings.Split(Escape(string(file.GetPath())), "/")
	for i, one := range parts {
		if one == "" || one == "." || one == ".." {
			parts[i] = "_" + one
		}
	}
	pod := strings.ReplaceAll(Escape(file.GetPod()), "/", "_")
	if pod == "" || strings.Trim(pod, ".") == "" {
		pod = "pod"
	}
	name := strings.Join(append([]string{file.ClusterUID, pod}, parts...), "/")
	if name != w.last {
		w.last, w.same = name, 1
		return name
	}
	w.same++
	return fmt.Sprintf("%s~%d", name, w.same)
}

// write writes a file. What the archivers no longer have since it was listed is zeros.
func (w *tarWriter) write(ctx context.Context, file File) error {
	name, size := w.nameOf(file), sizeOf(file)
	if err := w.entry(name, size, time.UnixMilli(file.GetLast())); err != nil {
		return err
	}
	left := size
	err := w.kept.ReadFile(ctx, requestOf(w.object, file, 0, 0), func(piece client.Piece) error {
		if gap := piece.Missing; gap != nil {
			w.note(name, gap.GetOffset(), gap.GetLength(), gap.GetReason())
			return nil
		}
		data := piece.Data[:min(int64(len(piece.Data)), left)]
		if _, err := w.tar.Write(data); err != nil {
			return err
		}
		if left -= int64(len(data)); len(data) < len(piece.Data) {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) && !isNothing(err) {
		return err
	}
	if left > 0 {
		w.note(name, file.GetSize()-left, left, "removed while it was read")
		if _, err := io.CopyN(w.tar, zeros{}, left); err != nil {
			return err
		}
	}
	return nil
}

// note notes a range that is missing.
func (w *tarWriter) note(name string, offset, length int64, reason string) {
	row := fmt.Sprintf("%s\t%d\t%d\t%s\n", name, offset, length, reason)
	if w.missing.Len()+len(row) <= maxMissingFile {
		w.missing.WriteString(row)
	}
}

// sizeOf returns how many bytes of a file are there.
func sizeOf(file File) int64 {
	gaps := slices.Clone(file.GetMissing())
	size := file.GetSize()
	for _, gap := range gaps {
		end := gap.GetOffset() + gap.GetLength()
		if gap.GetLength() == 0 {
			end = file.GetSize()
		}
		size -= max(0, min(end, file.GetSize())-gap.GetOffset())
	}
	return max(0, size)
}

// zeros is a reader without an end.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}
