package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// runFields are the fields of a job that an attempt is made of: who changed them while it
// is under way would not know what had run.
var runFields = []string{
	"clusterRef", "clusterTemplate", "entrypoint", "command", "gang", "tune", "runtimeEnv", "env", "entrypointResources", "entrypointLabelSelector", "metadata",
}

// endedFields are the fields that have no effect on a job that has ended. Its cleanup and its time to live have.
var endedFields = slices.Concat(runFields, []string{"retry", "startDeadlineSeconds", "activeDeadlineSeconds"})

// freeOfClaims are the fields of the claim of a shared volume that may change while the job runs, and after it has ended: no pod
// depends on them, and the claim follows them.
var freeOfClaims = []string{"retain", "storage"}

// unchanged is an expression that is true where some fields of a job are as before.
func unchanged(among []string) string {
	others := slices.DeleteFunc(slices.Clone(among), func(name string) bool { return name == "clusterTemplate" })
	parts := []string{list(others) + ".all(f, object.spec[?f] == oldObject.spec[?f])"}
	for _, part := range []string{
		"OBJECT.spec.?clusterTemplate.orValue({}).transformMap(k, v, k != 'spec', v)",
		"OBJECT.spec.?clusterTemplate.?spec.orValue({}).transformMap(k, v, k != 'sharedVolumes', v)",
		"OBJECT.spec.?clusterTemplate.?spec.?sharedVolumes.orValue([]).map(s, s.transformMap(k, v, k != 'claim', v))",
		"OBJECT.spec.?clusterTemplate.?spec.?sharedVolumes.orValue([]).map(s, s.?claim.orValue({}).transformMap(k, v, !(k in " + list(freeOfClaims) + "), v))",
	} {
		parts = append(parts, strings.ReplaceAll(part, "OBJECT", "object")+" == "+strings.ReplaceAll(part, "OBJECT", "oldObject"))
	}
	return strings.Join(parts, " && ")
}

// changed returns those of some fields in which two specs differ.
func changed(before, after *v1beta1.ClusterJobSpec, among []string) []string {
	was, is := fields(before), fields(after)
	var names []string
	for _, name := range among {
		if !reflect.DeepEqual(was[name], is[name]) {
			names = append(names, name)
		}
	}
	return names
}

// fields is a spec as JSON has it, without what of a shared volume's claim is free.
func fields(spec *v1beta1.ClusterJobSpec) map[string]any {
	text, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Sprintf("write a job's spec: %v", err)) // it came as JSON
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		panic(fmt.Sprintf("read a job's spec: %v", err)) // it was just written
	}
	template, _ := tree["clusterTemplate"].(map[string]any)
	cluster, _ := template["spec"].(map[string]any)
	volumes, _ := cluster["sharedVolumes"].([]any)
	for _, volume := range volumes {
		one, _ := volume.(map[string]any)
		claim, _ := one["claim"].(map[string]any)
		maps.DeleteFunc(claim, func(key string, _ any) bool { return slices.Contains(freeOfClaims, key) })
	}
	return tree
}
