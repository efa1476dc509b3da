package convert

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// TestManifests_BecomeGolden converts manifests as users of KubeRay and of Kubeflow write them: what comes out, each row, the exit
// code. A first line "# flags: ..." has flags.
func TestManifests_BecomeGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("find the manifests: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			out, rows, code := runCommand(t, nil, append(flagsOf(t, file), "-f", file)...)
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

// flagsOf returns the flags that a manifest is converted with.
func flagsOf(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	line, has := strings.CutPrefix(first, "# flags: ")
	if !has {
		return nil
	}
	var flags []string
	for i, part := range strings.Split(line, "'") { // a part between quotes is one word
		if i%2 == 1 {
			flags = append(flags, part)
			continue
		}
		flags = append(flags, strings.Fields(part)...)
	}
	return flags
}

// TestManifests_AreCorrectedByWhatIsPrinted: the text that a row prints for what stands in a wrong place is enough to convert the
// manifest, and becomes what the manifest without the mistake becomes.
func TestManifests_AreCorrectedByWhatIsPrinted(t *testing.T) {
	_, rows, _ := runCommand(t, nil, "-f", "testdata/kubeflow/tfjob-beside.yaml")
	roles := map[string]any{}
	for _, text := range printedTexts(rows) {
		var part map[string]any
		if err := yaml.Unmarshal([]byte(text), &part); err != nil {
			t.Fatalf("the text is no YAML: %v\n%s", err, text)
		}
		inside, _, _ := unstructured.NestedMap(part, "spec", "tfReplicaSpecs")
		maps.Copy(roles, inside)
	}
	corrected, err := yaml.Marshal(map[string]any{"apiVersion": "kubeflow.org/v1beta1", "kind": "TFJob", "metadata": map[string]any{"name": "linear"},
		"spec": map[string]any{"tfReplicaSpecs": roles}})
	if err != nil {
		t.Fatal(err)
	}
	const good = "testdata/kubeflow/tfjob-corrected.yaml"
	want, _, _ := runCommand(t, nil, append(flagsOf(t, good), "-f", good)...)
	got, _, _ := runCommand(t, bytes.NewReader(corrected), append(flagsOf(t, good), "-f", "-")...)
	if diff := cmp.Diff(want, got); diff != "" || want == "" {
		t.Errorf("the corrected manifest becomes something else (- wanted):\n%s", diff)
	}
	_, rows, _ = runCommand(t, nil, "-f", "testdata/kubeflow/tfjob-numbered.yaml")
	plain := printedTexts(rows)
	if len(plain) != 1 {
		t.Fatalf("%d texts are printed:\n%s", len(plain), rows)
	}
	if out, rows, _ := runCommand(t, strings.NewReader(plain[0]), "-f", "-", "--command", "python a.py"); !strings.Contains(out, "kind: ClusterJob") {
		t.Errorf("the text without numbers is not converted: %s", rows)
	}
}

// printedTexts are the texts that rows print below them.
func printedTexts(rows string) []string {
	var texts []string
	isWithin := false
	for line := range strings.Lines(rows) {
		inner, is := strings.CutPrefix(line, "    ")
		switch {
		case is && !isWithin:
			texts = append(texts, inner)
		case is:
			texts[len(texts)-1] += inner
		}
		isWithin = is
	}
	return texts
}

// TestPage_ShowsWhatComesOut: each manifest of the page that has its result below it becomes that.
func TestPage_ShowsWhatComesOut(t *testing.T) {
	page, err := os.ReadFile("../../docs/from-kubeflow.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, part := range strings.Split(string(page), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	compared := 0
	for i := 1; i < len(blocks); i++ {
		if strings.Contains(blocks[i-1], "heliostat.dev/") || !strings.Contains(blocks[i], "heliostat.dev/") {
			continue
		}
		compared++
		var flags []string
		if strings.Contains(blocks[i-1], "kind: MLTrainingJob") {
			flags = []string{"--command", "python /src/train.py", "--image", "registry.example/digits-ray:3"}
		}
		out, rows, _ := runCommand(t, strings.NewReader(blocks[i-1]), append(flags, "-f", "-")...)
		var want, got map[string]any
		if err := errors.Join(yaml.Unmarshal([]byte(blocks[i]), &want), yaml.Unmarshal([]byte(out), &got)); err != nil {
			t.Fatalf("read what the page shows: %v\n%s", err, rows)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the manifest becomes something else than the page shows (- page):\n%s\n%s", diff, rows)
		}
	}
	if compared < 5 {
		t.Errorf("the page has %d manifests with their results, want at least 5", compared)
	}
}
