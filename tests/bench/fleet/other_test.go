package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// files of an operator that can be measured.
var files = map[string]string{
	"bench.yaml": `
name: peer
program: manager
manifests: ["crd*.yaml"]
cluster: cluster.yaml
workers: /spec/groups/0/replicas
ready:
  "{.status.state}": ready
  "{.status.workers}": ${workers}
`,
	"manager":      "",
	"crd-a.yaml":   "kind: CustomResourceDefinition\n---\nkind: CustomResourceDefinition\n",
	"cluster.yaml": "apiVersion: peer.dev/v1\nkind: Peer\nspec: {groups: [{replicas: 3}]}\n",
}

// written writes files, with one of them changed, and gives the path of the first.
func written(t *testing.T, name, from, to string) string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range files {
		if file == name {
			text = strings.Replace(text, from, to, 1)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "bench.yaml")
}

func TestReadOther_TakesWhatItsFilesSay(t *testing.T) {
	o, err := readOther(written(t, "", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	if len(o.objects) != 2 {
		t.Errorf("it has %d manifests, want 2", len(o.objects))
	}
	of := o.subject()
	cluster, ok := of.make(types.NamespacedName{Namespace: "n", Name: "c"}).(*unstructured.Unstructured)
	if !ok || cluster.GetName() != "c" || cluster.GetNamespace() != "n" || cluster.GetKind() != "Peer" {
		t.Fatalf("it makes %v", cluster)
	}
	for _, c := range []struct {
		name    string
		state   string
		workers int64
		want    bool
	}{
		{"not before its state says so", "starting", 3, false},
		{"not before all workers are there", "ready", 2, false},
		{"once both are", "ready", 3, true},
	} {
		cluster.Object["status"] = map[string]any{"state": c.state, "workers": c.workers}
		if got := of.ready(cluster); got != c.want {
			t.Errorf("%s: ready is %v", c.name, got)
		}
	}
}

func TestReadOther_RefusesWhatCannotBeMeasured(t *testing.T) {
	for _, c := range []struct{ file, from, to, says string }{
		{"bench.yaml", "name: peer", "name: floor", "neither floor nor operator"},
		{"bench.yaml", "name: peer", "nam: peer", "unknown field"},
		{"bench.yaml", "program: manager", "program: away", "build the operator first"},
		{"bench.yaml", "crd*.yaml", "away*.yaml", "find manifests"},
		{"bench.yaml", "/spec/groups/0/replicas", "/spec/groups/1/replicas", "no item"},
		{"bench.yaml", "{.status.state}", "{.status.state", "in ready"},
		{"cluster.yaml", "replicas: 3", "replicas: 2", "give 3"},
		{"cluster.yaml", "spec:", "---\nspec:", "give one"},
	} {
		if _, err := readOther(written(t, c.file, c.from, c.to)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s instead of %s: the answer was %v, want it to contain %q", c.to, c.from, err, c.says)
		}
	}
}
