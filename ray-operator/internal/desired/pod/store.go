package pod

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

const (
	// managedNamespace is Ray's namespace in a Redis that a cluster has for itself: a later
	// cluster of its name, with another UID, finds there what was retained.
	managedNamespace = "heliostat"
	// reconnectSeconds is how long a worker waits for a head that comes back. Ray's default
	// of 60 is less than it takes to find another node for one.
	reconnectSeconds = "3600"
	// storeGroup is the group of the user of Ray's own images.
	storeGroup = 1000
)

// variableStoreAddress tells Ray where its Redis is.
const variableStoreAddress = "RAY_REDIS_ADDRESS"

// Variables that the kubelet puts into the start command. Ray takes user and password of a
// Redis from there alone.
const (
	variableStoreUser     = "RAY_STORE_USERNAME"
	variableStorePassword = "RAY_STORE_PASSWORD" //nolint:gosec // the name of a variable
)

// StoreNamespace is Ray's namespace in the cluster's Redis, empty where there is none.
func StoreNamespace(cluster *v1beta1.ComputeCluster) string {
	switch given := cluster.Spec.ControlStore; {
	case given == nil:
		return ""
	case given.ManagedRedis != nil:
		return managedNamespace
	case given.Redis != nil && given.Redis.Namespace != "":
		return given.Redis.Namespace
	case given.Redis != nil:
		return naming.StoreNamespace(cluster.UID)
	default:
		return ""
	}
}

// StoreAddress is that of the cluster's Redis, with its scheme; empty where there is none. A managed Redis may speak TLS
// also where the cluster's pods do not: EncryptStore.
func StoreAddress(cluster *v1beta1.ComputeCluster) string {
	switch given := cluster.Spec.ControlStore; {
	case given == nil:
		return ""
	case given.ManagedRedis != nil:
		return ManagedStoreAddress(cluster, naming.EncryptionRequired(cluster))
	case given.Redis != nil:
		return given.Redis.Address
	default:
		return ""
	}
}

// ManagedStoreAddress is that of a managed Redis, with or without TLS.
func ManagedStoreAddress(cluster *v1beta1.ComputeCluster, encrypted bool) string {
	scheme := "redis"
	if encrypted {
		scheme = "rediss"
	}
	return fmt.Sprintf("%s://%s:%d", scheme, StoreHost(cluster), naming.PortStore)
}

// StoreHost is the name under which a managed Redis is found, and which its certificate is for.
func StoreHost(cluster *v1beta1.ComputeCluster) string {
	return naming.Store(cluster.Name) + "." + cluster.Namespace + ".svc"
}

// StoreEndpoint are host and port of a Redis' address, without the brackets of an IPv6
// address. They are empty for what is no address; package validate refused that before.
func StoreEndpoint(address string) (host, port string) {
	_, endpoint, _ := strings.Cut(address, "://")
	at := strings.LastIndexByte(endpoint, ':')
	if at < 0 {
		return "", ""
	}
	return strings.Trim(endpoint[:at], "[]"), endpoint[at+1:]
}

// hasName reports whether a host is given by a name, and not by an IP address. No domain ends
// in a label of digits alone.
func hasName(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.Trim(last, "0123456789") != "" && !strings.Contains(host, ":")
}

// StoreClaim is the name of the claim whose volume holds the cluster's memory, the user's
// own or one of ours; empty where the operator knows of none.
func StoreClaim(cluster *v1beta1.ComputeCluster) string {
	switch given := cluster.Spec.ControlStore; {
	case given == nil || given.ManagedRedis == nil && given.Embedded == nil:
		return ""
	case given.Embedded != nil && given.Embedded.ExistingClaim != "":
		return given.Embedded.ExistingClaim
	default:
		return naming.StoreClaim(cluster.Name)
	}
}

// store gives pods what they need where the memory of the head outlives it. Workers wait
// long for the next head. The head's own raylet must not: its control service ends with
// "ray start --block" and takes all beside it along, and where something of it were left,
// it had better give up soon than stay beside its successor.
func store(d *draft) {
	given := d.cluster.Spec.ControlStore
	switch {
	case given == nil:
	case !d.isHead():
		d.offer("RAY_gcs_rpc_server_reconnect_timeout_s", reconnectSeconds)
	case given.Redis != nil:
		d.redis()
		d.fromSecret("redis-username", variableStoreUser, given.Redis.UsernameSecret)
		d.fromSecret("redis-password", variableStorePassword, given.Redis.PasswordSecret)
		d.trust(given.Redis)
	case given.ManagedRedis != nil:
		d.redis()
		d.pod.Spec.Affinity = Beside(d.pod.Spec.Affinity, map[string]string{v1beta1.LabelStore: d.cluster.Name})
		d.options["redis-username"] = naming.StoreUser(d.at.Epoch)
		d.fromSecret("redis-password", variableStorePassword, &v1beta1.SecretKey{Name: naming.Store(d.cluster.Name), Key: v1beta1.StoreHeadKey})
		if naming.EncryptionRequired(d.cluster) {
			d.set("RAY_REDIS_CA_CERT", naming.PathCertificates+"/ca.crt")
			d.set("RAY_REDIS_SERVER_NAME", StoreHost(d.cluster))
		}
	case given.Embedded != nil:
		d.embedded()
	}
}

