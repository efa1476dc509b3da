package collect

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// resolve keeps each path below its directory, on its file system, and away from links.
const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// batch is how many names are read at once.
const batch = 1024

// info is what a directory or a descriptor says of a file.
type info struct {
	id                     pack.FileID
	size                   int64
	isRegular, isDirectory bool
}

// readError is an error of the file system.
type readError struct{ error }

func (r *readError) Unwrap() error { return r.error }

// directory is an open directory.
type directory struct{ file *os.File }

// openRoot opens a directory by its path, which other code must not be able to replace.
func openRoot(path string) (*directory, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &directory{os.NewFile(uintptr(fd), path)}, nil
}

func (d *directory) close() { _ = d.file.Close() } // it was only read

// below opens what a path below the directory names.
func (d *directory) below(path string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC, Resolve: resolve}
	for {
		fd, err := unix.Openat2(int(d.file.Fd()), path, &how)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, &readError{err}
		}
		return fd, nil
	}
}

// directory opens a directory below.
func (d *directory) directory(path string) (*directory, error) {
	fd, err := d.below(path, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &directory{os.NewFile(uintptr(fd), path)}, nil
}

// names returns the next names of the directory.
func (d *directory) names() ([]string, error) {
	names, err := d.file.Readdirnames(batch)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &readError{err}
	}
	return names, err
}

// stat returns what is in the directory under a name now. By the next call it can be something else.
func (d *directory) stat(name string) (info, error) {
	return statx(int(d.file.Fd()), name, unix.AT_SYMLINK_NOFOLLOW)
}

// open opens a file, and judges what was opened.
func (d *directory) open(name string) (*handle, info, error) {
	fd, err := d.below(name, 0)
	if err != nil {
		return nil, info{}, err
	}
	opened := &handle{fd}
	now, err := opened.stat()
	if err == nil && !now.isRegular {
		err = &readError{unix.EINVAL}
	}
	if err != nil {
		opened.close()
		return nil, info{}, err
	}
	return opened, now, nil
}

// handle is an open regular file.
type handle struct{ fd int }

func (h *handle) close() { _ = unix.Close(h.fd) } // it was only read

func (h *handle) stat() (info, error) { return statx(h.fd, "", unix.AT_EMPTY_PATH) }

// read fills a buffer from an offset on, as far as the file reaches.
func (h *handle) read(buffer []byte, offset int64) (int, error) {
	for n := 0; ; {
		read, err := unix.Pread(h.fd, buffer[n:], offset+int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return n, &readError{err}
		case read == 0:
			return n, nil
		}
		if n += read; n == len(buffer) {
			return n, nil
		}
	}
}

// statx returns what a descriptor, or a name below it, is.
func statx(fd int, name string, flags int) (info, error) {
	var found unix.Statx_t
	if err := unix.Statx(fd, name, flags, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_SIZE|unix.STATX_BTIME, &found); err != nil {
		return info{}, &readError{err}
	}
	birth := uint64(0)
	if found.Mask&unix.STATX_BTIME != 0 {
		birth = uint64(found.Btime.Sec)*1e9 + uint64(found.Btime.Nsec)
	}
	kind := found.Mode & unix.S_IFMT
	return info{pack.MakeFileID(found.Ino, birth), int64(found.Size), kind == unix.S_IFREG, kind == unix.S_IFDIR}, nil
}
