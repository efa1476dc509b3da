package naming

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Store is the name of what runs a cluster's managed Redis and of all that goes with it:
// StatefulSet, Service, Secret, NetworkPolicy.
func Store(cluster string) string { return cluster + "-redis" }

// StorePod is the name of a managed Redis' only pod, as a StatefulSet gives it.
func StorePod(cluster string) string { return Store(cluster) + "-0" }

// StoreClaim is the name of the claim of a store that has a volume.
func StoreClaim(cluster string) string { return cluster + "-store" }

// StoreNote is the name of the note beside the operator about a cluster's keys in a Redis.
func StoreNote(uid types.UID) string { return "heliostat-store-" + string(uid) }

// StoreNamespace is what Ray's keys carry in a Redis that others use too, where the user
// gives no name: the cluster's UID, which no other cluster ever has.
func StoreNamespace(uid types.UID) string { return string(uid) }

// StorePrefix is what every key begins with that Ray keeps under a namespace.
func StorePrefix(namespace string) string { return "RAY" + namespace + "@" }

// StoreUser is the ACL user that heads of an epoch have in a managed Redis.
func StoreUser(epoch int64) string { return "head-" + strconv.FormatInt(epoch, 10) }

// StoreLabels are the labels of what runs a managed store. They are not those of the
// cluster's own pods.
func StoreLabels(cluster string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       "redis",
		"app.kubernetes.io/instance":   cluster,
		"app.kubernetes.io/managed-by": "heliostat",
		v1beta1.LabelStore:             cluster,
	}
}
