package archtest

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

const doc = "// Package x is one.\n//\n// In: nothing. Out: nothing.\n// It must never be more.\n"

const (
	clusterDir = "ray-operator/internal/cluster/x.go"
	scaleDir   = "ray-operator/internal/scale/x.go"
)

// bad has, for each rule, sources that break it. A source begins with its path, and further ones follow lines of "---".
var bad = map[string][]string{
	"reconcile-length": {scaleDir + "\npackage x\n" + body("Reconcile", maxReconcile)},
	"one-writer": {
		clusterDir + "\npackage x\nfunc (r *R) f(ctx C) { r.Client.Create(ctx, pod) }",
		clusterDir + "\npackage x\nfunc (r *R) f(ctx C) { r.Client.Status().Patch(ctx, pod, patch) }",
		clusterDir + "\npackage x\nfunc f(ctx C) { api.Pods(\"a\").Delete(ctx, \"b\", options) }",
		"ray-operator/cmd/x/x.go\npackage x\nfunc f() { c.Update(context.Background(), pod) }",
		"cli/job/x.go\npackage x\nfunc f(ctx C) { objects.Delete(ctx, pod) }",
	},
	"folders-one-way": {
		importing("apiserver/x", "dashboard-proxy/y") + "\n---\n" + importing("dashboard-proxy/z", "apiserver/y"),
		importing("ray-operator/headclient", "ray-operator/internal/scale") + "\n---\n" + importing("ray-operator/internal/job", "ray-operator/headclient/x"),
	},
	"methods-of-a-type": {clusterDir + "\npackage x\n" + methodsNamed(maxMethods+1), scaleDir + "\npackage x\n" + methodsNamed(maxMethods+1)},
	"functions-over-an-object": {
		clusterDir + "\npackage x\n" + functionsOver("*t", maxMethods+1),
		clusterDir + "\npackage x\n" + functionsOver("*t", maxMethods-1) + "type u struct{ *t; a int }\nfunc (u u) one() {}\nfunc two(ctx context.Context, u *u) {}",
	},
	"method-beside-field": {
		clusterDir + "\npackage x\ntype t struct{ Wake int }\nfunc (t *t) wake() {}",
		clusterDir + "\npackage x\ntype t[T any] struct{ a, wake T }\nfunc (t t[T]) Wake() {}",
	},
	"one-yaml-reader": {
		"cli/x/x.go\npackage x\nimport \"sigs.k8s.io/yaml\"\nfunc f() { yaml.YAMLToJSONStrict(text) }",
		"apiserver/x/x.go\npackage x\nimport \"sigs.k8s.io/yaml\"\nvar f = yaml.UnmarshalStrict",
		"dashboard-proxy/x/x.go\npackage x\nimport other \"go.yaml.in/yaml/v3\"\nfunc f() { other.NewDecoder(r) }",
		scaleDir + "\npackage x\nimport \"k8s.io/apimachinery/pkg/util/yaml\"\nfunc f() { yaml.NewYAMLOrJSONDecoder(r, 9) }",
		scaleDir + "\npackage x\nimport . \"gopkg.in/yaml.v3\"\nfunc f() { Unmarshal(text, &x) }",
	},
	"no-leftover": {scaleDir + "\npackage x\n// TO" + "DO: more\n", scaleDir + "\npackage x\nfunc f() { /* FIX" + "ME */ }"},
	"package-comment": {
		scaleDir + "\npackage x", scaleDir + "\n// Package x is short.\npackage x",
		scaleDir + "\n// Package x has markers.\n// One.\n// +groupName=x\npackage x",
		scaleDir + "\n" + strings.Repeat("// Long.\n", maxDoc+1) + "package x",
	},
	"no-mutable-state": {
		scaleDir + "\npackage x\nvar a int\nfunc f() { a = 1 }", scaleDir + "\npackage x\nvar a int\nfunc f() { a++ }",
		scaleDir + "\npackage x\nvar a map[int]int\nfunc f() { a[1] = 2 }", scaleDir + "\npackage x\nvar a map[int]int\nfunc f() { delete(a, 1) }",
		scaleDir + "\npackage x\nvar a struct{ b int }\nfunc f() { a.b += 2 }", scaleDir + "\npackage x\nvar lock sync.Mutex",
		scaleDir + "\npackage x\nvar count atomic.Int64", scaleDir + "\npackage x\nvar at atomic.Pointer[int]",
	},
}

// importing returns a file of a package that imports another one of the repository.
func importing(dir, path string) string {
	return dir + "/x.go\n" + doc + "package x\nimport _ \"" + module + path + "\"\n"
}

// methodsNamed returns a type with so many methods.
func methodsNamed(count int) string {
	text := "type t struct{ field int }\n"
	for i := range count {
		text += fmt.Sprintf("func (x *t) do%d() {}\n", i)
	}
	return text
}