// besideWeight is the least: any other preference is the user's own.
const besideWeight = 1

// Beside returns an affinity that also prefers the node of the pods with some labels.
func Beside(given *corev1.Affinity, labels map[string]string) *corev1.Affinity {
	affinity := given
	fillPointer(&affinity, corev1.Affinity{})
	fillPointer(&affinity.PodAffinity, corev1.PodAffinity{})
	preferred := &affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	*preferred = append(*preferred, corev1.WeightedPodAffinityTerm{Weight: besideWeight, PodAffinityTerm: corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname,
	}})
	return affinity
}

// redis tells Ray where its Redis is, and which keys are its own.
func (d *draft) redis() {
	d.set(variableStoreAddress, StoreAddress(d.cluster))
	d.set("RAY_external_storage_namespace", StoreNamespace(d.cluster))
}

// fromSecret gives ray start an option whose value is the key of a Secret: the pod's spec
// names the key, and the kubelet reads it.
func (d *draft) fromSecret(option, variable string, from *v1beta1.SecretKey) {
	if from == nil {
		return
	}
	d.ray.Env = slices.DeleteFunc(d.ray.Env, func(e corev1.EnvVar) bool { return e.Name == variable })
	d.ray.Env = append(d.ray.Env, corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: from.Name}, Key: from.Key},
	}})
	d.options[option] = "$(" + variable + ")"
}

// trust mounts the certificates of a Redis with TLS, each key of a Secret alone, and names
// the server that is wanted, for those that are many behind one address. As a whole volume
// they follow their Secrets: Ray reads them when it starts.
func (d *draft) trust(redis *v1beta1.GivenRedis) {
	if !strings.HasPrefix(redis.Address, "rediss://") {
		return
	}
	if host, _ := StoreEndpoint(redis.Address); hasName(host) {
		d.set("RAY_REDIS_SERVER_NAME", host)
	}
	tls := v1beta1.RedisTLS{}
	if redis.TLS != nil {
		tls = *redis.TLS
	}
	readable := int32(0o444) // the image's user is not known, and only Ray's container mounts it
	volume := &corev1.ProjectedVolumeSource{DefaultMode: &readable}
	for _, file := range []struct {
		variable, name string
		from           *v1beta1.SecretKey
	}{
		{"RAY_REDIS_CA_CERT", "ca.crt", tls.CASecret},
		{"RAY_REDIS_CLIENT_CERT", "tls.crt", tls.CertificateSecret},
		{"RAY_REDIS_CLIENT_KEY", "tls.key", tls.KeySecret},
	} {
		if file.from == nil {
			continue
		}
		d.set(file.variable, naming.PathStoreTLS+"/"+file.name)
		volume.Sources = append(volume.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: file.from.Name},
			Items:                []corev1.KeyToPath{{Key: file.from.Key, Path: file.name}},
		}})
	}
	if len(volume.Sources) == 0 {
		return
	}
	d.pod.Spec.Volumes = append(d.pod.Spec.Volumes, corev1.Volume{Name: naming.VolumeStoreTLS, VolumeSource: corev1.VolumeSource{Projected: volume}})
	d.ray.VolumeMounts = append(d.ray.VolumeMounts, corev1.VolumeMount{Name: naming.VolumeStoreTLS, MountPath: naming.PathStoreTLS, ReadOnly: true})
}

// embedded gives Ray's own store its volume: a folder below its root, which Ray makes, as the root may hold a lost+found.
func (d *draft) embedded() {
	d.set("RAY_gcs_storage", "rocksdb")
	d.set("RAY_gcs_storage_path", naming.PathStore+"/gcs")
	d.pod.Spec.Volumes = append(d.pod.Spec.Volumes, corev1.Volume{Name: naming.VolumeStore, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: StoreClaim(d.cluster)},
	}})
	d.ray.VolumeMounts = append(d.ray.VolumeMounts, corev1.VolumeMount{Name: naming.VolumeStore, MountPath: naming.PathStore})
}

// GrantStore gives a cluster's head with an embedded store a group that lets a user who is not root write to its volume, where
// the template names none, and returns the head. The volume's files change their group only where its root has another one, so
// that what Ray keeps for its user alone stays so.
func GrantStore(cluster *v1beta1.ComputeCluster, head *corev1.Pod) *corev1.Pod {
	isEmbedded := cluster.Spec.ControlStore != nil && cluster.Spec.ControlStore.Embedded != nil
	if security := head.Spec.SecurityContext; isEmbedded && security.FSGroup == nil { // the step security has filled it in
		security.FSGroup = new(int64(storeGroup))
		fillPointer(&security.FSGroupChangePolicy, corev1.FSGroupChangeOnRootMismatch)
	}
	return head
}
