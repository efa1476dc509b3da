// Package testkit holds what tests of the controllers share: builders, an API server
// in memory, a kubelet, a history of all writes, and World, which puts them together
// with the real reconciler on a clock that tests move.
//
// In: objects as a user would write them, and things that go wrong. Out: the state that
// the operator brings about, and a failed test for each rule that it broke on the way.
// Kubelet and History work on any client, so they serve a real API server too.
//
// It is imported by tests only, and it never waits for real time.
package testkit

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Namespace is where the builders put everything.
const Namespace = "default"

// Cluster is a valid cluster with the given groups and a UID that follows from its name.
func Cluster(name string, groups ...v1beta1.WorkerGroup) *v1beta1.ComputeCluster {
	return &v1beta1.ComputeCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ComputeCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, UID: types.UID(name + "-uid"), Generation: 1},
		Spec:       v1beta1.ComputeClusterSpec{RayVersion: "2.60.0", WorkerGroups: groups},
	}
}

// Group is a group of replicas workers with nothing else said.
func Group(name string, replicas int32) v1beta1.WorkerGroup {
	return v1beta1.WorkerGroup{Name: name, Replicas: &replicas}
}

// Sized is the group with a size, given as name, quantity pairs.
func Sized(group v1beta1.WorkerGroup, pairs ...string) v1beta1.WorkerGroup {
	group.Size = Resources(pairs...)
	return group
}

// Resources makes a resource list of name, quantity pairs. It panics on a bad quantity.
func Resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// Template is a pod template with the given containers.
func Template(containers ...corev1.Container) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers}}
}
