package job

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/pack"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

const (
	// largestMount is what a ConfigMap holds.
	largestMount = 1 << 20
	// volume is the name of the volume, and mountPath where it is mounted.
	volume, mountPath = "working-dir", "/etc/heliostat-working-dir"
	archiveKey        = "files.zip"
	mountedURI        = "file://" + mountPath + "/" + archiveKey
	// prefix holds all files in the archive: of an archive from a URI, Ray takes a single outermost directory away.
	prefix = "files"
)

// mounted are files in a ConfigMap of the job, which each pod of its cluster mounts.
type mounted struct{ files *corev1.ConfigMap }

func newMounted(packed *pack.Package) *mounted {
	return &mounted{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + rand.String(10)},
		BinaryData: map[string][]byte{archiveKey: packed.Archive}, Immutable: new(true),
	}}
}

// mount has all pods of a cluster mount the files.
func (m *mounted) mount(spec *v1beta1.ComputeClusterSpec) {
	m.mountIn(&spec.Head.NodeSpec)
	for i := range spec.WorkerGroups {
		m.mountIn(&spec.WorkerGroups[i].NodeSpec)
	}
}

func (m *mounted) mountIn(node *v1beta1.NodeSpec) {
	if node.Template == nil {
		node.Template = &corev1.PodTemplateSpec{}
	}
	pod := &node.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: m.files.Name}}}})
	at := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == v1beta1.ContainerRay })
	if at < 0 {
		pod.Containers, at = append(pod.Containers, corev1.Container{Name: v1beta1.ContainerRay}), len(pod.Containers)
	}
	ray := &pod.Containers[at]
	ray.VolumeMounts = append(ray.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: mountPath, ReadOnly: true})
}

// prepare asks the API server whether it would take the files, so that a refusal comes before there is a job.
func (m *mounted) prepare(ctx context.Context, objects *kube.Objects, job *v1beta1.ClusterJob) error {
	m.files.Namespace = job.Namespace
	return objects.CreateFiles(ctx, m.files.DeepCopy(), true)
}

// settle creates the ConfigMap, which goes with the job. Without it the job could not run, so it is deleted again.
func (m *mounted) settle(ctx context.Context, objects *kube.Objects, job *v1beta1.ClusterJob) error {
	m.files.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: kube.Job.Name,
		Name: job.Name, UID: job.UID}}
	ctx = context.WithoutCancel(ctx)
	err := objects.CreateFiles(ctx, m.files, false)
	if err == nil {
		return nil
	}
	if failed := objects.Remove(ctx, job, false); failed != nil {
		return fmt.Errorf("%w; delete %s, which cannot run: %w", err, kube.TargetOf(job), failed)
	}
	return err
}

// hold does nothing: a ConfigMap stays.
func (m *mounted) hold(context.Context) {}
