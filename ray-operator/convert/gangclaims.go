package convert

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/crdcheck"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// shareClaims makes a claim that the pods of all roles mount alike a shared volume of the cluster. One that a single pod mounts stays in
// its template, as the head would mount it too.
func (g *gangJob) shareClaims() {
	replicas := int32(0)
	for _, role := range g.roles {
		replicas += role.replicas
	}
	if replicas < 2 || g.roles[0].group.Template == nil {
		return
	}
	for _, volume := range slices.Clone(g.roles[0].group.Template.Spec.Volumes) {
		shared, is := sharedBy(g.roles[0].group.Template, volume.Name)
		isEverywhere := is && !slices.ContainsFunc(g.roles, func(r *gangRole) bool {
			if r.group.Template == nil {
				return true
			}
			its, has := sharedBy(r.group.Template, volume.Name)
			return !has || its != shared
		})
		if !isEverywhere || !shared.isGood() {
			continue
		}
		g.cluster.made.SharedVolumes = append(g.cluster.made.SharedVolumes, shared.volume())
		for _, role := range g.roles {
			dropVolume(role, volume.Name)
		}
		g.adjust(g.roles[0].templateAt+".spec.volumes", "clusterTemplate.spec.sharedVolumes", fmt.Sprintf("head and workers mount the claim %s at %s, "+
			"which needs an access mode for several nodes", shared.claim, shared.path))
	}
}

// sharedClaim is a claim as each pod mounts it.
type sharedClaim struct {
	name, claim, path string
	isReadOnly        bool
}

// sharedBy returns a volume of a template as a shared one. It is none where it is no claim, or where anything but one plain mount of the
// Ray container uses it, or another volume of the pod has the claim too: pods with one claim in two volumes may never start.
func sharedBy(template *corev1.PodTemplateSpec, name string) (sharedClaim, bool) {
	pod := &template.Spec
	at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if at < 0 || pod.Volumes[at].PersistentVolumeClaim == nil {
		return sharedClaim{}, false
	}
	var mounts []corev1.VolumeMount
	isOfOthers := false
	for i, container := range slices.Concat(pod.Containers, pod.InitContainers) {
		for _, mount := range container.VolumeMounts {
			if mount.Name == name {
				mounts = append(mounts, mount)
				isOfOthers = isOfOthers || i > 0
			}
		}
	}
	if len(mounts) != 1 || isOfOthers {
		return sharedClaim{}, false
	}
	claim := pod.Volumes[at].PersistentVolumeClaim
	for i, other := range pod.Volumes {
		if i != at && other.PersistentVolumeClaim != nil && other.PersistentVolumeClaim.ClaimName == claim.ClaimName {
			return sharedClaim{}, false
		}
	}
	plain := corev1.VolumeMount{Name: name, MountPath: mounts[0].MountPath, ReadOnly: mounts[0].ReadOnly}
	return sharedClaim{name: name, claim: claim.ClaimName, path: plain.MountPath, isReadOnly: plain.ReadOnly || claim.ReadOnly},
		reflect.DeepEqual(mounts[0], plain)
}

// volume is the shared volume of a cluster.
func (s sharedClaim) volume() v1beta1.SharedVolume {
	return v1beta1.SharedVolume{Name: s.name, MountPath: s.path, ClaimName: s.claim, ReadOnly: ifTrue(s.isReadOnly)}
}

// isGood reports whether the rules take it: some paths may be mounted by a template alone.
func (s sharedClaim) isGood() bool {
	answer, err := crdcheck.Create("ComputeCluster", plain(&v1beta1.ComputeCluster{
		TypeMeta: typeMeta("ComputeCluster"), ObjectMeta: metav1.ObjectMeta{Name: "some"},
		Spec: v1beta1.ComputeClusterSpec{RayVersion: naming.NewestRay, SharedVolumes: []v1beta1.SharedVolume{s.volume()}},
	}).Object)
	return err == nil && len(answer.Findings) == 0
}

// dropVolume takes a volume and its mount out of the template of a role.
func dropVolume(r *gangRole, name string) {
	ray := &r.group.Template.Spec.Containers[0]
	ray.VolumeMounts = slices.DeleteFunc(ray.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name })
	dropUnmounted(&r.group.Template.Spec, name)
	if isBare(r.group.Template) {
		r.group.Template = nil
	}
}
