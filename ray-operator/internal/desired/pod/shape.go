package pod

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Shape is the intent's hash without the CPU and memory of a group's size: pods of one
// shape differ in nothing that could not be changed while they run. It is empty for a
// group that the spec does not name.
func Shape(cluster *v1beta1.ComputeCluster, group string) string {
	bare := v1beta1.ComputeCluster{Spec: cluster.Spec}
	bare.Spec.WorkerGroups = slices.Clone(cluster.Spec.WorkerGroups)
	found := naming.FindGroup(&bare, group)
	if found == nil {
		return ""
	}
	found.Size = nil
	for name, quantity := range naming.FindGroup(cluster, group).Size {
		if name == corev1.ResourceCPU || name == corev1.ResourceLimitsCPU || name == corev1.ResourceMemory {
			continue
		}
		if found.Size == nil {
			found.Size = corev1.ResourceList{}
		}
		found.Size[name] = quantity
	}
	return Intent(&bare, group)
}

// RayAmounts are the CPU and memory (bytes) that Ray must count of a worker that was
// resized while it runs. What rayResources fixes is left out. The object store keeps the
// size that it was started with.
func RayAmounts(cluster *v1beta1.ComputeCluster, running *corev1.Pod) map[string]float64 {
	group := naming.FindGroup(cluster, running.Labels[v1beta1.LabelGroup])
	ray := Ray(running)
	if group == nil || ray == nil {
		return nil
	}
	amounts := map[string]float64{}
	if cpu, ok := amount(ray, corev1.ResourceCPU); ok {
		amounts["CPU"] = float64(cpu.Value())
	}
	if memory, ok := amount(ray, corev1.ResourceMemory); ok {
		amounts["memory"] = float64(memory.Value() - storeOf(ray))
	}
	for name := range group.RayResources {
		delete(amounts, name)
	}
	return amounts
}

// Ray is a pod's Ray container, nil where it has none.
func Ray(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == v1beta1.ContainerRay {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}

// storeOption is the option of ray start that RayAmounts needs to know of later.
const storeOption = "--object-store-memory="

// StartedWith are the arguments of a running Ray container that RayAmounts reads.
func StartedWith(args []string) []string {
	for _, argument := range args {
		if strings.HasPrefix(argument, storeOption) {
			return []string{argument}
		}
	}
	return nil
}

// storeOf is the size in bytes of the object store that a container was started with.
func storeOf(ray *corev1.Container) int64 {
	for _, argument := range ray.Args {
		if text, ok := strings.CutPrefix(argument, storeOption); ok {
			size, _ := strconv.ParseInt(text, 10, 64) // we wrote it
			return size
		}
	}
	return 0
}
