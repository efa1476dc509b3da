package archtest

import (
	"go/ast"
	"slices"
	"strings"
)

const internal = "ray-operator/internal/"

// writers are the packages that change something in Kubernetes: for the operator, for callers of the server, and the one
// that passes on what an election writes to its Lease. The last three write to buckets; of these the
// archiver has a client of Kubernetes, for reviews of tokens and its Lease alone.
var writers = []string{internal + "kube", "portal/access", "cli/kube", internal + "permit", "history/store", "history/keeper", "history/archiver"}

// maxReconcile is how many lines a function Reconcile has at most; golangci-lint has one limit for all functions.
const maxReconcile = 40

func controllers() []Rule {
	return []Rule{each("one-writer", writes), each("reconcile-length", reconciles)}
}

func reconciles(f *File) []Violation {
	var all []Violation
	for _, declaration := range f.AST.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Name.Name != "Reconcile" {
			continue
		}
		if n := f.lines(function); n > maxReconcile {
			all = append(all, f.found(function, "Reconcile has %d lines, at most %d fit: name its parts", n, maxReconcile))
		}
	}
	return all
}

// writes finds calls that change something in Kubernetes outside of the packages that
// may. Without types a write is known by its name, its context and what it is called on.
func writes(f *File) []Violation {
	if !f.Product() || slices.ContainsFunc(writers, func(dir string) bool { return within(f.Path, dir) }) {
		return nil
	}
	verbs := []string{"Create", "Update", "Patch", "Apply", "Delete", "DeleteAllOf", "DeleteCollection", "UpdateStatus"}
	var all []Violation
	ast.Inspect(f.AST, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if ok && slices.Contains(verbs, method.Sel.Name) && !strings.EqualFold(last(method.X), "writer") && isContext(call.Args[0]) {
			all = append(all, f.found(call, "%s.%s writes: only internal/kube does, through its Writer, portal/access for callers, and cli/kube for users", last(method.X), method.Sel.Name))
		}
		return true
	})
	return all
}

// last is the last name of an expression such as a.b or a.b().
func last(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return last(e.Fun)
	}
	return ""
}

// isContext tells an argument that is a context by its name or origin.
func isContext(argument ast.Expr) bool {
	if call, ok := argument.(*ast.CallExpr); ok {
		method, ok := call.Fun.(*ast.SelectorExpr)
		return ok && (last(method.X) == "context" || method.Sel.Name == "Context")
	}
	return strings.HasSuffix(strings.ToLower(last(argument)), "ctx")
}
