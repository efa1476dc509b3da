package testkit

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite testdata/*.yaml from what the code builds")

// Golden compares an object with testdata/<name>.yaml of the test's package, or writes
// that file where the test runs with -update.
func Golden(t *testing.T, name string, obj any) {
	t.Helper()
	have, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(file, have, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; write it by running the test with -update", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(have), "\n")); diff != "" {
		t.Errorf("%s differs (-file +built); if that is meant, run with -update:\n%s", file, diff)
	}
}
