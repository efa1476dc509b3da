package main

import (
	"fmt"
	"strings"
	"testing"
)

// refused are additions to a good spec, each with what the answer must say to do.
var refused = map[string]struct{ spec, remedy string }{
	"ray too old":        {`{rayVersion: "2.51.0"}`, "from 2.52.0 on"},
	"ray with suffix":    {`{rayVersion: "2.60.0-py311"}`, "from 2.52.0 on"},
	"pull policy":        {`{imagePullPolicy: Sometimes}`, "supported values"},
	"group without name": {`{workerGroups: [{replicas: 1}]}`, "name: Required value"},
	"group's name":       {`{workerGroups: [{name: CPU}]}`, "lower-case letters"},
	"group named head":   {`{workerGroups: [{name: headgroup}]}`, "named head or headgroup"},
	"negative replicas":  {`{workerGroups: [{name: a, replicas: -1}]}`, "greater than or equal to 0"},
	"too many replicas":  {`{workerGroups: [{name: a, replicas: 10001}]}`, "less than or equal to 10000"},
	"long quantity":      {`{head: {size: {cpu: "` + strings.Repeat("1", 41) + `"}}}`, "may not be more than 40"},
	"store as resource":  {`{head: {rayResources: {object_store_memory: "1"}}}`, "use objectStoreMemory"},
	"node as resource":   {`{head: {rayResources: {"node:10.0.0.1": "1"}}}`, "choose another name"},
	"negative resource":  {`{head: {rayResources: {CPU: -1}}}`, "give 0 or more"},
	"owned option":       {`{head: {rayStartParams: {port: "1"}}}`, "leave them out"},
	"option for CPUs":    {`{head: {rayStartParams: {num-cpus: "1"}}}`, "use rayResources"},
	"option for labels":  {`{workerGroups: [{name: a, rayStartParams: {labels: a=b}}]}`, "use the field labels"},
	"option for store":   {`{head: {rayStartParams: {object-store-memory: "1"}}}`, "use objectStoreMemory"},
	"option for usage":   {`{head: {rayStartParams: {disable-usage-stats: ""}}}`, "in the template"},
	"ray's own label":    {`{head: {labels: {ray.io/x: y}}}`, "choose another prefix"},
}

func TestBadSpecsAreRefusedWithTheRemedy(t *testing.T) {
	k := load(t, "heliostat.dev_computeclusters.yaml")
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			spec := parse(t, test.spec)
			if _, ok := spec["rayVersion"]; !ok {
				spec["rayVersion"] = "2.60.0"
			}
			object := parse(t, "{apiVersion: heliostat.dev/v1beta1, kind: ComputeCluster, metadata: {name: demo}}")
			object["spec"] = spec
			errs := k.admit(t, object)
			if !strings.Contains(fmt.Sprint(errs.ToAggregate()), test.remedy) {
				t.Errorf("%s is answered with %v, want %q", test.spec, errs, test.remedy)
			}
		})
	}
}

func TestBadNamesAreRefused(t *testing.T) {
	k := load(t, "heliostat.dev_computeclusters.yaml")
	for _, name := range []string{strings.Repeat("a", 51), "1st", "a.b", "a-"} {
		object := parse(t, `{apiVersion: heliostat.dev/v1beta1, kind: ComputeCluster, spec: {rayVersion: "2.60.0"}}`)
		object["metadata"] = map[string]any{"name": name}
		if errs := k.admit(t, object); !strings.Contains(fmt.Sprint(errs.ToAggregate()), "choose a shorter or simpler name") {
			t.Errorf("the name %q is answered with %v", name, errs)
		}
	}
}
