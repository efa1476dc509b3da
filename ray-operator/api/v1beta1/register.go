package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "heliostat.dev", Version: "v1beta1"}

// AddToScheme registers the package's kinds with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ComputeCluster{}, &ComputeClusterList{}, &ClusterJob{}, &ClusterJobList{},
		&ClusterService{}, &ClusterServiceList{}, &ClusterJobSchedule{}, &ClusterJobScheduleList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
