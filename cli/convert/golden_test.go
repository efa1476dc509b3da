package convert

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// TestManifests_BecomeGolden converts manifests as users of KubeRay write them: what comes out, each row, the exit code.
func TestManifests_BecomeGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/manifests/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("find the manifests: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			out, rows, code := runCommand(t, nil, "-f", file)
			got := fmt.Sprintf("# exit code %d\n# %s\n%s", code, strings.ReplaceAll(strings.TrimSpace(rows), "\n", "\n# "), out)
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s becomes something else (- golden):\n%s", file, diff)
			}
		})
	}
}
