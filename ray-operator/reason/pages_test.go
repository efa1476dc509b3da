package reason_test

import (
	"os"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestTroubleshooting_HasEachWarning: who looks for a code that needs a user finds it on the page, with a link to what helps.
func TestTroubleshooting_HasEachWarning(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range reason.Catalogue() {
		link := "[`" + entry.Code + "`](reference/reasons.md#" + strings.ToLower(entry.Code) + ")"
		if entry.Severity == reason.Warning && !strings.Contains(string(page), link) {
			t.Errorf("docs/troubleshooting.md lacks %s; add it to a table, at least to that of the other warnings", link)
		}
	}
}
