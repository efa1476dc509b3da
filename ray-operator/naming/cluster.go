package naming

import (
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// FindGroup is the worker group of a name, or nil.
func FindGroup(cluster *v1beta1.ComputeCluster, name string) *v1beta1.WorkerGroup {
	for i := range cluster.Spec.WorkerGroups {
		if cluster.Spec.WorkerGroups[i].Name == name {
			return &cluster.Spec.WorkerGroups[i]
		}
	}
	return nil
}

// EncryptionRequired reports whether the pods of a cluster speak TLS with each other.
func EncryptionRequired(cluster *v1beta1.ComputeCluster) bool {
	return cluster.Spec.Network != nil && cluster.Spec.Network.Encryption == v1beta1.Enabled
}
