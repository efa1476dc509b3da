package pod

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Sizes are what an installation gives the containers that the operator adds to pods. Each lies under the field of a
// cluster that is named beside it.
type Sizes struct {
	Autoscaling  corev1.ResourceList `json:"autoscaling,omitempty"`  // autoscaling.size
	Encryption   corev1.ResourceList `json:"encryption,omitempty"`   // network.encryptionSize
	ManagedRedis corev1.ResourceList `json:"managedRedis,omitempty"` // controlStore.managedRedis.size
}

// IsEmpty reports whether an installation gives no size.
func (s Sizes) IsEmpty() bool { return len(s.Autoscaling)+len(s.Encryption)+len(s.ManagedRedis) == 0 }

// Under returns a cluster whose sizes of the operator's containers lie over those of its installation. Without any it
// returns the cluster.
func (s Sizes) Under(cluster *v1beta1.ComputeCluster) *v1beta1.ComputeCluster {
	if s.IsEmpty() {
		return cluster
	}
	laid := *cluster
	if given := cluster.Spec.Autoscaling; given != nil {
		own := *given
		own.Size = Over(s.Autoscaling, own.Size)
		laid.Spec.Autoscaling = &own
	}
	if naming.EncryptionRequired(cluster) {
		own := *cluster.Spec.Network
		own.EncryptionSize = Over(s.Encryption, own.EncryptionSize)
		laid.Spec.Network = &own
	}
	if given := cluster.Spec.ControlStore; given != nil && given.ManagedRedis != nil {
		own := *given.ManagedRedis
		own.Size = Over(s.ManagedRedis, own.Size)
		laid.Spec.ControlStore = &v1beta1.ControlStore{ManagedRedis: &own}
	}
	return &laid
}

// Over lays a size over another one. Of the request and the limit of CPU the one that was given last holds, and moves the
// other where that would contradict it.
func Over(under, over corev1.ResourceList) corev1.ResourceList {
	size := maps.Clone(under)
	if size == nil {
		size = corev1.ResourceList{}
	}
	maps.Copy(size, over)
	request, hasRequest := size[corev1.ResourceCPU]
	limit, hasLimit := size[corev1.ResourceLimitsCPU]
	if !hasRequest || !hasLimit || request.Cmp(limit) <= 0 {
		return size
	}
	if _, isGiven := over[corev1.ResourceLimitsCPU]; isGiven {
		size[corev1.ResourceCPU] = limit
	} else {
		size[corev1.ResourceLimitsCPU] = request
	}
	return size
}

// limitPrefix begins the key of a size that is a limit alone: limits.cpu, as a ResourceQuota names it.
const limitPrefix = "limits."

// Sized returns the resources of a container of a size: each is request and limit, but CPU, whose limit is limits.cpu.
func Sized(size corev1.ResourceList) corev1.ResourceRequirements {
	resources := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for name, quantity := range size {
		own, isLimit := strings.CutPrefix(string(name), limitPrefix)
		if !isLimit {
			resources.Requests[name] = quantity.DeepCopy()
		}
		if isLimit || name != corev1.ResourceCPU {
			resources.Limits[corev1.ResourceName(own)] = quantity.DeepCopy()
		}
	}
	return resources
}
