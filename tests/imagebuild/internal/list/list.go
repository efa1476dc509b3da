// Package list reads the package lists that the image builder shares with the Dockerfiles.
//
// In goes the text of a packages.txt or requirements.txt: one entry per line, a line that starts with # is a
// comment. Out come the entries, or the version one package is pinned to. It reads no files itself, and it must
// not understand more than the Dockerfiles' grep does: an entry that only one of the two sees makes two images.
package list

import (
	"fmt"
	"strings"
)

// Entries returns the entries of text in their order, without comment and empty lines.
func Entries(text string) []string {
	var entries []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		entries = append(entries, line)
	}
	return entries
}

// Pinned returns the version that requirements pin a Python package to, as in "ray==2.60.0".
// It fails if there is no such line.
func Pinned(requirements, name string) (string, error) {
	for _, entry := range Entries(requirements) {
		if version, found := strings.CutPrefix(entry, name+"=="); found {
			return version, nil
		}
	}
	return "", fmt.Errorf("find the version of %s in the requirements: no line %s==VERSION", name, name)
}
