package main

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestExcept_LeavesWhatHasNoRow(t *testing.T) {
	found := []finding{
		{position: token.Position{Filename: "types.go", Line: 3}, field: "Spec.Phase", linter: "nophase", text: "no phase"},
		{position: token.Position{Filename: "types.go", Line: 9}, field: "Spec.Count", linter: "integers", text: "no int"},
	}
	for name, c := range map[string]struct {
		rows string
		want []string
	}{
		"a finding with a row is not printed":   {"# why\n\nSpec.Phase nophase: people read it", []string{"types.go:9: Spec.Count: no int (integers)"}},
		"a row of another linter does not help": {"Spec.Phase nomaps: -", []string{"types.go:3: Spec.Phase: no phase (nophase)", "types.go:9: Spec.Count: no int (integers)", "exceptions.txt: Spec.Phase nomaps: no linter finds this; remove the row"}},
	} {
		t.Run(name, func(t *testing.T) {
			left, err := except(found, c.rows)
			if err != nil || !slices.Equal(left, c.want) {
				t.Errorf("%q, %v; want %q", left, err, c.want)
			}
		})
	}
}

func TestExcept_RefusesRows(t *testing.T) {
	for name, rows := range map[string]string{
		"without a reason": "Spec.Phase nophase: ", "without a linter": "Spec.Phase: people read it", "twice": "A.B c: d\nA.B c: d",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := except(nil, rows); err == nil {
				t.Errorf("%q is taken", rows)
			}
		})
	}
}

func TestNameOfField(t *testing.T) {
	const text = "package p\n\ntype Spec struct {\n\tmeta.Object\n\tPhase string\n}\n\ntype Word string\n"
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{"meta.": "Spec.Object", "Phase": "Spec.Phase", "Word": "Word", "package": "-"} {
		if name := nameOfField(file, file.FileStart+token.Pos(strings.Index(text, at))); name != want {
			t.Errorf("%q is in %q, want %q", at, name, want)
		}
	}
}

func TestBuildAnalyzers_HasEveryLinterThatWeRelyOn(t *testing.T) {
	analyzers, err := buildAnalyzers()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range analyzers {
		names = append(names, one.Name)
	}
	for _, wanted := range []string{"maxlength", "optionalfields", "nomaps", "nofloats", "notimestamp", "commentstart", "nophase", "requiredfields"} {
		if !slices.Contains(names, wanted) {
			t.Errorf("the linter %s does not run; these do: %q", wanted, names)
		}
	}
}
