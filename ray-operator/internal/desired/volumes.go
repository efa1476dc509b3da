package desired

import (
	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// SharedClaim is the claim of a cluster's shared volume, nil where the user names one.
func SharedClaim(cluster *v1beta1.ComputeCluster, volume *v1beta1.SharedVolume) *corev1.PersistentVolumeClaim {
	if volume.Claim == nil {
		return nil
	}
	return sharedClaim(owned(cluster, naming.SharedClaim(cluster.Name, volume.Name)), volume)
}

// JobClaims are the claims of the shared volumes of a job's clusters, which belong to the job. Their names hold its UID: a later job
// of the same name has others.
func JobClaims(job *v1beta1.ClusterJob) []*corev1.PersistentVolumeClaim {
	if job.Spec.ClusterTemplate == nil {
		return nil
	}
	var claims []*corev1.PersistentVolumeClaim
	for i := range job.Spec.ClusterTemplate.Spec.SharedVolumes {
		volume := &job.Spec.ClusterTemplate.Spec.SharedVolumes[i]
		if volume.Claim == nil {
			continue
		}
		meta := metav1.ObjectMeta{
			Name: naming.JobClaim(job.UID, volume.Name), Namespace: job.Namespace,
			Labels:          map[string]string{"app.kubernetes.io/managed-by": "heliostat", v1beta1.LabelJob: job.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, v1beta1.GroupVersion.WithKind("ClusterJob"))},
		}
		claims = append(claims, sharedClaim(meta, volume))
	}
	return claims
}

// OfJobClaims has the shared volumes of a job's cluster use the claims of the job.
func OfJobClaims(cluster *v1beta1.ComputeCluster, job *v1beta1.ClusterJob) {
	for i := range cluster.Spec.SharedVolumes {
		if volume := &cluster.Spec.SharedVolumes[i]; volume.Claim != nil {
			volume.Claim, volume.ClaimName = nil, naming.JobClaim(job.UID, volume.Name)
		}
	}
}

// sharedClaim is a claim that several nodes can mount at once. One that is retained has no owner: nothing takes it along.
func sharedClaim(meta metav1.ObjectMeta, volume *v1beta1.SharedVolume) *corev1.PersistentVolumeClaim {
	meta.Labels[v1beta1.LabelVolume] = volume.Name
	meta.Annotations = map[string]string{v1beta1.AnnotationVolumeOwner: string(meta.OwnerReferences[0].UID)}
	if ptr.Deref(volume.Claim.Retain, false) {
		meta.OwnerReferences = nil
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
	}}
	if class := volume.Claim.StorageClassName; class != nil {
		claim.Spec.StorageClassName = new(*class)
	}
	if storage := volume.Claim.Storage; storage != nil { // the schema requires it
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: storage.DeepCopy()}
	}
	return claim
}
