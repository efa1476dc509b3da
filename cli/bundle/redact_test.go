package bundle

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRedactor_LeavesNoCanary has canaries wherever an object holds values of variables.
func TestRedactor_LeavesNoCanary(t *testing.T) {
	const text = `{"kind": "ClusterJob",
		"metadata": {"name": "train", "managedFields": [{"manager": "x"}], "annotations": {"note": "stays",
			"kubectl.kubernetes.io/last-applied-configuration": "canary-0"}},
		"spec": {"env": [{"name": "A", "value": "canary-1"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
			"runtimeEnv": {"env_vars": {"C": "canary-2", "D": "canary-2-longer"}, "pip": ["x"]},
			"clusterTemplate": {"spec": {"head": {"template": {"spec": {"containers": [{"name": "ray", "env": [{"name": "E", "value": "canary-3"}]}]}}},
				"workerGroups": [{"template": {"spec": {"initContainers": [{"env": [{"name": "F", "value": "short"}]}]}}}]}}},
		"status": {"attempts": [{"lastLines": ["it says canary-1 and canary-2-longer and short"]}]}}`
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	r := &redactor{}
	r.learn(object)
	r.add(" canary-4\n")
	written, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	clean := r.clean(string(written) + " a log with canary-4 and canary-3")
	for number := range 5 {
		if canary := fmt.Sprintf("canary-%d", number); strings.Contains(clean, canary) {
			t.Errorf("%s is in the bundle: %s", canary, clean)
		}
	}
	for _, stays := range []string{`"note":"stays"`, `"key":"k"`, `"pip":["x"]`, `"C":"(left out)"`} {
		if !strings.Contains(clean, stays) {
			t.Errorf("%s is not in the bundle: %s", stays, clean)
		}
	}
	if strings.Contains(clean, "-longer") || strings.Contains(clean, "managedFields") {
		t.Errorf("a part of a value stays: %s", clean)
	}
}
