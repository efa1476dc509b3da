package rest

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/apiserver/presets"
)

func TestExamples_AreTaken(t *testing.T) {
	example := examplePreset(t)
	preset, err := presets.Parse(example)
	if err != nil || !presets.IsPreset(example) {
		t.Fatalf("the example is no preset: %v", err)
	}
	fields, findings, err := preset.Apply(map[string]any{"name": "anna", "workers": 2})
	if err != nil || len(findings) > 0 {
		t.Fatalf("the example refuses %v (%v)", findings, err)
	}
	object := newObject(preset.Kind())
	if err := readFields(object, "manifest", fields); err != nil {
		t.Fatal(err)
	}
	if refused, err := findingsOf(preset.Kind(), fields); err != nil || len(refused) > 0 {
		t.Errorf("rules refuse what the example makes: %v, %v", refused, err)
	}
}

// examplePreset returns the preset of the examples.
func examplePreset(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	text, err := os.ReadFile("../../examples/portal/preset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example := &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(text, example); err != nil {
		t.Fatal(err)
	}
	return example
}
