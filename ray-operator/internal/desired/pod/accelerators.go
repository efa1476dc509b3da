package pod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// sharing are annotations by which schedulers give a pod a part of a GPU that no device stands for: those of KAI and Run:ai.
var sharing = []string{"gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"}

// variableVisible is by which NVIDIA's container runtime gives a container GPUs that no device stands for.
const variableVisible = "NVIDIA_VISIBLE_DEVICES"

// mayHaveGPUs reports whether a container of which no GPU is known can have one all the same: by a claim, by a device of
// a name that says nothing, by a share that a scheduler gives, or by its runtime.
func (d *draft) mayHaveGPUs() bool {
	if len(d.ray.Resources.Claims) > 0 || strings.Contains(ptr.Deref(d.pod.Spec.RuntimeClassName, ""), "nvidia") {
		return true
	}
	if slices.ContainsFunc(d.ray.Env, showsGPUs) || slices.ContainsFunc(sharing, func(key string) bool { return d.pod.Annotations[key] != "" }) {
		return true
	}
	for name, quantity := range d.ray.Resources.Limits {
		if quantity.Sign() > 0 && naming.MayBeGPU(name) {
			return true
		}
	}
	return false
}

// showsGPUs reports whether a variable has NVIDIA's container runtime give GPUs.
func showsGPUs(variable corev1.EnvVar) bool {
	return variable.Name == variableVisible && (variable.ValueFrom != nil || !slices.Contains([]string{"", "none", "void"}, variable.Value))
}

// devices counts what Ray is told of a container's devices: each kind as a resource of
// its own Kubernetes name, so that a task can ask for a MIG slice of a certain size or
// for a device that Ray does not know; and all kinds of an accelerator together under
// Ray's name for it. Limits count: Kubernetes refuses a device without one, and a
// request that differs from it.
func devices(container *corev1.Container) map[string]int64 {
	counts := map[string]int64{}
	for name, quantity := range container.Resources.Limits {
		if !naming.IsDevice(name) {
			continue
		}
		counts[string(name)] = quantity.Value()
		if resource := naming.Accelerator(name); resource != "" {
			counts[resource] += quantity.Value()
		}
	}
	return counts
}
