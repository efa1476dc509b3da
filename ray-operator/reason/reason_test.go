package reason_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// conditionReason is the API's own rule for the reason of a condition, CamelCase here.
var conditionReason = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,126}$`)

func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, entry := range reason.Catalogue() {
		if !conditionReason.MatchString(entry.Code) {
			t.Errorf("%q cannot be a condition's reason", entry.Code)
		}
		if seen[entry.Code] {
			t.Errorf("%s stands twice", entry.Code)
		}
		seen[entry.Code] = true
		if entry.Message == "" {
			t.Errorf("%s says nothing", entry.Code)
		}
		for _, text := range []string{entry.Message, entry.Remedy} {
			if strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q ends with a dot", entry.Code, text)
			}
		}
	}
}

// TestCatalogueIsWhole reads the source: every exported reason is listed, under its name.
func TestCatalogueIsWhole(t *testing.T) {
	listed := map[string]bool{}
	for _, entry := range reason.Catalogue() {
		listed[entry.Code] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !spec.Names[0].IsExported() {
			return true
		}
		count++
		if name := spec.Names[0].Name; !listed[name] {
			t.Errorf("%s is not in the catalogue under its own name", name)
		}
		return true
	})
	if count != len(listed) {
		t.Errorf("%d reasons in the source, %d in the catalogue", count, len(listed))
	}
}

func TestOf(t *testing.T) {
	for name, test := range map[string]struct{ have, want reason.Finding }{
		"with a remedy": {
			reason.NameConflict.Of("Service demo-head"),
			reason.Finding{Code: "NameConflict", Text: "Service demo-head exists and does not belong to this cluster. " +
				"Delete or rename it, or give the cluster another name"},
		},
		"without one": {reason.AllReady.Of(2, 3), reason.Finding{Code: "AllReady", Text: "head and 2 of 3 workers are ready"}},
	} {
		if test.have != test.want {
			t.Errorf("%s: %+v, want %+v", name, test.have, test.want)
		}
	}
}
