package shape

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// direction says what the packages below some directories must not import.
type direction struct {
	name string
	// from are directories; tests in them are free.
	from []string
	// never are import paths, with all below them. A leading "./" stands for our module.
	never []string
	// but are exceptions from never.
	but     []string
	because string
}

const internal = "ray-operator/internal/"

// pure packages hold decisions: what they do follows from their arguments alone.
func pure() []string {
	return []string{
		"ray-operator/reason", internal + "naming", internal + "desired", internal + "scale", internal + "rollout",
		internal + "validate", internal + "autoscale", internal + "diagnose", internal + "serveconfig",
	}
}

func table() []direction {
	return []direction{
		{
			name: "api-imports-nothing-of-ours", from: []string{"ray-operator/api"}, never: []string{"./", "sigs.k8s.io", "k8s.io"},
			but:     []string{"./ray-operator/api", "k8s.io/api", "k8s.io/apimachinery"},
			because: "any program must be able to import the kinds",
		},
		{
			name: "pure", from: pure(), because: "a pure package takes what it needs as arguments",
			never: []string{
				"os", "net", "log", "io/fs", "math/rand", "crypto/rand", "k8s.io/client-go", "sigs.k8s.io/controller-runtime",
				"k8s.io/klog", "k8s.io/utils/clock", "github.com/go-logr/logr",
			},
		},
		{
			name: "controllers-apart", from: []string{internal + "cluster"}, never: []string{"./" + internal + "job", "./" + internal + "service"},
			because: "controllers meet in the API server",
		},
		{
			name: "controllers-apart", from: []string{internal + "job"}, never: []string{"./" + internal + "cluster", "./" + internal + "service"},
			because: "controllers meet in the API server",
		},
		{
			name: "controllers-apart", from: []string{internal + "service"}, never: []string{"./" + internal + "cluster", "./" + internal + "job"},
			because: "controllers meet in the API server",
		},
		{
			name: "testkit-in-tests", from: []string{"ray-operator"}, never: []string{"./" + internal + "testkit"},
			because: "what users run holds no fakes",
		},
	}
}

func directions() []Rule {
	rules := []Rule{each("one-writer", writes)}
	for _, d := range table() {
		rules = append(rules, each(d.name, d.check))
	}
	return rules
}

func (d direction) check(f *File) []Violation {
	if f.Test() || within(f.Path, internal+"testkit") || !slices.ContainsFunc(d.from, func(dir string) bool { return within(f.Path, dir) }) {
		return nil
	}
	var all []Violation
	for _, spec := range f.AST.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err == nil && matches(imported, d.never) && !matches(imported, d.but) {
			all = append(all, f.found(spec, "imports %s: %s", imported, d.because))
		}
	}
	return all
}

// matches tells whether an import path is one of the patterns or below it.
func matches(imported string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if ours, ok := strings.CutPrefix(pattern, "./"); ok {
			pattern = strings.TrimSuffix(Module+"/"+ours, "/")
		}
		return within(imported, pattern)
	})
}

// writes finds calls that change something in Kubernetes outside of the one package that
// may. Without types a write is known by its name, its context and what it is called on.
func writes(f *File) []Violation {
	if !f.Product() || within(f.Path, internal+"kube") {
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
			all = append(all, f.found(call, "%s.%s writes: only internal/kube does, through its Writer", last(method.X), method.Sel.Name))
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
