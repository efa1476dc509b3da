package desired

import (
	"strconv"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// defaultStorage is the size of a store's volume.
var defaultStorage = resource.MustParse("1Gi")

// StoreClaim is the claim of a store that has a volume of its own, nil where there is none.
// A volume that is retained has no owner: nothing takes it along.
func StoreClaim(cluster *v1beta1.ComputeCluster) *corev1.PersistentVolumeClaim {
	volume, modes := v1beta1.EmbeddedStore{}, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	switch given := cluster.Spec.ControlStore; {
	case given == nil:
		return nil
	case given.ManagedRedis != nil:
		redis := given.ManagedRedis
		volume.Storage, volume.StorageClassName, volume.Retain = redis.Storage, redis.StorageClassName, redis.Retain
		modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	case given.Embedded != nil && given.Embedded.ExistingClaim == "":
		volume = *given.Embedded.DeepCopy()
		if len(volume.AccessModes) > 0 {
			modes = volume.AccessModes
		}
	default:
		return nil
	}
	storage := defaultStorage.DeepCopy()
	if volume.Storage != nil {
		storage = volume.Storage.DeepCopy()
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: ofStore(cluster, naming.StoreClaim(cluster.Name)),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes,
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: storage}},
		},
	}
	if class := volume.StorageClassName; class != nil {
		claim.Spec.StorageClassName = new(*class)
	}
	if ptr.Deref(volume.Retain, false) {
		claim.OwnerReferences = nil
	}
	return claim
}

// StorePolicy says who reaches a managed store: the cluster's heads and the operator, and
// Redis itself reaches nobody. It is there without network isolation too, which is about
// what people do with a cluster: with its memory nobody else has any business. It is nil
// without a managed store.
func StorePolicy(cluster *v1beta1.ComputeCluster, site Site) *networkingv1.NetworkPolicy {
	if managed(cluster) == nil {
		return nil
	}
	heads := networkingv1.NetworkPolicyPeer{
		PodSelector: &metav1.LabelSelector{MatchLabels: naming.RoleSelector(cluster.Name, v1beta1.RoleHead)},
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: ofStore(cluster, naming.Store(cluster.Name)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: storeSelector(cluster)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: site.Mesh.admit([]networkingv1.NetworkPolicyIngressRule{{
				From:  append([]networkingv1.NetworkPolicyPeer{heads}, sitePeers(site, site.OperatorLabels)...),
				Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, naming.PortStore)},
			}}),
		},
	}
}

// toStore lets a cluster whose reach is limited go to its store. No policy can name the host
// of one that is given, so its port is open to everything but the cloud's metadata. Servers
// that a Sentinel leads to, on other ports, are for allowTo to name.
func toStore(cluster *v1beta1.ComputeCluster) []networkingv1.NetworkPolicyEgressRule {
	given := cluster.Spec.ControlStore
	switch {
	case managed(cluster) != nil:
		return []networkingv1.NetworkPolicyEgressRule{{
			To:    []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: storeSelector(cluster)}}},
			Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, naming.PortStore)},
		}}
	case given != nil && given.Redis != nil:
		_, text := pod.StoreEndpoint(given.Redis.Address)
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil
		}
		return []networkingv1.NetworkPolicyEgressRule{{
			To:    allButMetadata(),
			Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, int32(number))},
		}}
	default:
		return nil
	}
}

// managed is what the spec says of a managed Redis, nil where there is none.
func managed(cluster *v1beta1.ComputeCluster) *v1beta1.ManagedRedis {
	if cluster.Spec.ControlStore == nil {
		return nil
	}
	return cluster.Spec.ControlStore.ManagedRedis
}

// ofStore is what every object of a store has: it belongs to the cluster as all others do,
// and is found by the store's label too.
func ofStore(cluster *v1beta1.ComputeCluster, name string) metav1.ObjectMeta {
	meta := owned(cluster, name)
	meta.Labels[v1beta1.LabelStore] = cluster.Name
	return meta
}

// storeSelector selects the pod of a managed Redis. A StatefulSet can never change its own.
func storeSelector(cluster *v1beta1.ComputeCluster) map[string]string {
	return map[string]string{v1beta1.LabelStore: cluster.Name}
}
