package store

import (
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
)

// Status returns what a status says of the store of a cluster in a session.
func Status(cluster *v1beta1.ComputeCluster, session int64) *v1beta1.ControlStoreStatus {
	told := &v1beta1.ControlStoreStatus{Session: session, ClaimName: pod.StoreClaim(cluster)}
	if InRedis(cluster) {
		told.Namespace = pod.StoreNamespace(cluster)
	}
	return told
}
