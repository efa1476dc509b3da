package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ControlStore stores the head's state: actors, placement groups, Serve applications and nodes. Exactly one of its fields must be set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.redis), has(self.managedRedis), has(self.embedded)].filter(given, given).size() == 1",message="controlStore must have exactly one of redis, managedRedis and embedded; set one"
// +heliostat:rule=store-kind
// +kubebuilder:validation:XValidation:rule="has(self.redis) == has(oldSelf.redis) && has(self.managedRedis) == has(oldSelf.managedRedis) && has(self.embedded) == has(oldSelf.embedded)",message="the kind of a control store is immutable; create a new cluster"
// +heliostat:rule=store-kind-fixed
type ControlStore struct {
	// redis is an existing Redis: a single server, a Redis Cluster with one shard, or the primary of Sentinels.
	// +optional
	Redis *GivenRedis `json:"redis,omitempty"`

	// managedRedis is a small Redis that the operator runs for this cluster only.
	// +optional
	ManagedRedis *ManagedRedis `json:"managedRedis,omitempty"`

	// embedded is Ray's own store on a volume of the head. It needs Ray 2.57 or later, and no other service.
	// +optional
	Embedded *EmbeddedStore `json:"embedded,omitempty"`
}

// SecretKey is a key of a Secret in the same namespace.
type SecretKey struct {
	// name of the Secret.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="the name of a Secret must be a DNS-1123 subdomain; give the name of a Secret in the cluster's namespace"
	// +heliostat:rule=store-secret
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name,omitempty"`
	// key in the Secret.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="a key of a Secret must consist of letters, digits, '-', '_' and '.', must not be '.', and must not begin with '..'; give such a key"
	// +heliostat:rule=store-secret-key
	// +kubebuilder:validation:MinLength=1
	// +required
	Key string `json:"key,omitempty"`
}

// GivenRedis is an existing Redis.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || self.address.startsWith('rediss://')",message="tls must be used with an address that begins with rediss://; change the address, or leave tls out"
// +heliostat:rule=store-tls
// +kubebuilder:validation:XValidation:rule="!has(self.usernameSecret) || has(self.passwordSecret)",message="usernameSecret must be used with passwordSecret; set passwordSecret too"
// +heliostat:rule=store-username
// +kubebuilder:validation:XValidation:rule="has(self.__namespace__) == has(oldSelf.__namespace__) && (!has(self.__namespace__) || self.__namespace__ == oldSelf.__namespace__)",message="the namespace of a control store is immutable; create a new cluster",fieldPath=".namespace"
// +heliostat:rule=store-namespace-fixed
type GivenRedis struct {
	// address is redis://HOST:PORT, or rediss://HOST:PORT with TLS. It may be the address of a Sentinel.
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:XValidation:rule="self.matches('^rediss?://([a-zA-Z0-9]([-a-zA-Z0-9.]{0,251}[a-zA-Z0-9])?|[[][0-9a-fA-F:.]+[]]):([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$')",message="address must be redis://HOST:PORT, or rediss://HOST:PORT with TLS, and contain nothing else; put user and password into usernameSecret and passwordSecret"
	// +heliostat:rule=store-address
	// +kubebuilder:validation:MinLength=1
	// +required
	Address string `json:"address,omitempty"`

	// namespace separates clusters that share a Redis: every key of this cluster begins with RAY, the namespace and @. Two clusters must never share a namespace. Immutable. Default: its own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-_.:/a-zA-Z0-9]+$')",message="the namespace of a control store must consist of letters, digits and the characters - _ . : /; choose such a name"
	// +heliostat:rule=store-namespace
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// usernameSecret holds the name of the ACL user. Default: none, and the user is "default".
	// +optional
	UsernameSecret *SecretKey `json:"usernameSecret,omitempty"`

	// passwordSecret holds the password. Default: none.
	// +optional
	PasswordSecret *SecretKey `json:"passwordSecret,omitempty"`

	// tls configures the trusted authority and the client certificate. Default: the authorities that the images trust.
	// +optional
	TLS *RedisTLS `json:"tls,omitempty"`
}

// RedisTLS configures TLS for a rediss:// address.
//
// +kubebuilder:validation:XValidation:rule="has(self.certificateSecret) == has(self.keySecret)",message="certificateSecret and keySecret must be set together; set both or none"
// +heliostat:rule=store-certificate
type RedisTLS struct {
	// caSecret holds the certificate of the authority that signed the server's certificate.
	// +optional
	CASecret *SecretKey `json:"caSecret,omitempty"`

	// certificateSecret holds the cluster's client certificate, for a server that requires one.
	// +optional
	CertificateSecret *SecretKey `json:"certificateSecret,omitempty"`
	// keySecret holds the private key of certificateSecret.
	// +optional
	KeySecret *SecretKey `json:"keySecret,omitempty"`

	// serverName is the name that the server's certificate must have. Default: the host of the address without caSecret. With caSecret no name is checked, because Ray checks none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="serverName must consist of lower-case letters, digits, '-' and '.'; give the name that the certificate is for"
	// +heliostat:rule=store-server-name
	// +optional
	ServerName string `json:"serverName,omitempty"`
}

