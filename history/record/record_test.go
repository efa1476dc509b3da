package record_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/history/record"
)

// manifest has a secret in each place in which a record must have none, and words that it keeps.
const manifest = `
apiVersion: heliostat.dev/v1beta1
kind: ClusterService
metadata:
  name: kept-1
  uid: kept-2
  labels: {team: kept-3}
  annotations: {owner: kept-4, kubectl.kubernetes.io/last-applied-configuration: '{"spec": "SECRET"}'}
  managedFields: [{manager: SECRET}]
  resourceVersion: SECRET
data: {SECRET: SECRET}
spec:
  entrypoint: kept-5
  env: [{name: kept-6, value: SECRET}, {name: kept-7, valueFrom: {secretKeyRef: {name: kept-8, key: kept-9}}}]
  runtimeEnv: {env_vars: {kept-10: SECRET}, pip: [kept-11]}
  gang: {roles: [{name: kept-12, env: [{name: kept-13, value: SECRET}]}]}
  clusterTemplate:
    spec:
      podDefaults: {env: [{name: kept-14, value: SECRET}]}
      autoscaling: {env: [{name: kept-15, value: SECRET}]}
      head: {template: {spec: {containers: [{name: ray, args: [kept-16], env: [{name: kept-17, value: SECRET}]}], initContainers: [{env: [{name: kept-18, value: SECRET}]}]}}}
  serveConfig:
    applications:
    - name: kept-19
      args: {model: SECRET, deeper: [{token: SECRET}]}
      runtime_env: {env_vars: {kept-20: SECRET}}
      deployments: [{name: kept-21, ray_actor_options: {runtime_env: {env_vars: {kept-22: SECRET}}}}]
  ofALaterVersion: {env: [{name: kept-23, value: SECRET}], nested: {env_vars: {kept-24: {SECRET: SECRET}}}}
status: {phase: kept-25, attempts: [{lastLines: [kept-26], value: kept-27}]}
`

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestOf_HasNoSecret(t *testing.T) {
	object := parse(t, manifest)
	text, err := record.Of(object)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "SECRET") {
		t.Errorf("the record has a secret: %s", text)
	}
	kept := regexp.MustCompile(`kept-\d+`)
	for _, word := range kept.FindAllString(manifest, -1) {
		if !strings.Contains(string(text), `"`+word+`"`) {
			t.Errorf("the record lacks %s: %s", word, text)
		}
	}
	if diff := cmp.Diff(parse(t, manifest), object); diff != "" {
		t.Errorf("the object itself was changed:\n%s", diff)
	}
}

func TestOf_CutsWhatIsTooLarge(t *testing.T) {
	large := strings.Repeat("x", record.MaxSize)
	for name, test := range map[string]struct {
		object map[string]any
		want   string
	}{
		"spec":     {map[string]any{"spec": large, "status": "s"}, `{"cut":["spec"],"metadata":{"name":"n"},"status":"s"}`},
		"status":   {map[string]any{"spec": large, "status": large}, `{"cut":["spec","status"],"metadata":{"name":"n"}}`},
		"metadata": {map[string]any{"metadata": map[string]any{"name": "n", "labels": large}}, `{"cut":["spec","status","metadata"],"metadata":{"name":"n"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if test.object["metadata"] == nil {
				test.object["metadata"] = map[string]any{"name": "n"}
			}
			text, err := record.Of(test.object)
			if err != nil || string(text) != test.want {
				t.Errorf("%.200s, %v, want %s", text, err, test.want)
			}
		})
	}
}

func TestOf_ReadsNoObjectOfEndlessDepth(t *testing.T) {
	deep := any("SECRET")
	for range 10_000 {
		deep = map[string]any{"a": deep}
	}
	text, err := record.Of(map[string]any{"spec": deep})
	if err != nil || strings.Contains(string(text), "SECRET") || strings.Count(string(text), "a") > 200 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func FuzzOf(f *testing.F) {
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`{"spec": {"env": "a", "env_vars": [1], "applications": {"args": 1}}, "metadata": []}`)
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			t.Skip()
		}
		made, err := record.Of(object)
		if err != nil || len(made) > record.MaxSize+1<<20 || !json.Valid(made) {
			t.Errorf("%s, %v", made, err)
		}
		again := map[string]any{}
		if err := json.Unmarshal(made, &again); err != nil {
			t.Fatal(err)
		}
		if twice, err := record.Of(again); err == nil && again["cut"] == nil && fmt.Sprint(string(twice)) != string(made) {
			t.Errorf("twice made it is %s, once %s", twice, made)
		}
	})
}
