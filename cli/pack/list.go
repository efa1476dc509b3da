package pack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// rayExcludes are what Ray leaves out of a directory by itself.
var rayExcludes = []string{".git", ".venv", "venv", "__pycache__"}

// entry is a file or directory that is not excluded.
type entry struct {
	// path is relative to the directory, with slashes.
	path string
	info fs.FileInfo
	// isEmpty: the directory has nothing in it, not even what is excluded.
	isDirectory, isEmpty bool
}

// list returns what rules do not exclude, directories before what they hold.
func list(root *os.Root, excludes []string) ([]entry, error) {
	own, err := parseRules(slices.Concat(rayExcludes, excludes))
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	l := &listing{files: root.FS(), scopes: []scope{{".", own}}}
	if err := l.add(".", []fs.FileInfo{info}); err != nil {
		return nil, err
	}
	return l.all, nil
}

// listing is a directory that is being listed.
type listing struct {
	files  fs.FS
	scopes []scope
	all    []entry
}

// scope is where rules hold.
type scope struct {
	directory string
	rules     rules
}

// add adds what a directory holds. Above are the directory and those that it is in.
func (l *listing) add(directory string, above []fs.FileInfo) error {
	outer := l.scopes
	defer func() { l.scopes = outer }()
	if err := l.enter(directory); err != nil {
		return err
	}
	children, err := fs.ReadDir(l.files, directory)
	if err != nil {
		return err
	}
	if len(above) > 1 {
		l.all[len(l.all)-1].isEmpty = len(children) == 0
	}
	for _, child := range children {
		if err := l.addChild(path.Join(directory, child.Name()), child.Type(), above); err != nil {
			return err
		}
	}
	return nil
}

// addChild adds a file or a directory with what it holds. A link counts as what it leads to, and one to nothing is left
// out, as editors make them.
func (l *listing) addChild(child string, kind fs.FileMode, above []fs.FileInfo) error {
	if l.isExcluded(child) {
		return nil
	}
	info, err := fs.Stat(l.files, child)
	isLink := kind&fs.ModeSymlink != 0
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil && isLink:
		return fmt.Errorf("%s is a link that leaves the directory; exclude it, or put what it leads to there", child)
	case err != nil:
		return err
	case info.Mode().IsRegular():
		l.all = append(l.all, entry{path: child, info: info})
	case info.IsDir() && isLink && slices.ContainsFunc(above, func(one fs.FileInfo) bool { return os.SameFile(one, info) }):
		return fmt.Errorf("%s is a link to a directory that holds it; exclude it", child)
	case info.IsDir():
		l.all = append(l.all, entry{path: child, info: info, isDirectory: true})
		return l.add(child, append(slices.Clip(above), info))
	}
	return nil
}

// enter adds the rules of a directory's own files.
func (l *listing) enter(directory string) error {
	for _, name := range []string{".gitignore", ".rayignore"} {
		file := path.Join(directory, name)
		if info, err := fs.Stat(l.files, file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := fs.ReadFile(l.files, file)
		if err != nil {
			return err
		}
		found, err := parseRules(strings.Split(string(text), "\n"))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		l.scopes = append(slices.Clip(l.scopes), scope{directory, found})
	}
	return nil
}

// isExcluded reports whether rules exclude a path. Those of a directory say nothing of the directory itself.
func (l *listing) isExcluded(child string) bool {
	return slices.ContainsFunc(l.scopes, func(s scope) bool {
		inside := child
		if s.directory != "." {
			inside = strings.TrimPrefix(child, s.directory+"/")
		}
		return s.rules.excludes(inside)
	})
}
