package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// TestAreas_PlayEverySpecThatIsTheirsAlone holds specs that make test leaves out against the scenarios, which
// choose specs by a label that is their name.
func TestAreas_PlayEverySpecThatIsTheirsAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	c := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "./tests/e2e", "-ginkgo.dry-run", "-ginkgo.label-filter="+live.AcceptLabel, "-ginkgo.json-report="+file)
	c.Dir = filepath.Join("..", "..")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("list the specs: %v: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := ranOf(text)
	if err != nil {
		t.Fatal(err)
	}
	var played []string
	for _, scenarios := range areas {
		played = append(played, namesOf(scenarios)...)
	}
	for i := range specs {
		if !slices.ContainsFunc(specs[i].Labels(), func(label string) bool { return slices.Contains(played, label) }) {
			t.Errorf("no scenario plays %q, whose labels are %q", specs[i].FullText(), specs[i].Labels())
		}
	}
}
