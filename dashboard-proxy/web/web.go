// Package web serves the page: the built files below /ui/, and its first file for every place that the page itself
// knows.
//
// In: GET and HEAD of a path, and the files, embedded or from a directory. Out: a file in the smallest form that the
// browser takes, with headers that let the page run nothing but its own files. A program that was built without node
// has no page, and answers with a text that says so and what helps.
//
// It must never answer with anything of a user or a cluster, or look at who asks.
package web

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Base is the path below which the page is.
const Base = "/ui/"

// index is the file that loads the others.
const index = "index.html"

// dist has the page where "make web" has built it, and else only a file that git keeps.
//
//go:embed all:dist
var dist embed.FS

// Settings are what can be set about the page.
type Settings struct {
	// Directory has the files where they are being worked on; empty for those of the program.
	Directory string
	// FrameAncestors are the origins that can show the page in a frame; none is nobody.
	FrameAncestors []string
}

// Page serves the page. It may be used by many goroutines.
type Page struct {
	files  fs.FS
	policy string
	// isFixed is that the files do not change, so that what has a hashed name can be kept.
	isFixed bool
}

// New returns the page.
func New(settings Settings) (*Page, error) {
	policy, err := policyOf(settings.FrameAncestors)
	if err != nil {
		return nil, err
	}
	if settings.Directory != "" {
		root, err := os.OpenRoot(settings.Directory) // nothing outside of it is served, whatever it links to
		if err != nil {
			return nil, fmt.Errorf("open the directory of the page: %w", err)
		}
		return &Page{files: root.FS(), policy: policy}, nil
	}
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, fmt.Errorf("open the page: %w", err)
	}
	return &Page{files: files, policy: policy, isFixed: true}, nil
}

// policyOf returns what the page may load and do: its own files, and nothing inline.
func policyOf(ancestors []string) (string, error) {
	for _, one := range ancestors {
		if one == "" || strings.ContainsAny(one, " \t\r\n;,'\"") {
			return "", fmt.Errorf("read frame ancestors: %q is no origin: give one such as https://portal.example.com", one)
		}
	}
	allowed := "'none'"
	if len(ancestors) > 0 {
		allowed = strings.Join(ancestors, " ")
	}
	return "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; " +
		"require-trusted-types-for 'script'; frame-ancestors " + allowed, nil
}

// Serves reports whether a path is one of the page.
func Serves(path string) bool {
	return path == "/" || path == strings.TrimSuffix(Base, "/") || strings.HasPrefix(path, Base)
}

// read returns a file of the page.
func (p *Page) read(name string) ([]byte, error) {
	if strings.HasPrefix(name, ".") || !fs.ValidPath(name) {
		return nil, fs.ErrNotExist
	}
	content, err := fs.ReadFile(p.files, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	return content, err
}
