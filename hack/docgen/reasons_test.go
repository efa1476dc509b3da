package main

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func TestReasonsPage(t *testing.T) {
	have := reasonsPage([]reason.Section{{Title: "Some", Reasons: []reason.Reason{
		{Code: "A", Severity: reason.Warning, When: "At times.", Message: "%d of %s", Remedy: "Help", Cases: []reason.Case{{Kind: "one", Remedy: "Add %s|b"}}},
		{Code: "B", When: "Else.", Message: "b", Remedy: "Wait"},
		{Code: "C", When: "Never.", Message: "c"},
	}}})
	want := "\n## Some\n\n| code | severity | when | message | remedy |\n|---|---|---|---|---|\n" +
		"| <a id=\"a\"></a>`A` | Warning | At times. | N of … | *one*: Add …\\|b<br>otherwise: Help |\n" +
		"| <a id=\"b\"></a>`B` | Fine | Else. | b | Wait |\n" +
		"| <a id=\"c\"></a>`C` | Fine | Never. | c |  |\n"
	if rest, ok := strings.CutPrefix(have, openingOfReasons); !ok || rest != want {
		t.Errorf("%q, want %q", rest, want)
	}
}

// TestEveryReasonHasARow: with its own anchor, once.
func TestEveryReasonHasARow(t *testing.T) {
	text := reasonsPage(reason.Sections())
	for _, r := range reason.Catalogue() {
		if n := strings.Count(text, `<a id="`+strings.ToLower(r.Code)+`">`); n != 1 {
			t.Errorf("%s has %d rows", r.Code, n)
		}
	}
}
