package kube_test

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

func TestReadManifest_SaysWhatToWrite(t *testing.T) {
	const pods = "spec: {clusterTemplate: {spec: {workerGroups: [{name: a, template: {spec: {containers: [{name: ray, resources: {%}}]}}}]}}}"
	for name, c := range map[string]struct{ text, want string }{
		"a good one":           {"kind: ClusterJob\nspec: {entrypoint: ls, runtimeEnv: {anything: [1]}}", ""},
		"good quantities":      {strings.Replace(pods, "%", "limits: {cpu: 500m, memory: 1Gi}, requests: {cpu: 1}", 1), ""},
		"a misspelt field":     {"spec: {entrypont: ls}", `spec.entrypont is no field; write "entrypoint"`},
		"a field of elsewhere": {"spec: {clusterTemplate: {spec: {workerGroups: [{replica: 1}]}}}", `spec.clusterTemplate.spec.workerGroups[0].replica is no field; write "replicas"`},
		"another case":         {"Spec: {}", `Spec is no field; write "spec"`},
		"several":              {"spec: {entrypont: ls, suspnd: true}", `spec.entrypont is no field; write "entrypoint"` + "\n" + `spec.suspnd is no field; write "suspend"`},
		"a field twice":        {"spec: {}\nspec: {}", `key "spec" already set in map`},
		"a quantity": {strings.Replace(pods, "%", "limits: {cpu: abc}", 1),
			`spec.clusterTemplate.spec.workerGroups[0].template.spec.containers[0].resources.limits.cpu: "abc" is no quantity; write one such as 4, 500m or 16Gi`},
		"a size":    {"spec: {clusterTemplate: {spec: {head: {size: {memory: 16Gb}}}}}", `spec.clusterTemplate.spec.head.size.memory: "16Gb" is no quantity`},
		"no number": {"spec: {retry: {limit: many}}", "spec.retry.limit"},
		"no YAML":   {"{", "did not find expected node content"},
	} {
		t.Run(name, func(t *testing.T) {
			err := kube.ReadManifest([]byte(c.text), &v1alpha1.ClusterJob{})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("it says %v, want %s", err, c.want)
			}
		})
	}
}
