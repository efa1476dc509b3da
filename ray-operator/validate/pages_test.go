package validate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// block matches a block of YAML on a page; indentation is that of a list.
var block = regexp.MustCompile("(?ms)^( *)```yaml(?: run)?\n(.*?)^ *```$")

// TestPagesHaveGoodManifests: whole manifests on pages are decoded strictly, and the rules find nothing wrong with them.
func TestPagesHaveGoodManifests(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../examples/*.md", "../../examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	count := 0
	for _, page := range pages {
		for _, manifest := range manifestsOf(t, page) {
			count++
			t.Run(filepath.Base(page), func(t *testing.T) {
				if errs := wrongWith(t, manifest); len(errs) > 0 {
					t.Errorf("%v in\n%s", errs, manifest)
				}
			})
		}
	}
	if count < 5 {
		t.Errorf("only %d manifests were found on %d pages", count, len(pages))
	}
}

// manifestsOf returns the whole manifests of our kinds on a page.
func manifestsOf(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var manifests []string
	for _, found := range block.FindAllStringSubmatch(string(text), -1) {
		whole := strings.ReplaceAll(strings.TrimPrefix(found[2], found[1]), "\n"+found[1], "\n")
		for manifest := range strings.SplitSeq(whole, "---\n") {
			if strings.Contains(manifest, "apiVersion: heliostat.dev/") {
				manifests = append(manifests, manifest)
			}
		}
	}
	return manifests
}

// TestReadme_FitsBesideTheDemo: its cluster is the demo's own, and no pod of its service asks for more than one of these.
func TestReadme_FitsBesideTheDemo(t *testing.T) {
	demo, err := os.ReadFile("../../hack/demo/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var own v1beta1.ComputeCluster
	decode(t, string(demo), &own)
	var clusters, services int
	for _, manifest := range manifestsOf(t, "../../README.md") {
		var cluster v1beta1.ComputeCluster
		var service v1beta1.ClusterService
		switch {
		case strings.Contains(manifest, "kind: ComputeCluster"):
			clusters++
			decode(t, manifest, &cluster)
			if diff := cmp.Diff(own.Spec, cluster.Spec); diff != "" {
				t.Errorf("README's cluster is not the demo's (-demo +README):\n%s", diff)
			}
		case strings.Contains(manifest, "kind: ClusterService"):
			services++
			decode(t, manifest, &service)
			spec := service.Spec.ClusterTemplate.Spec
			if size := spec.Head.Size.Cpu(); size.IsZero() || size.Cmp(*own.Spec.Head.Size.Cpu()) > 0 || len(spec.WorkerGroups) > 0 {
				t.Errorf("README's service asks for a head of %s CPU and %d groups, which do not fit beside the demo", size, len(spec.WorkerGroups))
			}
		}
	}
	if clusters != 1 || services != 1 {
		t.Errorf("README has %d clusters and %d services", clusters, services)
	}
}

func decode(t *testing.T, manifest string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(manifest), into); err != nil {
		t.Fatalf("%v in\n%s", err, manifest)
	}
}
