package pod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// autoscalerSize is the default size of the autoscaler's container: it keeps about 20 MiB, and the state of a
// cluster of thousands of workers takes as much again for a moment.
var autoscalerSize = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")}

// autoscaler returns the container beside the head of a cluster with autoscaling.
func (o OperatorImage) autoscaler(cluster *v1beta1.ComputeCluster, security *corev1.SecurityContext) corev1.Container {
	wanted := cluster.Spec.Autoscaling
	container := o.container(v1beta1.ContainerAutoscaler, Over(autoscalerSize, wanted.Size), laidOver(wanted.SecurityContext, security))
	if wanted.Image != "" {
		container.Image = wanted.Image
	}
	container.Command = []string{"/autoscaler"}
	container.Args = []string{
		fmt.Sprintf("--gcs-address=127.0.0.1:%d", naming.PortGCS),
		fmt.Sprintf("--listen=:%d", naming.PortScale),
		fmt.Sprintf("--metrics-listen=:%d", naming.PortScaleMetrics),
		"--head=$(" + naming.VariablePodUID + ")",
	}
	container.Env = append([]corev1.EnvVar{fromPod(naming.VariablePodUID, "metadata.uid")}, wanted.DeepCopy().Env...)
	container.Ports = []corev1.ContainerPort{
		{Name: naming.PortScaleName, ContainerPort: naming.PortScale, Protocol: corev1.ProtocolTCP},
		{Name: "scale-metrics", ContainerPort: naming.PortScaleMetrics, Protocol: corev1.ProtocolTCP},
	}
	container.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	if TokenRequired(cluster) {
		container.Args = append(container.Args, "--token-file="+pathTokenFile)
		container.VolumeMounts = append(container.VolumeMounts, tokenMount())
	}
	if naming.EncryptionRequired(cluster) {
		container.Args = append(container.Args, "--certificates="+naming.PathCertificates)
		container.VolumeMounts = append(container.VolumeMounts, CertificatesMount())
	}
	return container
}

// laidOver returns a security context with what it leaves open taken from another one.
func laidOver(over, under *corev1.SecurityContext) *corev1.SecurityContext {
	if over == nil {
		return under
	}
	all, rest := over.DeepCopy(), under.DeepCopy()
	if all.RunAsUser == nil {
		all.RunAsUser = rest.RunAsUser
	}
	fillPointer(&all.RunAsNonRoot, *rest.RunAsNonRoot)
	fillPointer(&all.AllowPrivilegeEscalation, *rest.AllowPrivilegeEscalation)
	fillPointer(&all.ReadOnlyRootFilesystem, *rest.ReadOnlyRootFilesystem)
	fillPointer(&all.Capabilities, *rest.Capabilities)
	fillPointer(&all.SeccompProfile, *rest.SeccompProfile)
	return all
}

// HasAutoscaler reports whether a head's pod was made with an autoscaler beside Ray.
func HasAutoscaler(head *corev1.Pod) bool {
	return slices.ContainsFunc(head.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1beta1.ContainerAutoscaler })
}
