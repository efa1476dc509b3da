package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ControlStore is where the head keeps what it must not forget: actors, placement groups, Serve applications, the nodes. Exactly one of its fields is given.
//
// +kubebuilder:validation:XValidation:rule="[has(self.redis), has(self.managedRedis), has(self.embedded)].filter(given, given).size() == 1",message="a control store is exactly one of redis, managedRedis and embedded; give one"
// +kubebuilder:validation:XValidation:rule="has(self.redis) == has(oldSelf.redis) && has(self.managedRedis) == has(oldSelf.managedRedis) && has(self.embedded) == has(oldSelf.embedded)",message="a control store cannot become one of another kind; make a new cluster"
type ControlStore struct {
	// Redis is a Redis of the user's: a single server, a Redis Cluster with one shard, or what Sentinels lead to.
	// +optional
	Redis *GivenRedis `json:"redis,omitempty"`

	// ManagedRedis is a small Redis that the operator makes and keeps for this cluster alone.
	// +optional
	ManagedRedis *ManagedRedis `json:"managedRedis,omitempty"`

	// Embedded is Ray's own store on a volume of the head, from Ray 2.57 on. It needs no other service.
	// +optional
	Embedded *EmbeddedStore `json:"embedded,omitempty"`
}

// SecretKey is a key of a Secret beside the cluster.
type SecretKey struct {
	// Name of the Secret.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="the name of a Secret must be a DNS-1123 subdomain; give the name of a Secret beside the cluster"
	// +required
	Name string `json:"name"`
	// Key in the Secret.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="a key of a Secret consists of letters, digits, '-', '_' and '.', and is not '.' nor begins with '..'; give such a key"
	// +required
	Key string `json:"key"`
}

// GivenRedis is a Redis of the user's.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || self.address.startsWith('rediss://')",message="tls is for addresses that begin with rediss://; change the address, or leave tls out"
// +kubebuilder:validation:XValidation:rule="!has(self.usernameSecret) || has(self.passwordSecret)",message="a user name needs a password; give passwordSecret too"
// +kubebuilder:validation:XValidation:rule="has(self.__namespace__) == has(oldSelf.__namespace__) && (!has(self.__namespace__) || self.__namespace__ == oldSelf.__namespace__)",message="the namespace of a control store cannot be changed; make a new cluster",fieldPath=".namespace"
type GivenRedis struct {
	// Address is redis://HOST:PORT, or rediss://HOST:PORT with TLS. The port of a Sentinel will do.
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:XValidation:rule="self.matches('^rediss?://([a-zA-Z0-9]([-a-zA-Z0-9.]{0,251}[a-zA-Z0-9])?|[[][0-9a-fA-F:.]+[]]):([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$')",message="address must be redis://HOST:PORT, or rediss://HOST:PORT with TLS, and hold nothing else; user and password go into usernameSecret and passwordSecret"
	// +required
	Address string `json:"address"`

	// Namespace keeps clusters apart that share a Redis: every key of this one begins with RAY, the namespace and @. Two clusters must never share one. Default: one of its own. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-_.:/a-zA-Z0-9]+$')",message="the namespace of a control store consists of letters, digits and the characters - _ . : /; choose such a name"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// UsernameSecret holds the name of the ACL user. Default: none, which is the user default.
	// +optional
	UsernameSecret *SecretKey `json:"usernameSecret,omitempty"`

	// PasswordSecret holds the password. Default: none.
	// +optional
	PasswordSecret *SecretKey `json:"passwordSecret,omitempty"`

	// TLS says whom to trust, and who the cluster is. Default: the authorities that the images trust.
	// +optional
	TLS *RedisTLS `json:"tls,omitempty"`
}

// RedisTLS says whom to trust at a rediss:// address.
//
// +kubebuilder:validation:XValidation:rule="has(self.certificateSecret) == has(self.keySecret)",message="a client's certificate and its key go together; give both or none"
type RedisTLS struct {
	// CASecret holds the certificate of the authority that signed the server's.
	// +optional
	CASecret *SecretKey `json:"caSecret,omitempty"`

	// CertificateSecret and KeySecret hold the cluster's own certificate and its key, for a server that asks for one.
	// +optional
	CertificateSecret *SecretKey `json:"certificateSecret,omitempty"`
	// KeySecret holds the key of certificateSecret.
	// +optional
	KeySecret *SecretKey `json:"keySecret,omitempty"`

	// ServerName is the name that the server's certificate must be for. Default: the host of the address where caSecret is not given, and no name is compared where it is, because Ray compares none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="a server name consists of lower-case letters, digits, '-' and '.'; give the name that the certificate is for"
	// +optional
	ServerName string `json:"serverName,omitempty"`
}

