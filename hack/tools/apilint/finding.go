package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
)

// finding is what a linter says about a field.
type finding struct {
	position token.Position
	field    string // TYPE.FIELD, or the text of the line's position where it is about no field
	linter   string
	text     string
}

func (f finding) key() string { return f.field + " " + f.linter }

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s (%s)", f.position.Filename, f.position.Line, f.field, f.text, f.linter)
}

func compareFindings(a, b finding) int {
	return cmp.Or(cmp.Compare(a.position.Filename, b.position.Filename), cmp.Compare(a.position.Line, b.position.Line),
		cmp.Compare(a.linter, b.linter), cmp.Compare(a.text, b.text))
}

func findingOf(action *checker.Action, diagnostic analysis.Diagnostic) finding {
	found := finding{
		position: action.Package.Fset.Position(diagnostic.Pos), linter: action.Analyzer.Name, text: diagnostic.Message,
	}
	for _, file := range action.Package.Syntax {
		if file.FileStart <= diagnostic.Pos && diagnostic.Pos < file.FileEnd {
			found.field = nameOfField(file, diagnostic.Pos)
		}
	}
	return found
}

// nameOfField returns TYPE.FIELD of the field at a position, or the type alone.
func nameOfField(file *ast.File, at token.Pos) string {
	for _, declared := range file.Decls {
		group, ok := declared.(*ast.GenDecl)
		if !ok || at < group.Pos() || group.End() < at {
			continue
		}
		for _, spec := range group.Specs {
			if named, ok := spec.(*ast.TypeSpec); ok && named.Pos() <= at && at <= named.End() {
				return named.Name.Name + memberAt(named.Type, at)
			}
		}
	}
	return "-"
}

// memberAt returns .FIELD of the field of a struct at a position. An embedded field has the name of its type.
func memberAt(of ast.Expr, at token.Pos) string {
	is, ok := of.(*ast.StructType)
	if !ok {
		return ""
	}
	for _, field := range is.Fields.List {
		if at < field.Pos() || field.End() < at {
			continue
		}
		if len(field.Names) > 0 {
			return "." + field.Names[0].Name
		}
		if selected, ok := field.Type.(*ast.SelectorExpr); ok {
			return "." + selected.Sel.Name
		}
	}
	return ""
}

// except returns the lines to print: findings without a row among the exceptions, and rows without a finding. A row is
// "TYPE.FIELD LINTER: REASON"; empty lines, and those that begin with "#", are comments.
func except(found []finding, rows string) ([]string, error) {
	used := map[string]bool{}
	for _, line := range strings.Split(rows, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, reason, _ := strings.Cut(line, ": ")
		if len(strings.Fields(key)) != 2 || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("read the exception %q: it is not TYPE.FIELD LINTER: REASON", line)
		}
		if _, again := used[key]; again {
			return nil, fmt.Errorf("read the exception %q: it stands twice", line)
		}
		used[key] = false
	}
	var left []string
	for _, one := range found {
		if _, has := used[one.key()]; has {
			used[one.key()] = true
			continue
		}
		left = append(left, one.String())
	}
	for _, line := range strings.Split(rows, "\n") {
		if key, _, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && key[0] != '#' && !used[key] {
			left = append(left, "exceptions.txt: "+key+": no linter finds this; remove the row")
		}
	}
	return left, nil
}
