package presets_test

import (
	"encoding/json"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/apiserver/presets"
)

// FuzzPreset: whatever a user writes into a ConfigMap, and whatever another user asks of it.
func FuzzPreset(f *testing.F) {
	f.Add(schema, manifest, `{"name": "demo", "workers": 3, "args": ["a"]}`)
	f.Add(schema, manifest, `{"name": "${gpu}\n- x", "worker": 1e999, "args": [[]]}`)
	for _, option := range []string{`{"default": ""}`, `{"anyOf": [{"type": "integer"}], "default": 1}`, `{"multipleOf": 0.1, "default": 1}`} {
		data := simple(option, "x${a}$${a}")
		f.Add(data[presets.KeySchema], data[presets.KeyManifest], `{"a": "b"}`)
	}
	f.Fuzz(func(t *testing.T, schema, manifest, options string) {
		preset, err := presets.Parse(sourceOf("team", "p", map[string]string{presets.KeySchema: schema, presets.KeyManifest: manifest}))
		if (err == nil) != (preset.Error == "") {
			t.Fatalf("the error is %v, and the preset says %q", err, preset.Error)
		}
		values := map[string]any{}
		if json.Unmarshal([]byte(options), &values) != nil {
			values = map[string]any{"a": options, "name": options}
		}
		object, findings, err := preset.Apply(values)
		if (err != nil) != (preset.Error != "") || (object != nil) != (err == nil && len(findings) == 0) {
			t.Fatalf("made %v, findings %v, error %v of preset %q", object, findings, err, preset.Error)
		}
		for _, finding := range findings {
			if finding.Field == "" || finding.Rule == "" || finding.Message == "" || finding.Remedy == "" {
				t.Errorf("half a finding: %+v", finding)
			}
		}
		if object != nil {
			sound(t, manifest, object)
		}
	})
}

// sound fails the test where an object is not its manifest with values in it.
func sound(t *testing.T, manifest string, object map[string]any) {
	t.Helper()
	var before map[string]any
	content, err := yaml.YAMLToJSON([]byte(manifest))
	if err == nil {
		err = utiljson.Unmarshal(content, &before)
	}
	if err != nil {
		t.Fatal(err)
	}
	alike(t, before, object)
	if _, err := json.Marshal(object); err != nil {
		t.Errorf("it does not marshal: %v", err)
	}
}

// alike fails the test where an object has another structure than its manifest, but for an option alone.
func alike(t *testing.T, before, after any) {
	t.Helper()
	switch before := before.(type) {
	case map[string]any:
		object, _ := after.(map[string]any)
		for key := range before {
			alike(t, before[key], object[key])
		}
		if len(object) != len(before) {
			t.Fatalf("%v became %v", before, after)
		}
	case []any:
		list, _ := after.([]any)
		if len(list) != len(before) {
			t.Fatalf("%v became %v", before, after)
		}
		for i := range before {
			alike(t, before[i], list[i])
		}
	case string:
		isOption := strings.HasPrefix(before, "${") && strings.HasSuffix(before, "}")
		switch after.(type) {
		case string:
		case map[string]any:
			t.Fatalf("%q became an object", before)
		default:
			if !isOption {
				t.Fatalf("%q became %v", before, after)
			}
		}
	default:
		if before != after {
			t.Fatalf("%v became %v", before, after)
		}
	}
}