// ManagedRedis is a Redis that the operator makes for one cluster: with an append-only file on a volume, TLS, a password, a policy that lets only the cluster and the operator in.
//
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName) && has(self.storage) == has(oldSelf.storage) && (!has(self.storage) || quantity(string(self.storage)).compareTo(quantity(string(oldSelf.storage))) == 0)",message="the volume of a control store cannot be changed; make a new cluster, or enlarge its PersistentVolumeClaim itself"
type ManagedRedis struct {
	// Storage of its volume.
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('100Mi'))",message="a control store needs room; give 100Mi or more"
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`

	// StorageClassName of its volume. Default: Kubernetes' own.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || !format.dns1123Subdomain().validate(self).hasValue()",message="no object can have this name; use lower-case letters, digits, '-' and '.', as the object itself does"
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// Image of Redis 7 or later, with TLS.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:default="redis:7"
	// +optional
	Image string `json:"image,omitempty"`

	// Size of its container: cpu is a request, memory request and limit. Default: cpu 50m, memory 256Mi.
	// +kubebuilder:validation:MaxProperties=2
	// +kubebuilder:validation:XValidation:rule="self.all(name, name in ['cpu', 'memory'])",message="the size of a managed Redis is of cpu and memory; take the rest out"
	// +kubebuilder:validation:XValidation:rule="!self.exists(name, name == 'cpu' && sign(quantity(string(self[name]))) <= 0) && !self.exists(name, name == 'memory' && quantity(string(self[name])).isLessThan(quantity('64Mi')))",message="Redis does not run with so little; give cpu above 0 and memory of 64Mi or more"
	// +optional
	Size corev1.ResourceList `json:"size,omitempty"`

	// Retain, if true, keeps the volume when the cluster is deleted. A later cluster of the same name goes on with what it holds.
	// +optional
	Retain bool `json:"retain,omitempty"`
}

// EmbeddedStore is Ray's own store on a volume of the head.
//
// +kubebuilder:validation:XValidation:rule="!has(self.existingClaim) || (!has(self.storage) && !has(self.storageClassName) && !has(self.accessModes) && !(has(self.retain) && self.retain))",message="an existing claim has its own storage, class and modes, and is never deleted; give either existingClaim or the others",fieldPath=".existingClaim"
// +kubebuilder:validation:XValidation:rule="has(self.existingClaim) == has(oldSelf.existingClaim) && (!has(self.existingClaim) || self.existingClaim == oldSelf.existingClaim) && has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName) && has(self.accessModes) == has(oldSelf.accessModes) && (!has(self.accessModes) || self.accessModes == oldSelf.accessModes) && has(self.storage) == has(oldSelf.storage) && (!has(self.storage) || quantity(string(self.storage)).compareTo(quantity(string(oldSelf.storage))) == 0)",message="the volume of a control store cannot be changed; make a new cluster, or enlarge its PersistentVolumeClaim itself"
type EmbeddedStore struct {
	// Storage of its volume. Default: 1Gi.
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('100Mi'))",message="a control store needs room; give 100Mi or more"
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`

	// StorageClassName of its volume. Default: Kubernetes' own.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || !format.dns1123Subdomain().validate(self).hasValue()",message="no object can have this name; use lower-case letters, digits, '-' and '.', as the object itself does"
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// AccessModes of its volume. Default: ReadWriteOncePod, with which Kubernetes itself keeps a second head from it. A volume that other nodes can mount lets the head move when its node is lost.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=ReadWriteOncePod;ReadWriteOnce;ReadWriteMany
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || !('ReadWriteOncePod' in self)",message="a claim of ReadWriteOncePod has no other access mode; give it alone, or leave it out"
	// +listType=set
	// +optional
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`

	// ExistingClaim is a PersistentVolumeClaim beside the cluster that is used in place of one of its own, and is never deleted.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="the name of a claim must be a DNS-1123 subdomain; give the name of a claim beside the cluster"
	// +optional
	ExistingClaim string `json:"existingClaim,omitempty"`

	// Retain, if true, keeps the volume when the cluster is deleted. A later cluster of the same name goes on with what it holds.
	// +optional
	Retain bool `json:"retain,omitempty"`
}

// ControlStoreStatus is about the memory behind the head.
type ControlStoreStatus struct {
	// Session is the epoch in which the memory began that the cluster has now: the workers are of that epoch. It stays the same while heads come back.
	Session int64 `json:"session"`
	// Namespace is Ray's namespace in a Redis: the keys begin with RAY, the namespace and @.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// ClaimName is the PersistentVolumeClaim of a store that has a volume.
	// +optional
	ClaimName string `json:"claimName,omitempty"`
}
