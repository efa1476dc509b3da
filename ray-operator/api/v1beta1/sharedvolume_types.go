package v1beta1

import "k8s.io/apimachinery/pkg/api/resource"

// SharedVolume is a volume that every pod of a cluster mounts in its Ray container.
//
// +kubebuilder:validation:XValidation:rule="has(self.claimName) != has(self.claim)",message="a shared volume must have exactly one claim; set one of claimName and claim"
// +heliostat:rule=shared-volume-claim
// +kubebuilder:validation:XValidation:rule="!has(self.claim) || !has(self.readOnly) || !self.readOnly",message="readOnly must not be set with claim, because nothing could write to the new volume; use claimName, or leave readOnly out",fieldPath=".readOnly"
// +heliostat:rule=shared-volume-read-only
type SharedVolume struct {
	// name of the shared volume, unique in the cluster. The pods have it as volume shared-NAME.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a shared volume must be lower-case letters, digits and '-', starting and ending with a letter or digit; choose such a name"
	// +heliostat:rule=shared-volume-name
	// +required
	Name string `json:"name,omitempty"`

	// mountPath is where the Ray containers mount it: an absolute path, and not one of Ray's or of the system.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(/[^/:[:cntrl:]]+)+$') && !self.matches('/[.][.]?(/|$)')",message="mountPath must be an absolute path without ':', '//', '.', '..', control characters and '/' at its end; write it like /checkpoints"
	// +heliostat:rule=shared-volume-path
	// +kubebuilder:validation:XValidation:rule="!self.matches('^/(bin|dev|etc|home/ray/anaconda3|lib|lib64|proc|root|sbin|sys|tmp/(ray|home|heliostat-[^/]*)|usr|(var/)?run/secrets|var/lib/heliostat)(/|$)') && !(self in ['/home', '/home/ray', '/run', '/tmp', '/var', '/var/lib', '/var/run'])",message="mountPath must not hide files of Ray, of the operator or of the system; use a path of its own, such as /checkpoints or /home/ray/data"
	// +heliostat:rule=shared-volume-path-own
	// +required
	MountPath string `json:"mountPath,omitempty"`

	// readOnly mounts it so that no pod of the cluster can write to it.
	// +optional
	ReadOnly *bool `json:"readOnly,omitempty"`

	// claimName is a PersistentVolumeClaim in the same namespace. It needs access mode ReadWriteMany, or ReadOnlyMany with readOnly, if the cluster has worker groups. It is never changed or deleted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="the name must be a DNS-1123 subdomain; use lower-case letters, digits, '-' and '.'"
	// +heliostat:rule=object-name
	// +optional
	ClaimName string `json:"claimName,omitempty"`

	// claim is a PersistentVolumeClaim that the operator makes. It belongs to the cluster. In the clusterTemplate of a job it belongs to the job, and each cluster of the job uses it.
	// +optional
	Claim *SharedVolumeClaim `json:"claim,omitempty"`
}

// SharedVolumeClaim describes a PersistentVolumeClaim with access mode ReadWriteMany that the operator makes.
//
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="storageClassName of a shared volume is immutable; add a shared volume with another name, and copy the files",fieldPath=".storageClassName"
// +heliostat:rule=shared-volume-class-fixed
type SharedVolumeClaim struct {
	// storage is the least size of the volume. A higher value makes the claim grow, if the storage class allows expansion. A claim never shrinks: a value below its size has no effect on it, and takes back a growth that was refused.
	// +kubebuilder:validation:XValidation:rule="sign(quantity(string(self))) > 0",message="storage of a shared volume must be above 0; give a size such as 10Gi"
	// +heliostat:rule=shared-volume-storage
	// +required
	Storage *resource.Quantity `json:"storage,omitempty"`

	// storageClassName is a class whose volumes several nodes can mount at once. Immutable. Default: the default class of the Kubernetes cluster.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || !format.dns1123Subdomain().validate(self).hasValue()",message="the name must be a DNS-1123 subdomain; use lower-case letters, digits, '-' and '.'"
	// +heliostat:rule=object-name
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// retain keeps the claim when its owner is deleted. It may be set at any time before, and unsetting it has no effect on a claim that is there. Name the claim in claimName to use it again.
	// +optional
	Retain *bool `json:"retain,omitempty"`
}
