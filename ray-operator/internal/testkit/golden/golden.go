// Package golden compares what code makes with files of the repository, and writes these files.
//
// In: the name of a file, and its text as the code has it. Out: a failed test where the file differs; with the flag -update
// the file in testdata, and with -generate the generated file below another directory.
//
// It imports nothing of the operator, so that tests of pure packages stay small.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	update   = flag.Bool("update", false, "rewrite testdata/*.yaml from what the code builds")
	generate = flag.String("generate", "", "write generated files below this directory, laid out like the repository, and compare none")
)

// File compares a text with a file of the test's package, or writes that file where the test runs with -update.
func File(t *testing.T, name, have string) {
	t.Helper()
	if *update {
		write(t, name, have)
	}
	compare(t, name, have, "run with -update")
}

// Generated compares a text with a file that "make generate" writes, by its path in the repository. The test's package is one
// of those below ray-operator/internal.
func Generated(t *testing.T, name, have string) {
	t.Helper()
	if *generate != "" {
		write(t, filepath.Join(*generate, name), have)
		return
	}
	compare(t, "../../../"+name, have, `run "make generate"`)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, file, have, remedy string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; %s to write it", err, remedy)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(have, "\n")); diff != "" {
		t.Errorf("%s differs (-file +built); if that is meant, %s:\n%s", file, remedy, diff)
	}
}
