package reason_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
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
	}
}

// TestCatalogueIsWhole reads the source: every exported reason is listed, under its name.
func TestCatalogueIsWhole(t *testing.T) {
	listed := map[string]bool{}
	for _, entry := range reason.Catalogue() {
		listed[entry.Code] = true
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, source := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !isReason(spec.Values[0]) {
				return true
			}
			count++
			if name := spec.Names[0].Name; !listed[name] {
				t.Errorf("%s is not in the catalogue under its own name", name)
			}
			return true
		})
	}
	if count != len(listed) {
		t.Errorf("%d reasons in the source, %d in the catalogue", count, len(listed))
	}
}

func isReason(value ast.Expr) bool {
	literal, ok := value.(*ast.CompositeLit)
	if !ok {
		return false
	}
	kind, ok := literal.Type.(*ast.Ident)
	return ok && kind.Name == "Reason"
}

// TestFormats: messages and remedies hold nothing but %s and %d, and no
// text ends with a dot: a remedy may follow, which begins with a word.
func TestFormats(t *testing.T) {
	for _, entry := range reason.Catalogue() {
		texts := []string{entry.Message, entry.Remedy}
		kinds := map[string]bool{}
		for _, c := range entry.Cases {
			if kinds[c.Kind] || c.Kind == "" || c.Remedy == "" {
				t.Errorf("%s: case %q stands twice or says nothing", entry.Code, c.Kind)
			}
			kinds[c.Kind] = true
			texts = append(texts, c.Remedy)
		}
		for _, remedy := range texts[1:] {
			if strings.HasPrefix(remedy, "%") {
				t.Errorf("%s: the remedy %q begins with a value", entry.Code, remedy)
			}
		}
		for _, text := range texts {
			if rest := strings.NewReplacer("%s", "", "%d", "").Replace(text); strings.Contains(rest, "%") {
				t.Errorf("%s: %q has a verb other than %%s and %%d", entry.Code, text)
			}
			if strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q ends with a dot", entry.Code, text)
			}
		}
		if entry.When == "" || !strings.HasSuffix(entry.When, ".") {
			t.Errorf("%s: when it is used is no sentence: %q", entry.Code, entry.When)
		}
	}
}

func TestIn(t *testing.T) {
	entry := reason.Reason{Code: "A", Message: "a %s", Remedy: "rest", Cases: []reason.Case{{Kind: "one", Remedy: "add %s"}}}
	for kind, want := range map[string]string{"one": "a x. add y", "": "a x. rest", "other": "a x. rest"} {
		values := []any{"x", "y"}
		if kind != "one" {
			values = values[:1]
		}
		if have := entry.In(kind).Of(values...).Text; have != want {
			t.Errorf("%q: %q, want %q", kind, have, want)
		}
	}
	if entry.Remedy != "rest" {
		t.Error("choosing a case changed the reason")
	}
}

func TestLookup(t *testing.T) {
	for rank, entry := range reason.Catalogue() {
		finding := reason.Finding{Code: entry.Code}
		found, ok := reason.Lookup(entry.Code)
		if !ok || found.Message != entry.Message || finding.Rank() != rank || finding.Severity() != entry.Severity {
			t.Errorf("%s: found %v, rank %d, severity %v", entry.Code, ok, finding.Rank(), finding.Severity())
		}
	}
	stranger := reason.Finding{Code: "Unheard"}
	if _, ok := reason.Lookup("Unheard"); ok || stranger.Severity() != reason.Warning || stranger.Rank() != len(reason.Catalogue()) {
		t.Error("a code that is not in the catalogue must be a Warning of the last rank")
	}
}

func TestAbout(t *testing.T) {
	have := reason.Starting.Of("ray").About("head pod a")
	if want := (reason.Finding{Code: "Starting", Text: "head pod a: container ray is starting"}); have != want {
		t.Errorf("%+v, want %+v", have, want)
	}
}

func TestSeverityNames(t *testing.T) {
	for severity, want := range map[reason.Severity]string{reason.Fine: "Fine", reason.Progress: "Progress", reason.Warning: "Warning"} {
		if have := severity.String(); have != want {
			t.Errorf("%s, want %s", have, want)
		}
	}
}

func TestOf(t *testing.T) {
	for name, test := range map[string]struct{ have, want reason.Finding }{
		"with a remedy": {
			reason.NameConflict.Of("Service demo-head"),
			reason.Finding{Code: "NameConflict", Text: "Service demo-head exists and does not belong to this cluster. " +
				"Delete it if it is not needed, or create the cluster under another name"},
		},
		"without one": {reason.AllReady.Of(2, 3), reason.Finding{Code: "AllReady", Text: "head and 2 of 3 workers are ready"}},
	} {
		if test.have != test.want {
			t.Errorf("%s: %+v, want %+v", name, test.have, test.want)
		}
	}
}