// ManagedRedis is a Redis that the operator runs for one cluster: with an append-only file on a volume, TLS, a password, and a NetworkPolicy for the cluster and the operator only.
//
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName) && has(self.storage) == has(oldSelf.storage) && (!has(self.storage) || quantity(string(self.storage)).compareTo(quantity(string(oldSelf.storage))) == 0)",message="the volume of a control store is immutable; create a new cluster, or enlarge the PersistentVolumeClaim"
// +heliostat:rule=store-volume-fixed
type ManagedRedis struct {
	// storage of its volume.
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('100Mi'))",message="storage of a control store must be at least 100Mi; raise it"
	// +heliostat:rule=store-storage
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`

	// storageClassName of its volume. Default: the default class of the Kubernetes cluster.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || !format.dns1123Subdomain().validate(self).hasValue()",message="the name must be a DNS-1123 subdomain; use lower-case letters, digits, '-' and '.'"
	// +heliostat:rule=object-name
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// image of Redis 7 or later, with TLS.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:default="redis:7"
	// +kubebuilder:validation:MinLength=1
	// +optional
	Image string `json:"image,omitempty"`

	// size of its container: cpu is a request, limits.cpu its limit, memory and ephemeral-storage are request and limit. What is given here also holds for the container that makes its certificate. Default: cpu 50m, memory 256Mi.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(name, name in ['cpu', 'limits.cpu', 'memory', 'ephemeral-storage'])",message="the size of a managed Redis must contain only cpu, limits.cpu, memory and ephemeral-storage; remove the rest"
	// +heliostat:rule=store-size-name
	// +kubebuilder:validation:XValidation:rule="!self.exists(name, name != 'memory' && sign(quantity(string(self[name]))) <= 0) && !self.exists(name, name == 'memory' && quantity(string(self[name])).isLessThan(quantity('64Mi')))",message="the size of a managed Redis must have amounts above 0 and memory of at least 64Mi; raise it"
	// +heliostat:rule=store-size
	// +kubebuilder:validation:XValidation:rule="!('cpu' in self && 'limits.cpu' in self) || !quantity(string(self['cpu'])).isGreaterThan(quantity(string(self['limits.cpu'])))",message="limits.cpu of the size of a managed Redis must not be below cpu; raise limits.cpu, or lower cpu"
	// +heliostat:rule=store-size-limit
	// +optional
	Size corev1.ResourceList `json:"size,omitempty"`

	// retain keeps the volume when the cluster is deleted. A later cluster of the same name continues with its data.
	// +optional
	Retain *bool `json:"retain,omitempty"`
}

// EmbeddedStore is Ray's own store on a volume of the head.
//
// +kubebuilder:validation:XValidation:rule="!has(self.existingClaim) || (!has(self.storage) && !has(self.storageClassName) && !has(self.accessModes) && !(has(self.retain) && self.retain))",message="existingClaim must not be set with storage, storageClassName, accessModes or retain; set either existingClaim or the others",fieldPath=".existingClaim"
// +heliostat:rule=store-claim
// +kubebuilder:validation:XValidation:rule="has(self.existingClaim) == has(oldSelf.existingClaim) && (!has(self.existingClaim) || self.existingClaim == oldSelf.existingClaim) && has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName) && has(self.accessModes) == has(oldSelf.accessModes) && (!has(self.accessModes) || self.accessModes == oldSelf.accessModes) && has(self.storage) == has(oldSelf.storage) && (!has(self.storage) || quantity(string(self.storage)).compareTo(quantity(string(oldSelf.storage))) == 0)",message="the volume of a control store is immutable; create a new cluster, or enlarge the PersistentVolumeClaim"
// +heliostat:rule=store-volume-fixed
type EmbeddedStore struct {
	// storage of its volume. Default: 1Gi.
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('100Mi'))",message="storage of a control store must be at least 100Mi; raise it"
	// +heliostat:rule=store-storage
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`

	// storageClassName of its volume. Default: the default class of the Kubernetes cluster.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || !format.dns1123Subdomain().validate(self).hasValue()",message="the name must be a DNS-1123 subdomain; use lower-case letters, digits, '-' and '.'"
	// +heliostat:rule=object-name
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// accessModes of its volume. With ReadWriteOncePod, Kubernetes prevents a second head from using it. A volume that other nodes can mount lets the head move when its node is lost. Default: ReadWriteOncePod.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=ReadWriteOncePod;ReadWriteOnce;ReadWriteMany
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || !('ReadWriteOncePod' in self)",message="ReadWriteOncePod must be the only access mode; use it alone, or leave it out"
	// +heliostat:rule=store-modes
	// +listType=set
	// +optional
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`

	// existingClaim is a PersistentVolumeClaim in the same namespace to use instead of a new one. It is never deleted.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="the name of a claim must be a DNS-1123 subdomain; give the name of a claim in the cluster's namespace"
	// +heliostat:rule=store-claim-name
	// +kubebuilder:validation:MinLength=1
	// +optional
	ExistingClaim string `json:"existingClaim,omitempty"`

	// retain keeps the volume when the cluster is deleted. A later cluster of the same name continues with its data.
	// +optional
	Retain *bool `json:"retain,omitempty"`
}

// ControlStoreStatus is the state of the control store.
type ControlStoreStatus struct {
	// session is the epoch in which the stored state began, which is the epoch of the workers. It does not change when a head recovers.
	// +kubebuilder:validation:Minimum=1
	// +required
	Session int64 `json:"session,omitempty"`
	// namespace is Ray's namespace in a Redis: its keys begin with RAY, the namespace and @.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// claimName is the PersistentVolumeClaim of a store with a volume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClaimName string `json:"claimName,omitempty"`
}
