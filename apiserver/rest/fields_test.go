package rest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

func TestReadManifest_RefusesWithPathAndNearestName(t *testing.T) {
	metadata := map[string]any{"name": "a"}
	for name, c := range map[string]struct {
		fields map[string]any
		want   []string // field: remedy
	}{
		"a good one":        {map[string]any{"kind": "ComputeCluster", "metadata": metadata, "spec": map[string]any{"rayVersion": "2.60.0"}}, nil},
		"no kind":           {map[string]any{}, []string{"object.kind: give one of ClusterJob, ClusterJobSchedule, ClusterService, ComputeCluster"}},
		"a kind of KubeRay": {map[string]any{"kind": "RayCluster"}, []string{"object.kind: give one of ClusterJob, ClusterJobSchedule, ClusterService, ComputeCluster"}},
		"a misspelt kind":   {map[string]any{"kind": "Computecluster"}, []string{`object.kind: write "ComputeCluster"`}},
		"another version":   {map[string]any{"kind": "ClusterJob", "apiVersion": "heliostat.dev/v2"}, []string{"object.apiVersion: give heliostat.dev/v1beta1"}},
		"another namespace": {map[string]any{"kind": "ClusterJob", "metadata": map[string]any{"namespace": "b"}},
			[]string{"object.metadata.namespace: leave it out, or use the other path"}},
		"misspelt fields": {map[string]any{"kind": "ComputeCluster", "spec": map[string]any{
			"rayversion": "x", "workerGroups": []any{map[string]any{"name": "a", "replica": 1}},
			"head": map[string]any{"template": map[string]any{"spec": map[string]any{"tolerationz": []any{}}}},
		}}, []string{`object.spec.head.template.spec.tolerationz: write "tolerations"`, `object.spec.rayversion: write "rayVersion"`,
			`object.spec.workerGroups[0].replica: write "replicas"`}},
		"a list of numbers for a text": {map[string]any{"kind": "ComputeCluster", "spec": map[string]any{"image": []any{1}}}, []string{"object.spec.image: write a text"}},
		"metadata that is none":        {map[string]any{"kind": "ComputeCluster", "metadata": "a"}, []string{"object.metadata: send a JSON object"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, is := c.fields["apiVersion"]; !is {
				c.fields["apiVersion"] = "heliostat.dev/v1beta1"
			}
			kind, _ := c.fields["kind"].(string)
			object, err := manifest{above: "object", kind: kind}.object()
			if err == nil {
				err = readFields(object, "object", c.fields)
			}
			var got []string
			var p *problem.Problem
			if errors.As(err, &p) {
				for _, one := range p.Errors {
					got = append(got, one.Field+": "+one.Remedy)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// readFields reads fields into an object, as of a request for a namespace.
func readFields(object verbs.Object, above string, fields map[string]any) error {
	text, err := writeManifest(above, fields, "ns")
	if err != nil {
		return err
	}
	return readManifest(object, above, fields, text)
}
