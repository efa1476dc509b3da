package deb

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// database puts a dpkg-query first in PATH that knows one installed package and one that was removed.
func database(t *testing.T) {
	t.Helper()
	script := "#!/bin/sh\ncase \"$3\" in\nmmdebstrap) printf installed;;\npython3-pip) printf config-files;;\n*) exit 1;;\nesac\n"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dpkg-query"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestMissingCountsRemovedPackages(t *testing.T) {
	database(t)
	missing, err := Missing(t.Context())
	if err != nil || !slices.Equal(missing, []string{"python3-pip"}) {
		t.Errorf("Missing = %q, %v, want python3-pip", missing, err)
	}
}

func TestMissingSaysThatThisIsNotDebian(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if missing, err := Missing(t.Context()); err == nil {
		t.Errorf("Missing = %q on a machine without dpkg", missing)
	}
}
