package validate_test

import (
	"encoding/json"
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

// schema is what a CRD says of a field.
type schema struct {
	Properties map[string]schema
	Items      *schema
	Default    any
	// The most that the field takes, 0 without a bound.
	MaxLength, MaxItems, MaxProperties int
}

// bound is a value of a field.
type bound struct {
	// path of the field, by keys; "0" is the first entry of a list.
	path  []string
	value any
}

// ofKubernetes are fields whose schemas are Kubernetes' own: of them only the number of
// entries is ours.
var ofKubernetes = []string{"template", "volumeClaimTemplates", "env", "envFrom", "tolerations", "imagePullSecrets", "from", "to"}

// put sets a value in a tree of maps and lists, making what is not there.
func put(tree any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if path[0] == "0" {
		list, _ := tree.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = put(list[0], path[1:], value)
		return list
	}
	object, ok := tree.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	object[path[0]] = put(object[path[0]], path[1:], value)
	return object
}

// with gives an object as JSON has it with the value in it.
func (b bound) with(t *testing.T, object any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(put(tree, b.path, b.value)); err != nil {
		t.Fatal(err)
	}
	return text
}

// specOf is what the CRD of a kind says of its spec.
func specOf(t *testing.T, kind string) schema {
	t.Helper()
	text, err := os.ReadFile("../config/crd/heliostat.dev_" + kind + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}
