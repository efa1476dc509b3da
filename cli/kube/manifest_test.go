package kube_test

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

const head = "apiVersion: heliostat.dev/v1beta1\nkind: ClusterJob\n"

func TestReadManifest_SaysWhatToWrite(t *testing.T) {
	const pods = "spec: {clusterTemplate: {spec: {workerGroups: [{name: a, template: {spec: {containers: [{name: ray, resources: {%}}]}}}]}}}"
	for name, c := range map[string]struct{ text, want string }{
		"a good one":           {"spec: {entrypoint: ls, runtimeEnv: {anything: [1]}}", ""},
		"good quantities":      {strings.Replace(pods, "%", "limits: {cpu: 500m, memory: 1Gi}, requests: {cpu: 1}", 1), ""},
		"a misspelt field":     {"spec: {entrypont: ls}", `spec.entrypont is no field; write "entrypoint"`},
		"a field of elsewhere": {"spec: {clusterTemplate: {spec: {workerGroups: [{replica: 1}]}}}", `spec.clusterTemplate.spec.workerGroups[0].replica is no field; write "replicas"`},
		"another case":         {"Spec: {}", `Spec is no field; write "spec"`},
		"several":              {"spec: {entrypont: ls, suspnd: true}", `spec.entrypont is no field; write "entrypoint"` + "\n" + `spec.suspnd is no field; write "suspend"`},
		"a field twice":        {"spec: {}\nspec: {}", `key "spec" already set in map`},
		"a quantity": {strings.Replace(pods, "%", "limits: {cpu: abc}", 1),
			`spec.clusterTemplate.spec.workerGroups[0].template.spec.containers[0].resources.limits.cpu is "abc", which is no quantity; write one such as 4, 500m or 16Gi`},
		"a size":    {"spec: {clusterTemplate: {spec: {head: {size: {memory: 16Gb}}}}}", `spec.clusterTemplate.spec.head.size.memory is "16Gb", which is no quantity`},
		"an amount": {"spec: {entrypointResources: {CPU: one}}", `spec.entrypointResources.CPU is "one", which is no quantity`},
		"no number": {"spec: {retry: {limit: many}}", "spec.retry.limit is a text, and must be a whole number; write a whole number"},
		"a version": {"spec: {clusterTemplate: {spec: {rayVersion: 2.60}}}", "rayVersion is a number, and must be a text; write it in quotes"},
		"a list":    {"spec: {entrypoint: [python, train.py]}", "spec.entrypoint is a list, and must be a text; write a text"},
		"two":       {"spec: {}\n---\n" + head + "spec: {}", "there are 2 objects; give one ClusterJob"},
		"no YAML":   {"{", "line 4: could not find expected"},
	} {
		t.Run(name, func(t *testing.T) {
			err := kube.ReadManifest([]byte(head+c.text), kube.Job, &v1beta1.ClusterJob{})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("it says %v, want %s", err, c.want)
			}
		})
	}
}

func TestReadManifest_TakesOneOfItsKind(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":         {"# only this", "there are 0 objects; give one ClusterJob"},
		"no object":       {"ls", "the document is no object"},
		"no kind":         {"spec: {entrypoint: ls}", "give apiVersion and kind"},
		"another kind":    {"apiVersion: ray.io/v1\nkind: RayJob", "it is a RayJob of ray.io/v1; give one ClusterJob of heliostat.dev/v1beta1"},
		"another version": {"apiVersion: heliostat.dev/v1\nkind: ClusterJob", "it is a ClusterJob of heliostat.dev/v1; give one"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := kube.ReadManifest([]byte(c.text), kube.Job, &v1beta1.ClusterJob{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v, want %s", err, c.want)
			}
		})
	}
}
