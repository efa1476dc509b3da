package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// operatorUser is the operator's image's own; it matters where a template lets pods run as root, which containers of the
// operator never do.
const operatorUser = 65532

// OperatorImage is the image of the operator's programs that run in pods of clusters.
type OperatorImage struct {
	// Image holds the programs /autoscaler and /encryption; empty: there are none to run. PullPolicy is when it is pulled.
	Image      string
	PullPolicy corev1.PullPolicy
}

// Complete puts the operator's containers in front of all other init containers of a pod that Head or Worker built, and
// returns the pod: what encryption needs, and the autoscaler beside the head of a cluster with autoscaling. As native
// sidecars those that go on begin before Ray and end after it. What the user says of pods is not said of these containers:
// they get none of the user's variables, and no credential but the cluster's token and certificate.
func (o OperatorImage) Complete(made *corev1.Pod, cluster *v1beta1.ComputeCluster) *corev1.Pod {
	isHead := made.Labels[v1beta1.LabelRole] == v1beta1.RoleHead
	made.Spec.InitContainers = slices.Concat(o.containers(cluster, isHead, made.Spec.SecurityContext), made.Spec.InitContainers)
	return made
}

// containers are the operator's in a pod of a cluster, in their order.
func (o OperatorImage) containers(cluster *v1beta1.ComputeCluster, isHead bool, pod *corev1.PodSecurityContext) []corev1.Container {
	var added []corev1.Container
	security := restricted(pod)
	switch {
	case naming.EncryptionRequired(cluster) && isHead:
		size := cluster.Spec.Network.EncryptionSize
		added = append(added, o.Certificates(size, security, namesOfHead(cluster)...), o.front(size, security))
	case naming.EncryptionRequired(cluster):
		added = append(added, o.Certificates(cluster.Spec.Network.EncryptionSize, security))
	}
	if wanted := cluster.Spec.Autoscaling; isHead && wanted != nil && (o.Image != "" || wanted.Image != "") {
		added = append(added, o.autoscaler(cluster, security))
	}
	return added
}

// container returns what all containers of the operator have. Memory has a limit, because job code can reach their ports.
func (o OperatorImage) container(name string, size corev1.ResourceList, security *corev1.SecurityContext) corev1.Container {
	return corev1.Container{
		Name: name, Image: o.Image, ImagePullPolicy: o.PullPolicy,
		Resources:                Sized(size),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          security.DeepCopy(),
	}
}

// restricted is what the pod security level "restricted" asks for, whatever the pod's own security context says, and a
// root file system that cannot be written.
func restricted(pod *corev1.PodSecurityContext) *corev1.SecurityContext {
	security := &corev1.SecurityContext{
		RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if pod != nil && pod.RunAsUser != nil && *pod.RunAsUser == 0 {
		security.RunAsUser = new(int64(operatorUser))
	}
	return security
}
