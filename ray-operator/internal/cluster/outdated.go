package cluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// intents judges which pods are out of date. It remembers what the spec wants of each
// group, for one pass.
type intents struct {
	cluster *v1beta1.ComputeCluster
	wanted  map[string]string
	shapes  map[string]string
	sizes   map[string]corev1.ResourceRequirements
}

func intentsOf(cluster *v1beta1.ComputeCluster) intents {
	return intents{cluster: cluster, wanted: map[string]string{}, shapes: map[string]string{}, sizes: map[string]corev1.ResourceRequirements{}}
}

// intentOf returns the intent's hash for a group, or for the head under "".
func (i intents) intentOf(group string) string {
	return remember(i.wanted, group, func() string { return pod.Intent(i.cluster, group) })
}

// shapeOf returns the hash of what cannot be changed while a worker of a group runs.
func (i intents) shapeOf(group string) string {
	return remember(i.shapes, group, func() string { return pod.Shape(i.cluster, group) })
}

// resourcesOf returns those that a new worker of a group would have, whatever its slot.
func (i intents) resourcesOf(group string) corev1.ResourceRequirements {
	return remember(i.sizes, group, func() corev1.ResourceRequirements {
		return pod.Ray(pod.Worker(i.cluster, naming.FindGroup(i.cluster, group), 0, 1)).Resources
	})
}

// remember works a value out where it is not known yet.
func remember[T any](known map[string]T, key string, work func() T) T {
	value, ok := known[key]
	if !ok {
		value = work()
		known[key] = value
	}
	return value
}

// outdatedPods returns the pods of an incarnation that were built from an earlier spec and stay as they are.
func (i intents) outdatedPods(pods []Pod, of Incarnation) []Pod {
	var old []Pod
	for _, p := range pods {
		if of.hasPod(p) && p.isStaying() && i.isOld(p) && !i.canGrow(p) {
			old = append(old, p)
		}
	}
	return old
}

// isOld reports whether a pod was built from an earlier spec. A hash of a version that this
// operator does not know, made by a later one, cannot be compared and counts as good.
func (i intents) isOld(p Pod) bool {
	intent := i.intentOf(p.At.Group)
	if intent == "" {
		return false // its group is gone, and so it will be
	}
	carried := p.Annotations[v1beta1.AnnotationIntent]
	version, _, _ := strings.Cut(intent, "-")
	theirs, _, versioned := strings.Cut(carried, "-")
	return carried != intent && (!versioned || theirs == version)
}

// countStaying counts the pods that are there to stay.
func countStaying(pods []Pod) int { return countPods(pods, Pod.isStaying) }

func countPods(pods []Pod, of func(Pod) bool) int {
	found := 0
	for _, p := range pods {
		if of(p) {
			found++
		}
	}
	return found
}

// maxListed is how many pods a message names.
const maxListed = 3

// listNames names pods for people.
func listNames(pods []Pod) string {
	var names []string
	for _, p := range pods[:min(len(pods), maxListed)] {
		names = append(names, p.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(pods) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
