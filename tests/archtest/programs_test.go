package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// noTraces is the build tag without which gRPC links its pages of traces.
const noTraces = "grpcnotrace"

// TestOperator_LinksNoTemplates: what calls methods by name, as text/template does, has the linker keep every method of
// every type, and the operator is larger by a third.
func TestOperator_LinksNoTemplates(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags="+noTraces, "./ray-operator/cmd/...")
	list.Dir = root(t)
	all, err := list.Output()
	if err != nil {
		t.Fatalf("list what the operator is made of: %v", err)
	}
	if packages := strings.Fields(string(all)); slices.Contains(packages, "text/template") || !slices.Contains(packages, "google.golang.org/grpc") {
		t.Errorf("text/template is among the %d packages of the programs in ray-operator/cmd: find with go list who imports it", len(packages))
	}
	for _, path := range []string{"Makefile", "images/operator/Dockerfile", "tests/imagebuild/internal/recipe/operator.go", "tests/bench/fleet/build.go", "tests/integration/main_test.go"} {
		text, err := os.ReadFile(filepath.Join(root(t), path))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "-tags="+noTraces) {
			t.Errorf("%s builds the operator without -tags=%s", path, noTraces)
		}
	}
}
