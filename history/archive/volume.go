package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// directory is a Volume on a file system.
type directory struct{ root *os.Root }

// OpenVolume returns the volume of a directory.
func OpenVolume(path string) (Volume, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the spool: %w", err)
	}
	return directory{root}, nil
}

// appended is a file that is appended to. Its first Sync also makes its name durable.
type appended struct {
	*os.File
	directory directory
	isNamed   bool
}

func (a *appended) Sync() error {
	if err := a.File.Sync(); err != nil || a.isNamed {
		return err
	}
	if err := a.directory.sync(); err != nil {
		return err
	}
	a.isNamed = true
	return nil
}

// Create makes a file, which must not be there.
func (d directory) Create(name string) (File, error) {
	file, err := d.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &appended{File: file, directory: d}, nil
}

// Read returns the bytes of a file.
func (d directory) Read(name string) ([]byte, error) { return d.root.ReadFile(name) }

// Sync makes a file durable.
func (d directory) Sync(name string) error {
	file, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close(), d.sync())
}

// Replace writes another file, and gives it the name.
func (d directory) Replace(name string, data []byte) error {
	temporary := name + ".new"
	file, err := d.root.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := d.root.Rename(temporary, name); err != nil {
		return err
	}
	return d.sync()
}

// Remove removes a file.
func (d directory) Remove(name string) error { return d.root.Remove(name) }

// List returns the names of all files.
func (d directory) List() ([]string, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// sync makes names durable.
func (d directory) sync() error {
	file, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
