package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ofKubernetes are fields that hold Kubernetes' own types: their fields are its to describe.
var ofKubernetes = map[string]bool{
	"template": true, "securityContext": true, "volumeClaimTemplates": true, "env": true, "envFrom": true, "imagePullSecrets": true, "tolerations": true,
	"from": true, "to": true,
}

// fields gives the names of all fields of a schema, apart from those of Kubernetes' types.
func fields(schema map[string]any) []string {
	var names []string
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		names = append(names, name)
		if below, ok := property.(map[string]any); ok && !ofKubernetes[name] {
			names = append(names, fields(below)...)
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		names = append(names, fields(items)...)
	}
	return names
}

func TestReferenceHasEveryField(t *testing.T) {
	reference := read(t, "docs/reference/api.md")
	definitions, err := filepath.Glob(filepath.Join(root(t), "ray-operator/config/crd/*.yaml"))
	if err != nil || len(definitions) == 0 {
		t.Fatalf("find the CRDs: %v, %v", definitions, err)
	}
	for _, definition := range definitions {
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct{ OpenAPIV3Schema map[string]any }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(read(t, strings.TrimPrefix(definition, root(t)))), &crd); err != nil {
			t.Fatal(err)
		}
		names := fields(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		if len(names) < 20 {
			t.Fatalf("only %d fields were found in %s", len(names), definition)
		}
		for _, name := range names {
			if !strings.Contains(reference, "| `"+name+"` _") && !ofCondition[name] {
				t.Errorf("the reference lacks the field %s of %s: run make generate", name, filepath.Base(definition))
			}
		}
	}
}

// ofCondition are the fields of three of Kubernetes' own types, which the reference links
// to: conditions, and the peers and ports of network policies.
var ofCondition = map[string]bool{
	"lastTransitionTime": true, "message": true, "observedGeneration": true, "reason": true, "status": true, "type": true,
	"endPort": true, "protocol": true, "ipBlock": true, "cidr": true, "except": true, "podSelector": true, "namespaceSelector": true,
	"matchLabels": true, "matchExpressions": true, "key": true, "operator": true, "values": true,
}

// ofHeliostat matches the name of a label or an annotation of ours, or how the name begins.
var ofHeliostat = regexp.MustCompile(`"((?:[a-z]+\.)?heliostat\.dev/[-a-z]*)"`)

// TestAnnotations_StandOnTheirPage: what other programs may read, and what is the operator's own.
func TestAnnotations_StandOnTheirPage(t *testing.T) {
	page := read(t, "docs/reference/annotations.md")
	count := 0
	for line := range strings.Lines(read(t, "ray-operator/api/v1beta1/labels.go")) {
		found := ofHeliostat.FindStringSubmatch(line)
		if name := strings.TrimSpace(line); found == nil || !strings.HasPrefix(name, "Label") && !strings.HasPrefix(name, "Annotation") {
			continue
		}
		count++
		if !strings.Contains(page, "`"+found[1]+"`") {
			t.Errorf("docs/reference/annotations.md lacks %s: list it, and say who may read and set it", found[1])
		}
	}
	if count < 30 {
		t.Errorf("only %d names were found", count)
	}
}
