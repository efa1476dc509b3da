package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
)

// intentV1 is version 1 of the normal form of what a user wants of a pod. It holds the
// user's words and none of the operator's defaults, so that a new operator with new
// defaults finds no pod out of date. It never changes; a later form gets a later
// version, and pods keep being judged by the version they carry.
type intentV1 struct {
	RayVersion      string
	Image           string            `json:",omitempty"`
	ImagePullPolicy corev1.PullPolicy `json:",omitempty"`
	Node            v1alpha1.NodeSpec
}

// Intent is the versioned hash of what the user wants of a group's pods, or of the
// head where group is empty. It is empty for a group that the spec does not name.
func Intent(cluster *v1alpha1.ComputeCluster, group string) string {
	spec := &cluster.Spec
	form := intentV1{RayVersion: spec.RayVersion, Image: spec.Image, ImagePullPolicy: spec.ImagePullPolicy, Node: spec.Head.NodeSpec}
	if group != "" {
		found := FindGroup(cluster, group)
		if found == nil {
			return ""
		}
		form.Node = found.NodeSpec
		if found.Image != "" {
			form.Image = found.Image
		}
	}
	hash, _ := naming.IntentHash("v1", form) // API types always marshal: they came from JSON
	return hash
}

// FindGroup is the worker group of a name, or nil.
func FindGroup(cluster *v1alpha1.ComputeCluster, name string) *v1alpha1.WorkerGroup {
	for i := range cluster.Spec.WorkerGroups {
		if cluster.Spec.WorkerGroups[i].Name == name {
			return &cluster.Spec.WorkerGroups[i]
		}
	}
	return nil
}