// functionsOver returns so many functions whose first argument is of a type.
func functionsOver(of string, count int) string {
	text := "type t struct{ field int }\n"
	for i := range count {
		text += fmt.Sprintf("func do%d(x %s, y int) {}\n", i, of)
	}
	return text
}

func body(name string, lines int) string {
	return "func " + name + "() {" + strings.Repeat("\n", lines) + "}"
}

func TestRulesBite(t *testing.T) {
	known := map[string]bool{}
	for _, rule := range Rules() {
		known[rule.Name] = true
		if len(bad[rule.Name]) == 0 {
			t.Errorf("no source shows that the rule %s bites", rule.Name)
		}
	}
	for rule, sources := range bad {
		if !known[rule] {
			t.Errorf("there is no rule %s", rule)
		}
		for _, source := range sources {
			sources := map[string]string{}
			for one := range strings.SplitSeq(source, "\n---\n") {
				path, text, _ := strings.Cut(one, "\n")
				sources[path] = text
			}
			if broken := check(t, sources); broken[rule] == "" {
				t.Errorf("%s lets this pass:\n%.300s", rule, source)
			}
		}
	}
}

// good sources break no rule: what is just within a limit, and what looks like a violation and is none.
var good = []map[string]string{
	{clusterDir: doc + "package x\n" + methodsNamed(maxMethods), "tests/x/x.go": doc + "package x\n" + methodsNamed(maxMethods+1)},
	{clusterDir: doc + "package x\n" + functionsOver("t", maxMethods+1), scaleDir: doc + "package x\n" + functionsOver("*t", maxMethods+1)},
	{scaleDir: doc + "package x\n" + body("f", maxReconcile) + "\n" + body("Reconcile", maxReconcile-1)},
	{clusterDir: doc + "package x\nfunc (r *R) f(ctx C) { r.Writer.Create(ctx, pod); os.Create(name); r.Client.Get(ctx, key) }"},
	{"cli/x/x.go": doc + "package x\nimport \"sigs.k8s.io/yaml\"\nfunc f() { yaml.Marshal(x); yaml.JSONToYAML(x) }"},
	{"cli/x/x.go": doc + "package x\nimport \"github.com/heliostat-dev/heliostat/ray-operator/yaml\"\nfunc f() { yaml.ToJSON(text, 9) }"},
	{"ray-operator/yaml/x.go": doc + "package x\nimport \"sigs.k8s.io/yaml\"\nfunc f() { yaml.YAMLToJSONStrict(text) }"},
	{"tests/x/x.go": doc + "package x\nimport \"sigs.k8s.io/yaml\"\nfunc f() { yaml.Unmarshal(text, x) }"},
	{"ray-operator/internal/kube/x.go": doc + "package x\nfunc (w *W) f(ctx C) { w.Client.Create(ctx, pod) }"},
	{"tests/x/x.go": doc + "package x\nfunc f() { c.Create(ctx, pod) }"},
	{scaleDir: doc + "package x\nvar a = map[int]int{1: 2}\nfunc f() { a := 1; a = 2; b.a = 3 }"},
	{scaleDir: doc + "package x\nvar a = 1\nfunc f(a int) { a = 2; a++ }"},
	{scaleDir: doc + "package x", "ray-operator/internal/scale/x_test.go": "package x\nvar a int\nfunc f() { a = 1 }\n"},
}

func TestFoldersMayImportOneWay(t *testing.T) {
	for _, sources := range [][]string{
		{importing("apiserver/x", "portal/y"), importing("dashboard-proxy/x", "portal/y"), importing("apiserver/app", "dashboard-proxy/x")},
		{importing("apiserver/x", "apiserver/y"), importing("apiserver/y", "apiserver/z")},
		{importing("ray-operator/internal/x", "ray-operator/validate"), importing("ray-operator/internal/y", "ray-operator/naming")},
		{importing("tests/x", "cli/x"), importing("cli/x", "tests/x")},
	} {
		files := map[string]string{}
		for _, source := range sources {
			path, text, _ := strings.Cut(source, "\n")
			files[path] = text
		}
		if broken := check(t, files); broken["folders-one-way"] != "" {
			t.Errorf("%v is found in %v", broken, sources)
		}
	}
}

func TestGoodSourcesPass(t *testing.T) {
	for _, sources := range good {
		if broken := check(t, maps.Clone(sources)); len(broken) > 0 {
			t.Errorf("%v are found in\n%.400v", broken, sources)
		}
	}
}

func TestMutableStateIsFoundAcrossFiles(t *testing.T) {
	broken := check(t, map[string]string{
		"ray-operator/internal/scale/a.go": doc + "package x\nvar table = map[int]int{}\n",
		"ray-operator/internal/scale/b.go": "package x\nfunc f() { table[1] = 2 }\n",
	})
	if broken["no-mutable-state"] == "" {
		t.Errorf("an assignment in another file passes: %v", broken)
	}
}
