package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestFocusFailed(t *testing.T) {
	spec := func(state, container, text string) string {
		return fmt.Sprintf(`{"ContainerHierarchyTexts": [%q, "inner"], "LeafNodeType": "It", "LeafNodeText": %q, "State": %q}`, container, text, state)
	}
	const alone = `{"LeafNodeType": "It", "LeafNodeText": "stands alone", "State": "timedout"}`
	for _, c := range []struct {
		name  string
		specs []string
		want  string // its focus, or a part of its error
	}{
		{"a container is named once, and quoted", []string{spec("failed", "a (b)", "x"), spec("failed", "a (b)", "y")}, `a \(b\)`},
		{"what passed is not run again", []string{spec("passed", "good", "x"), spec("panicked", "bad", "x")}, "bad"},
		{"a spec without a container is one", []string{alone, spec("failed", "bad", "x")}, "stands alone|bad"},
		{"a failed set-up is not run again", []string{`{"LeafNodeType": "BeforeSuite", "State": "failed"}`}, "BeforeSuite failed"},
		{"many containers have one cause", []string{spec("failed", "a", "x"), spec("failed", "b", "x"), spec("failed", "c", "x"), alone},
			"specs of 4 containers failed"},
		{"a suite that failed without a spec is not run again", []string{spec("passed", "good", "x")}, "specs of 0 containers failed"},
	} {
		got, err := focusFailed(strings.NewReader(`[{"SpecReports": [` + strings.Join(c.specs, ",") + "]}]"))
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || err == nil && got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got, err := focusFailed(strings.NewReader("[")); err == nil {
		t.Errorf("a broken report gave %q", got)
	}
}
