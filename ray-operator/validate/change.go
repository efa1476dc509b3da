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
	"clusterRef", "clusterTemplate", "entrypoint", "command", "runtimeEnv", "env", "entrypointResources", "entrypointLabelSelector", "metadata",
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

// fields is a spec as JSON has it, with what the API server fills in.
func fields(spec *v1beta1.ClusterJobSpec) map[string]any {
	spec = spec.DeepCopy()
	if spec.ClusterTemplate != nil {
		fillIn(&spec.ClusterTemplate.Spec)
	}
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

// fillIn sets the CRD's defaults in what does not give them.
func fillIn(spec *v1beta1.ComputeClusterSpec) {
	byDefault(&spec.ManagedBy, v1beta1.ManagedByOperator)
	if spec.Authentication != nil {
		byDefault(&spec.Authentication.Mode, v1beta1.AuthenticationToken)
	}
	if spec.Network != nil {
		byDefault(&spec.Network.Isolation, v1beta1.Enabled)
		byDefault(&spec.Network.CloudMetadata, v1beta1.Disabled)
		byDefault(&spec.Network.Encryption, v1beta1.Disabled)
	}
	if spec.UpgradeStrategy != nil {
		byDefault(&spec.UpgradeStrategy.Type, v1beta1.ClusterUpgradeNone)
	}
	if spec.IdlePolicy != nil {
		byDefault(&spec.IdlePolicy.Action, v1beta1.IdleNone)
	}
	if a := spec.Autoscaling; a != nil {
		byDefault(&a.Pace, v1beta1.PaceDefault)
		if a.IdleTimeoutSeconds == nil {
			a.IdleTimeoutSeconds = new(int32(60))
		}
	}
	if s := spec.ControlStore; s != nil && s.ManagedRedis != nil {
		byDefault(&s.ManagedRedis.Image, "redis:7")
		s.ManagedRedis.Storage = new(managedStorage(s.ManagedRedis))
	}
	for i := range spec.WorkerGroups {
		group := &spec.WorkerGroups[i]
		group.HostsPerReplica = max(group.HostsPerReplica, 1)
	}
}

func byDefault[T ~string](value *T, otherwise T) {
	if *value == "" {
		*value = otherwise
	}
}
