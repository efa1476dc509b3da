// Package archtest checks rules of the code that no linter knows; .golangci.yml has the others: budgets, directions of
// imports, calls that are forbidden.
//
// In: Go files, parsed and not type-checked, so that a look at the whole repository takes
// a second. Out: violations, each with its place and what to do.
//
// A rule is a table entry; it must never know of one file by name to let it pass.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// File is one hand-written Go file.
type File struct {
	// Path is slash-separated, from the repository's root.
	Path string
	Text string
	AST  *ast.File

	positions *token.FileSet
}

// Dir is the directory of the file's package, from the repository's root.
func (f *File) Dir() string { return path.Dir(f.Path) }

// Test reports whether the file is compiled into tests alone.
func (f *File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Product reports whether the file is part of what users run, and not of the tests.
func (f *File) Product() bool {
	return !f.Test() && !within(f.Path, "tests") && !within(f.Path, "hack") && !within(f.Path, "ray-operator/internal/testkit")
}

// lines is how many lines a node takes.
func (f *File) lines(node ast.Node) int {
	return f.positions.Position(node.End()).Line - f.positions.Position(node.Pos()).Line + 1
}

// within reports whether a path is the directory or below it.
func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// Violation is a rule broken at a place.
type Violation struct {
	Rule, Place, Message string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s (%s)", v.Place, v.Message, v.Rule) }

// found makes a violation of a rule at a node; the caller names the rule.
func (f *File) found(node ast.Node, format string, values ...any) Violation {
	place := fmt.Sprintf("%s:%d", f.Path, f.positions.Position(node.Pos()).Line)
	return Violation{Place: place, Message: fmt.Sprintf(format, values...)}
}

// Parse reads one file; it gives nil for a generated one.
func Parse(name, text string) (*File, error) {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, name, text, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	return &File{Path: name, Text: text, AST: parsed, positions: positions}, nil
}

// Load reads every hand-written Go file below the repository's root.
func Load(root string) ([]*File, error) {
	var files []*File
	err := Walk(root, func(name, text string) error {
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := Parse(name, text)
		if file != nil {
			files = append(files, file)
		}
		return err
	})
	return files, err
}

// Walk visits every text file below the repository's root that people write.
func Walk(root string, visit func(name, text string) error) error {
	skipped := []string{".git", "bin", ".state", "node_modules"}
	err := filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(skipped, entry.Name()) {
			return filepath.SkipDir
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(at)
		if err != nil || strings.ContainsRune(string(text), 0) {
			return err
		}
		name, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(name), string(text))
	})
	if err != nil {
		return fmt.Errorf("walk through %s: %w", root, err)
	}
	return nil
}

// Rule is something that all files, or all files of a package, must keep.
type Rule struct {
	Name string
	// Check looks at the files of one directory, or of all where IsOfAll.
	Check   func(files []*File) []Violation
	IsOfAll bool
}

// Rules are all that hold.
func Rules() []Rule {
	return slices.Concat(controllers(), habits(), methods(), packages(), []Rule{{Name: "folders-one-way", Check: folders, IsOfAll: true}})
}

// each makes a rule of a check of single files.
func each(name string, check func(f *File) []Violation) Rule {
	return Rule{Name: name, Check: func(files []*File) []Violation {
		var all []Violation
		for _, file := range files {
			all = append(all, check(file)...)
		}
		return all
	}}
}

// Check applies all rules and gives what breaks them.
func Check(files []*File) []Violation {
	byDir := map[string][]*File{}
	var dirs []string
	for _, file := range files {
		if byDir[file.Dir()] == nil {
			dirs = append(dirs, file.Dir())
		}
		byDir[file.Dir()] = append(byDir[file.Dir()], file)
	}
	var all []Violation
	for _, rule := range Rules() {
		parts := [][]*File{files}
		if !rule.IsOfAll {
			parts = nil
			for _, dir := range dirs {
				parts = append(parts, byDir[dir])
			}
		}
		for _, part := range parts {
			for _, violation := range rule.Check(part) {
				violation.Rule = rule.Name
				all = append(all, violation)
			}
		}
	}
	return all
}
