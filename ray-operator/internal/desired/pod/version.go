package pod

import (
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// IsAtLeast reports whether a cluster's Ray is of a minor version or a later one. A version that is no number, as of a
// nightly build, counts as later.
func IsAtLeast(cluster *v1alpha1.ComputeCluster, major, minor uint) bool {
	have, err := version.ParseGeneric(cluster.Spec.RayVersion)
	return err != nil || have.AtLeast(version.MajorMinor(major, minor))
}
