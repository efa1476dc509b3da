package shape

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
	testFile   = "ray-operator/internal/scale/x_test.go"
)

// bad has, for each rule, sources that break it. A source begins with its path.
var bad = map[string][]string{
	"file-length":     {scaleDir + "\n" + doc + "package x\n" + strings.Repeat("\n", maxFile)},
	"function-length": {function("f", 60), function("Reconcile", 40), "tests/x/x_test.go\npackage x\n" + body("Test", 60)},
	"complexity": {
		scaleDir + "\npackage x\nfunc f(a bool) { " + strings.Repeat("if a {}; ", 12) + "}",
		scaleDir + "\npackage x\nfunc f(a bool) bool { return a" + strings.Repeat(" && a", 6) + strings.Repeat(" || a", 6) + "}",
		scaleDir + "\npackage x\nfunc f(a int) { switch a {" + cases(12) + "} }",
		scaleDir + "\npackage x\nfunc f(a []int) { " + strings.Repeat("for range a {}; for a := 0; a < 1; a++ {}; ", 6) + "}",
	},
	"parameters": {
		scaleDir + "\npackage x\nfunc f(a, b, c, d, e, f int) {}",
		scaleDir + "\npackage x\ntype t int\nfunc (t) f(a, b, c int, d, e, f string) {}",
		scaleDir + "\npackage x\n//shape:dictated \nfunc f(a, b, c, d, e, f int) {}",
	},
	"one-writer": {
		clusterDir + "\npackage x\nfunc (r *R) f(ctx C) { r.Client.Create(ctx, pod) }",
		clusterDir + "\npackage x\nfunc (r *R) f(ctx C) { r.Client.Status().Patch(ctx, pod, patch) }",
		clusterDir + "\npackage x\nfunc f(ctx C) { api.Pods(\"a\").Delete(ctx, \"b\", options) }",
		"ray-operator/cmd/x/x.go\npackage x\nfunc f() { c.Update(context.Background(), pod) }",
	},
	"api-imports-nothing-of-ours": {
		imports("ray-operator/api/v1alpha1/x.go", Module+"/ray-operator/reason"),
		imports("ray-operator/api/v1alpha1/x.go", "sigs.k8s.io/controller-runtime/pkg/scheme"),
		imports("ray-operator/api/v1alpha1/x.go", "k8s.io/client-go/kubernetes"),
	},
	"pure": {
		imports(scaleDir, "os"), imports(scaleDir, "net/http"), imports(scaleDir, "log/slog"), imports(scaleDir, "crypto/rand"),
		imports("ray-operator/reason/x.go", "k8s.io/client-go/rest"),
		imports("ray-operator/internal/desired/pod/x.go", "sigs.k8s.io/controller-runtime/pkg/client"),
		imports("ray-operator/internal/naming/x.go", "k8s.io/utils/clock"),
		imports("ray-operator/internal/validate/x.go", "k8s.io/klog/v2"),
	},
	"controllers-apart": {
		imports(clusterDir, Module+"/ray-operator/internal/job"),
		imports("ray-operator/internal/job/x.go", Module+"/ray-operator/internal/cluster"),
		imports("ray-operator/internal/service/x.go", Module+"/ray-operator/internal/job"),
	},
	"testkit-in-tests": {imports("ray-operator/internal/app/x.go", Module+"/ray-operator/internal/testkit")},
	"settings-enter-in-cmd": {
		clusterDir + "\npackage x\nfunc f() { os.Getenv(\"A\") }", clusterDir + "\npackage x\nvar f = os.LookupEnv",
	},
	"now-is-an-argument": {
		clusterDir + "\npackage x\nfunc f() { time.Now() }", clusterDir + "\npackage x\nvar now = time.Now",
		scaleDir + "\npackage x\nfunc f() { time.Since(a) }",
	},
	"no-sleep":        {testFile + "\npackage x\nfunc f() { time.Sleep(1) }", clusterDir + "\npackage x\nfunc f() { time.Sleep(1) }"},
	"no-skipped-test": {testFile + "\npackage x\nfunc f() { t.Skip() }", "tests/e2e/x_test.go\npackage x\nvar _ = PIt(\"x\", f)"},
	"no-leftover":     {scaleDir + "\npackage x\n// TO" + "DO: more\n", scaleDir + "\npackage x\nfunc f() { /* FIX" + "ME */ }"},
	"package-name":    {scaleDir + "\npackage utils", "tests/x/x.go\npackage helpers"},
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

func imports(path, imported string) string {
	return fmt.Sprintf("%s\npackage x\nimport _ %q\n", path, imported)
}

func function(name string, lines int) string { return scaleDir + "\npackage x\n" + body(name, lines) }

func body(name string, lines int) string {
	return "func " + name + "() {" + strings.Repeat("\n", lines) + "}"
}

func cases(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "case %d:\n", i)
	}
	return all.String()
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
			path, text, _ := strings.Cut(source, "\n")
			if broken := check(t, map[string]string{path: text}); broken[rule] == "" {
				t.Errorf("%s lets this pass:\n%.300s", rule, source)
			}
		}
	}
}

// good sources break no rule: what is just within the budgets, and what looks like a
// violation and is none.
var good = []map[string]string{
	{scaleDir: doc + "package x\n" + body("f", 59) + "\n" + body("g", 59)},
	{scaleDir: doc + "package x\nfunc f(a, b, c, d, e int) { " + strings.Repeat("if a {}; ", 11) + "}"},
	{scaleDir: doc + "package x\n// f is.\n//\n//shape:dictated by a.B\nfunc f(a, b, c, d, e, f int) {}"},
	{scaleDir: doc + "package x\nfunc f(a int) { switch a { case 1, 2, 3: default: } }"},
	{clusterDir: doc + "package x\nfunc (r *R) f(ctx C) { r.Writer.Create(ctx, pod); os.Create(name); r.Client.Get(ctx, key) }"},
	{"ray-operator/internal/kube/x.go": doc + "package x\nfunc (w *W) f(ctx C) { w.Client.Create(ctx, pod) }"},
	{"ray-operator/api/v1alpha1/x.go": doc + "package x\nimport _ \"k8s.io/api/core/v1\"\n"},
	{"ray-operator/cmd/x/x.go": doc + "package x\nfunc f() { os.Getenv(\"A\"); time.Now() }"},
	{"tests/x/x.go": doc + "package x\nfunc f() { time.Now(); os.Getenv(\"A\"); c.Create(ctx, pod) }"},
	{scaleDir: doc + "package x\nvar a = map[int]int{1: 2}\nfunc f() { a := 1; a = 2; b.a = 3 }"},
	{scaleDir: doc + "package x\nvar a = 1\nfunc f(a int) { a = 2; a++ }"},
	{scaleDir: doc + "package x", testFile: "package x\nimport _ \"os\"\nvar now = time.Now\n"},
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
