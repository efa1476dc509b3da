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

// TestOperator_LinksNoEvaluator: the operator and the autoscaler read what the API server accepted, and stay small.
func TestOperator_LinksNoEvaluator(t *testing.T) {
	t.Parallel()
	isEvaluator := func(name string) bool {
		return strings.HasSuffix(name, "/ray-operator/crdcheck") || strings.HasPrefix(name, "github.com/google/cel-go/") ||
			strings.HasPrefix(name, "k8s.io/apiextensions-apiserver/pkg/apiserver/")
	}
	operator, server := programParts(t, "./ray-operator/cmd/..."), programParts(t, "./apiserver/cmd/...")
	if at := slices.IndexFunc(operator, isEvaluator); at >= 0 {
		t.Errorf("the programs in ray-operator/cmd link %s: find with go list who imports it", operator[at])
	}
	if !slices.ContainsFunc(server, isEvaluator) {
		t.Error("the server links no evaluator, so this test looks for other names than there are")
	}
}

// programParts returns the packages that programs are made of.
func programParts(t *testing.T, programs string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags="+noTraces, programs)
	list.Dir = root(t)
	all, err := list.Output()
	if err != nil {
		t.Fatalf("list what %s are made of: %v", programs, err)
	}
	return strings.Fields(string(all))
}

// TestOperator_LinksNoTemplates: what calls methods by name, as text/template does, has the linker keep every method of
// every type, and the operator is larger by a third.
func TestOperator_LinksNoTemplates(t *testing.T) {
	t.Parallel()
	if packages := programParts(t, "./ray-operator/cmd/..."); slices.Contains(packages, "text/template") || !slices.Contains(packages, "google.golang.org/grpc") {
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
