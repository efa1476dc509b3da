package convert

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/convert/document"
)

// mostBytes is how large a file may be: 1,000 manifests are a tenth of it.
const mostBytes = 10 << 20

// input is a document of a file, or why the file could not be read. It has no file where it is a live object.
type input struct {
	file string
	document.Document
}

// unread says why a file could not be read.
func unread(file string, why error) []input {
	return []input{{file: file, Document: document.Document{Problem: why}}}
}

// readFiles reads all documents of files, directories and standard input, in their order.
func readFiles(names []string, stdin io.Reader) []input {
	var all []input
	for _, name := range names {
		if name == "-" {
			all = append(all, readFrom("-", stdin)...)
			continue
		}
		paths, err := filesOf(name)
		if err != nil {
			all = append(all, unread(name, err)...)
		}
		for _, path := range paths {
			all = append(all, readFile(path)...)
		}
	}
	return all
}

// filesOf are the manifests of a directory, or the file itself.
func filesOf(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, nil // reading says what is wrong
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("read the directory: %w", err)
	}
	var paths []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			paths = append(paths, filepath.Join(name, entry.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, errors.New("no .yaml, .yml or .json file is in the directory; name one that has some")
	}
	return paths, nil
}

func readFile(path string) []input {
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return unread(path, fmt.Errorf("read the file: %w", err))
	}
	defer func() { _ = file.Close() }() // it was only read
	return readFrom(path, file)
}

func readFrom(name string, from io.Reader) []input {
	content, err := io.ReadAll(io.LimitReader(from, mostBytes+1))
	switch {
	case err != nil:
		return unread(name, fmt.Errorf("read the file: %w", err))
	case len(content) > mostBytes:
		return unread(name, fmt.Errorf("the file has more than %d MiB; divide it", mostBytes>>20))
	}
	var all []input
	for _, one := range document.Read(content, mostBytes) {
		all = append(all, input{file: name, Document: one})
	}
	return all
}
