package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Installed is what an installation gives every cluster. A nil one gives nothing.
type Installed struct {
	// PodDefaults lie under those of every cluster; nil where there are none.
	PodDefaults *v1beta1.PodDefaults
	// Sizes lie under those of the operator's containers.
	Sizes Sizes
	// History is what is kept of every cluster; nil where no archive is installed.
	History *History
}

// Under returns a cluster over all that its installation gives it, and the cluster itself where that is nothing.
func (i *Installed) Under(cluster *v1beta1.ComputeCluster) *v1beta1.ComputeCluster {
	if i == nil {
		return cluster
	}
	return i.History.Under(i.Sizes.Under(Under(cluster, i.PodDefaults)))
}

// Sized returns a cluster over what its installation gives of the operator's containers: the sizes of pods follow from it.
func (i Installed) Sized(cluster *v1beta1.ComputeCluster) *v1beta1.ComputeCluster {
	return i.History.Under(i.Sizes.Under(cluster))
}

// Under returns a cluster whose podDefaults lie over those of its installation: what the cluster says of the same name or
// key stays, lists of both are joined. Pods are built from it; what is wanted of them is judged by the cluster itself.
// Without defaults of the installation it returns the cluster.
func Under(cluster *v1beta1.ComputeCluster, installed *v1beta1.PodDefaults) *v1beta1.ComputeCluster {
	if installed == nil {
		return cluster
	}
	all, from := &v1beta1.PodDefaults{}, installed.DeepCopy()
	if own := cluster.Spec.PodDefaults; own != nil {
		all = own.DeepCopy()
	}
	all.Labels = merged(from.Labels, all.Labels)
	all.Annotations = merged(from.Annotations, all.Annotations)
	all.NodeSelector = merged(from.NodeSelector, all.NodeSelector)
	all.Tolerations = append(all.Tolerations, from.Tolerations...)
	all.ImagePullSecrets = joined(all.ImagePullSecrets, from.ImagePullSecrets)
	env := slices.DeleteFunc(from.Env, func(variable corev1.EnvVar) bool {
		return slices.ContainsFunc(all.Env, func(own corev1.EnvVar) bool { return own.Name == variable.Name })
	})
	all.Env = append(env, all.Env...)
	all.EnvFrom = append(from.EnvFrom, all.EnvFrom...)
	fill(&all.ServiceAccountName, from.ServiceAccountName)
	fill(&all.PriorityClassName, from.PriorityClassName)
	laid := *cluster
	laid.Spec.PodDefaults = all
	return &laid
}

// Place lays what an installation says of where pods run, and how they get there, under the spec of a pod of a control
// store. Labels, annotations, variables and the service account are for pods of Ray.
func Place(spec *corev1.PodSpec, installed *v1beta1.PodDefaults) {
	if installed == nil {
		return
	}
	from := installed.DeepCopy()
	if len(from.NodeSelector) > 0 {
		spec.NodeSelector = merged(from.NodeSelector, spec.NodeSelector)
	}
	spec.Tolerations = append(spec.Tolerations, from.Tolerations...)
	spec.ImagePullSecrets = joined(spec.ImagePullSecrets, from.ImagePullSecrets)
	fill(&spec.PriorityClassName, from.PriorityClassName)
}

// joined returns a list of names with those of another one that it lacks.
func joined(names, more []corev1.LocalObjectReference) []corev1.LocalObjectReference {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
