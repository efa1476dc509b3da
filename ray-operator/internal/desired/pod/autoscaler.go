package pod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// What the autoscaler takes of a head's pod. The operator speaks to it on PortScale; its
// metrics are where Ray's dashboard looks for those of Ray's own autoscaler.
const (
	PortScale        = 6380
	PortScaleName    = "scale"
	PortScaleMetrics = 44217
)

// VariableAutoscaler is the variable by which Ray's head knows that what waits is told in
// the way that the autoscaler reads.
const VariableAutoscaler = "RAY_enable_autoscaler_v2"

// variablePodUID is the variable that tells the autoscaler which head it is beside.
const variablePodUID = "POD_UID"

// autoscalerUser is the operator's image's own; it matters where a template lets pods run as
// root, which the autoscaler never does.
const autoscalerUser = 65532

// Default size of the autoscaler's container: it keeps about 20 MiB, and the state of a
// cluster of thousands of workers takes as much again for a moment.
var (
	defaultScaleCPU    = resource.MustParse("50m")
	defaultScaleMemory = resource.MustParse("64Mi")
)

// Autoscaler is what an installation runs beside the heads of clusters with autoscaling.
type Autoscaler struct {
	// Image holds the program /autoscaler; empty: there is none to run. PullPolicy is when it
	// is pulled.
	Image      string
	PullPolicy corev1.PullPolicy
}

// Beside puts the autoscaler in front of all other containers of a head's pod that Head
// built, if its cluster has autoscaling, and gives the pod back. As a native sidecar it
// begins before Ray and ends after it. What the user says of pods is not said of this
// container: it gets none of the user's variables, and no credential but the cluster's token.
func (a Autoscaler) Beside(head *corev1.Pod, cluster *v1alpha1.ComputeCluster) *corev1.Pod {
	if cluster.Spec.Autoscaling == nil || a.Image == "" {
		return head
	}
	sidecar := corev1.Container{
		Name: v1alpha1.ContainerAutoscaler, Image: a.Image, ImagePullPolicy: a.PullPolicy,
		Command: []string{"/autoscaler"},
		Args: []string{
			fmt.Sprintf("--gcs-address=127.0.0.1:%d", PortGCS),
			fmt.Sprintf("--listen=:%d", PortScale),
			fmt.Sprintf("--metrics-listen=:%d", PortScaleMetrics),
			"--head=$(" + variablePodUID + ")",
		},
		Env: []corev1.EnvVar{fromPod(variablePodUID, "metadata.uid")},
		Ports: []corev1.ContainerPort{
			{Name: PortScaleName, ContainerPort: PortScale, Protocol: corev1.ProtocolTCP},
			{Name: "scale-metrics", ContainerPort: PortScaleMetrics, Protocol: corev1.ProtocolTCP},
		},
		Resources:                autoscalerResources(cluster),
		RestartPolicy:            new(corev1.ContainerRestartPolicyAlways),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          autoscalerSecurity(head.Spec.SecurityContext),
	}
	if TokenRequired(cluster) {
		sidecar.Args = append(sidecar.Args, "--token-file="+pathTokenFile)
		sidecar.VolumeMounts = []corev1.VolumeMount{tokenMount()}
	}
	head.Spec.InitContainers = append([]corev1.Container{sidecar}, head.Spec.InitContainers...)
	return head
}

// HasAutoscaler tells whether a head's pod was made with an autoscaler beside Ray.
func HasAutoscaler(head *corev1.Pod) bool {
	return slices.ContainsFunc(head.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1alpha1.ContainerAutoscaler })
}

// autoscalerResources are those that autoscaling's size asks for. Memory has a limit, because
// job code can reach the container's port.
func autoscalerResources(cluster *v1alpha1.ComputeCluster) corev1.ResourceRequirements {
	size := corev1.ResourceList{corev1.ResourceCPU: defaultScaleCPU, corev1.ResourceMemory: defaultScaleMemory}
	for name, quantity := range cluster.Spec.Autoscaling.Size {
		size[name] = quantity
	}
	return corev1.ResourceRequirements{Requests: size, Limits: corev1.ResourceList{corev1.ResourceMemory: size[corev1.ResourceMemory]}}
}

// autoscalerSecurity is what the pod security level "restricted" asks for, whatever the
// pod's own security context says, and a root file system that cannot be written.
func autoscalerSecurity(pod *corev1.PodSecurityContext) *corev1.SecurityContext {
	security := &corev1.SecurityContext{
		RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if pod != nil && pod.RunAsUser != nil && *pod.RunAsUser == 0 {
		security.RunAsUser = new(int64(autoscalerUser))
	}
	return security
}
