package pod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// podDefaults lays the cluster's podDefaults under the template: what the template says
// of the same name or key stays, lists of both are joined.
func podDefaults(d *draft) {
	given := d.cluster.Spec.PodDefaults
	if given == nil {
		return
	}
	pod, from := d.pod, given.DeepCopy()
	pod.Labels = merged(from.Labels, pod.Labels)
	pod.Annotations = merged(from.Annotations, pod.Annotations)
	if len(from.NodeSelector) > 0 {
		pod.Spec.NodeSelector = merged(from.NodeSelector, pod.Spec.NodeSelector)
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, from.Tolerations...)
	for _, secret := range from.ImagePullSecrets {
		if !slices.Contains(pod.Spec.ImagePullSecrets, secret) {
			pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, secret)
		}
	}
	fill(&pod.Spec.ServiceAccountName, from.ServiceAccountName)
	fill(&pod.Spec.PriorityClassName, from.PriorityClassName)
	rayDefaults(d.ray, from)
}

// rayDefaults are the variables of the Ray container. The defaults' come first, so
// that the template's own can refer to them, and win where both come from elsewhere.
func rayDefaults(ray *corev1.Container, from *v1beta1.PodDefaults) {
	env := slices.DeleteFunc(from.Env, func(variable corev1.EnvVar) bool { return hasVariable(ray, variable.Name) })
	ray.Env = append(env, ray.Env...)
	ray.EnvFrom = append(from.EnvFrom, ray.EnvFrom...)
}

func hasVariable(container *corev1.Container, name string) bool {
	return slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == name })
}

// awaySeconds is how long a pod stays on a node that is not ready or does not answer.
// Kubernetes' own default of 300 keeps a cluster short of workers for five minutes
// when a node is lost; below a minute a node that merely reboots would lose its pods.
const awaySeconds = 60

// tolerations keep pods on a node that went silent for awaySeconds, unless the user
// says for how long.
func tolerations(d *draft) { d.pod.Spec.Tolerations = Staying(d.pod.Spec.Tolerations) }

// Staying are tolerations with which a pod leaves a lost node as soon as a head does, unless
// they say themselves how long it stays.
func Staying(tolerations []corev1.Toleration) []corev1.Toleration {
	staying := slices.Clone(tolerations)
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		said := slices.ContainsFunc(staying, func(t corev1.Toleration) bool {
			return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if !said {
			staying = append(staying, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(awaySeconds)),
			})
		}
	}
	return staying
}

// security asks for what the pod security level "restricted" asks for, wherever the
// user says nothing else, and keeps Kubernetes' credentials out of pods that run job
// code.
func security(d *draft) {
	spec := &d.pod.Spec
	fillPointer(&spec.AutomountServiceAccountToken, false)
	fillPointer(&spec.SecurityContext, corev1.PodSecurityContext{})
	asRoot := spec.SecurityContext.RunAsUser != nil && *spec.SecurityContext.RunAsUser == 0
	forced := spec.SecurityContext.RunAsNonRoot == nil && !asRoot
	if forced {
		fillPointer(&spec.SecurityContext.RunAsNonRoot, true)
	}
	fillPointer(&spec.SecurityContext.SeccompProfile, corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
	eachContainer(spec, func(container *corev1.Container) {
		fillPointer(&container.SecurityContext, corev1.SecurityContext{})
		confine(container.SecurityContext)
		if user := container.SecurityContext.RunAsUser; forced && user != nil && *user == 0 {
			fillPointer(&container.SecurityContext.RunAsNonRoot, false) // or the kubelet would not start what the user asks for
		}
	})
}

// confine takes from a container what nobody gave it. One that asks for privileges
// keeps them: Kubernetes refuses privileges whose escalation is forbidden.
func confine(context *corev1.SecurityContext) {
	if privileged(context) {
		return
	}
	fillPointer(&context.AllowPrivilegeEscalation, false)
	fillPointer(&context.Capabilities, corev1.Capabilities{Drop: []corev1.Capability{"ALL"}})
}

func privileged(context *corev1.SecurityContext) bool {
	if context.Privileged != nil && *context.Privileged {
		return true
	}
	return context.Capabilities != nil && slices.ContainsFunc(context.Capabilities.Add, func(added corev1.Capability) bool {
		return strings.TrimPrefix(string(added), "CAP_") == "SYS_ADMIN"
	})
}

// lastWords makes every container's last log lines its termination message where it
// leaves none: the operator may not read logs, and says by them why a pod fails.
func lastWords(d *draft) {
	eachContainer(&d.pod.Spec, func(container *corev1.Container) {
		fill(&container.TerminationMessagePolicy, corev1.TerminationMessageFallbackToLogsOnError)
	})
}

// eachContainer visits the init containers, sidecars among them, and the containers.
func eachContainer(spec *corev1.PodSpec, visit func(*corev1.Container)) {
	for i := range spec.InitContainers {
		visit(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		visit(&spec.Containers[i])
	}
}
