package naming

import "k8s.io/apimachinery/pkg/types"

// Volumes of the operator in pods of a cluster, and where the Ray container sees them.
const (
	// VolumeShared is the shared memory of the object store, VolumeToken the cluster's token.
	VolumeShared = "ray-shm"
	PathShared   = "/dev/shm"
	VolumeToken  = "ray-token"
	PathToken    = "/var/run/secrets/heliostat.dev/token" //nolint:gosec // a path

	// VolumeAuthority is the authority of a cluster with encryption, for the init container that makes the pod's own
	// certificate, and VolumeCertificates is that certificate, where the other containers see it.
	VolumeAuthority    = "ray-ca"
	VolumeCertificates = "ray-certificates"
	PathCertificates   = "/var/run/secrets/heliostat.dev/certificates"

	// VolumeStore is the embedded store of a head, VolumeStoreTLS what it trusts of a Redis with TLS.
	VolumeStore    = "ray-store"
	PathStore      = "/var/lib/heliostat/store"
	VolumeStoreTLS = "ray-store-tls"
	PathStoreTLS   = "/var/run/secrets/heliostat.dev/store"

	// VolumeSession has the directories of Ray's sessions, which stand in PathSession unless the option temp-dir names
	// another path. VolumeHistory is the token by which the archive knows the pod.
	VolumeSession = "ray-session"
	PathSession   = "/tmp/ray"
	VolumeHistory = "heliostat-history"
	PathHistory   = "/var/run/secrets/heliostat.dev/history"
)

// SharedVolume is the name of the volume that pods have for a shared volume of a cluster.
func SharedVolume(name string) string { return "shared-" + name }

// SharedClaim is the name of the claim that a cluster has for a shared volume.
func SharedClaim(cluster, volume string) string { return cluster + "-" + SharedVolume(volume) }

// JobClaim is the name of the claim that all clusters of a job use for a shared volume.
func JobClaim(job types.UID, volume string) string { return SharedVolume(volume) + "-" + string(job) }
