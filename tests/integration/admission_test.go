package integration

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestBadInputIsRefusedWithWhatToDo goes through every rule of the schema that a user
// can break by a slip, and checks that the answer says what to do.
func TestBadInputIsRefusedWithWhatToDo(t *testing.T) {
	namespace := newNamespace(t)
	group := func(fields map[string]any) map[string]any { return map[string]any{"workerGroups": []any{fields}} }
	for _, c := range []struct {
		what, name string
		spec       map[string]any
		says       string
	}{
		{"a name too long", strings.Repeat("a", 51), nil, "at most 50 characters"},
		{"a name with a dot", "a.b", nil, "metadata.name must be a DNS-1035 label"},
		{"a name that begins with a digit", "1a", nil, "starting with a letter"},
		{"no version", "c", map[string]any{"rayVersion": nil}, "spec.rayVersion: Required"},
		{"a version too old", "c", map[string]any{"rayVersion": "2.51.0"}, "rayVersion must be a Ray release from 2.52.0 to 2.60.x"},
		{"a version too new", "c", map[string]any{"rayVersion": "2.61.0"}, "rayVersion must be a Ray release from 2.52.0 to 2.60.x"},
		{"an unknown field", "c", map[string]any{"workers": int64(3)}, ".spec.workers: field not declared in schema"},
		{"a field of another kind", "c", group(map[string]any{"name": "cpu", "minReplicas": int64(1)}), "minReplicas: field not declared in schema"},
		{"an unknown pull policy", "c", map[string]any{"imagePullPolicy": "Sometimes"}, `supported values: "Always", "IfNotPresent", "Never"`},
		{"a group without a name", "c", group(map[string]any{"replicas": int64(1)}), "name"},
		{"an upper-case group", "c", group(map[string]any{"name": "CPU"}), "a group's name must be lower-case letters"},
		{"a group called head", "c", group(map[string]any{"name": "head"}), "choose another name for the group"},
		{"a group's name too long", "c", group(map[string]any{"name": strings.Repeat("g", 41)}), "may not be more than 40"},
		{"fewer than no workers", "c", group(map[string]any{"name": "cpu", "replicas": int64(-1)}), "should be greater than or equal to 0"},
		{"too many workers", "c", group(map[string]any{"name": "cpu", "replicas": int64(10001)}), "should be less than or equal to 10000"},
		{"a size that is no number", "c", group(map[string]any{"name": "cpu", "size": map[string]any{"cpu": "many"}}), "size"},
		{"two groups of a name", "c", map[string]any{"workerGroups": []any{
			map[string]any{"name": "cpu"}, map[string]any{"name": "cpu"}}}, "duplicate"},
	} {
		t.Run(c.what, func(t *testing.T) {
			spec := map[string]any{"rayVersion": "2.60.0"}
			for field, value := range c.spec {
				if spec[field] = value; value == nil {
					delete(spec, field)
				}
			}
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "heliostat.dev/v1alpha1", "kind": "ComputeCluster",
				"metadata": map[string]any{"name": c.name, "namespace": namespace}, "spec": spec,
			}}
			err := shared.ApplyObject(t.Context(), object)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the answer was %v, want it to contain %q", err, c.says)
			}
		})
	}
}
