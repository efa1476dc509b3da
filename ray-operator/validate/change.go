package validate

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// runFields are the fields of a job that an attempt is made of: who changed them while it
// is under way would not know what had run.
var runFields = []string{
	"clusterRef", "clusterTemplate", "entrypoint", "command", "gang", "runtimeEnv", "env", "entrypointResources", "entrypointLabelSelector", "metadata",
}

// endedFields are the fields that have no effect on a job that has ended. Its cleanup and its time to live have.
var endedFields = slices.Concat(runFields, []string{"retry", "startDeadlineSeconds", "activeDeadlineSeconds"})

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

// fields is a spec as JSON has it.
func fields(spec *v1beta1.ClusterJobSpec) map[string]any {
	text, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Sprintf("write a job's spec: %v", err)) // it came as JSON
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		panic(fmt.Sprintf("read a job's spec: %v", err)) // it was just written
	}
	return tree
}
