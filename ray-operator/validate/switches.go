package validate

import (
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// OmitFalse leaves out the switches of a cluster that are false, which means the same: so two specs that say the same are
// equal, and have the same hash.
func OmitFalse(spec *v1beta1.ComputeClusterSpec) {
	all := []**bool{&spec.Suspend}
	if spec.Head.Service != nil {
		all = append(all, &spec.Head.Service.Headless)
	}
	for i := range spec.WorkerGroups {
		all = append(all, &spec.WorkerGroups[i].Suspend)
	}
	for i := range spec.SharedVolumes {
		volume := &spec.SharedVolumes[i]
		if all = append(all, &volume.ReadOnly); volume.Claim != nil {
			all = append(all, &volume.Claim.Retain)
		}
	}
	if store := spec.ControlStore; store != nil && store.ManagedRedis != nil {
		all = append(all, &store.ManagedRedis.Retain)
	}
	if store := spec.ControlStore; store != nil && store.Embedded != nil {
		all = append(all, &store.Embedded.Retain)
	}
	for _, each := range all {
		if !ptr.Deref(*each, false) {
			*each = nil
		}
	}
}
