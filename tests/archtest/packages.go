package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// A package's comment says in so many lines what comes in, what goes out, and what it must
// never do.
const (
	minDoc = 3
	maxDoc = 15
)

func packages() []Rule {
	return []Rule{
		{Name: "package-comment", Check: comments},
		{Name: "no-mutable-state", Check: mutable},
	}
}

func comments(files []*File) []Violation {
	var opened []*File
	for _, file := range files {
		if file.AST.Doc != nil {
			opened = append(opened, file)
		}
	}
	if len(opened) != 1 {
		return []Violation{files[0].found(files[0].AST.Name, "%d files of the package open with a comment: one must, with %d to %d lines", len(opened), minDoc, maxDoc)}
	}
	if n := proseLines(opened[0].AST.Doc); n < minDoc || n > maxDoc {
		return []Violation{opened[0].found(opened[0].AST, "the package's comment has %d lines: say in %d to %d what comes in, what goes out, what it must never do", n, minDoc, maxDoc)}
	}
	return nil
}

// proseLines counts the lines of a comment that are neither empty nor for a generator.
func proseLines(comment *ast.CommentGroup) int {
	count := 0
	for line := range strings.Lines(comment.Text()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "+") {
			count++
		}
	}
	return count
}

// mutable finds variables of packages that change after they were made: those that a
// function assigns to, and those of a type that is made to be changed.
func mutable(files []*File) []Violation {
	variables := map[string]bool{}
	var all []Violation
	for _, f := range files {
		for _, spec := range globals(f) {
			for _, name := range spec.Names {
				variables[name.Name] = true
			}
			if owner := changing(spec.Type); owner != "" && !f.Test() {
				all = append(all, f.found(spec, "%s of package %s is made to be changed: put it into a type", spec.Names[0].Name, owner))
			}
		}
	}
	for _, f := range files {
		if f.Test() {
			continue
		}
		ast.Inspect(f.AST, func(node ast.Node) bool {
			for _, target := range targets(node) {
				if name := rootName(target); name != nil && variables[name.Name] && !isLocal(f, name) {
					all = append(all, f.found(node, "%s of the package is changed: put it into a type", name.Name))
				}
			}
			return true
		})
	}
	return all
}

// globals are the specs of a file's package-level variables.
func globals(f *File) []*ast.ValueSpec {
	var specs []*ast.ValueSpec
	for _, declaration := range f.AST.Decls {
		if variables, ok := declaration.(*ast.GenDecl); ok && variables.Tok == token.VAR {
			for _, spec := range variables.Specs {
				specs = append(specs, spec.(*ast.ValueSpec)) // the parser's promise
			}
		}
	}
	return specs
}

// changing names the package of a type that is made to be changed, such as a mutex.
func changing(declared ast.Expr) string {
	if index, ok := declared.(*ast.IndexExpr); ok {
		declared = index.X
	}
	if selector, ok := declared.(*ast.SelectorExpr); ok && slices.Contains([]string{"sync", "atomic"}, last(selector.X)) {
		return last(selector.X)
	}
	return ""
}

// targets are the expressions that a statement gives new values.
func targets(node ast.Node) []ast.Expr {
	switch node := node.(type) {
	case *ast.AssignStmt:
		if node.Tok != token.DEFINE {
			return node.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{node.X}
	case *ast.CallExpr:
		if name, ok := node.Fun.(*ast.Ident); ok && len(node.Args) > 0 && (name.Name == "delete" || name.Name == "clear") {
			return node.Args[:1]
		}
	}
	return nil
}

// rootName is the variable at the root of an expression such as a.b[c].
func rootName(expression ast.Expr) *ast.Ident {
	switch e := expression.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return rootName(e.X)
	case *ast.IndexExpr:
		return rootName(e.X)
	case *ast.StarExpr:
		return rootName(e.X)
	}
	return nil
}

// isLocal reports whether the parser resolved a name to something inside a function.
func isLocal(f *File, name *ast.Ident) bool {
	if name.Obj == nil {
		return false // declared in another file of the package
	}
	spec, ok := name.Obj.Decl.(*ast.ValueSpec)
	return !ok || !slices.Contains(globals(f), spec)
}
