package job

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// firstWithDrain is the minor version of the first Ray 2 that lets work end when its node is told to.
const firstWithDrain = 58

// giveGrace gives the pods of a job's own cluster so long to end that processes of a gang have their grace there.
func giveGrace(spec *v1beta1.ComputeClusterSpec, grace time.Duration) {
	giveNodeGrace(&spec.Head.NodeSpec, spec.PodDefaults, grace)
	for i := range spec.WorkerGroups {
		node := &spec.WorkerGroups[i].NodeSpec
		giveNodeGrace(node, spec.PodDefaults, grace)
		if naming.IsRayBefore(spec.RayVersion, firstWithDrain) {
			awaitGang(pod.Ray(&corev1.Pod{Spec: node.Template.Spec}), grace+driverSlack)
		}
	}
}

// giveNodeGrace gives the pods of one template so long to end. What the user gives is no less than it was.
func giveNodeGrace(node *v1beta1.NodeSpec, defaults *v1beta1.PodDefaults, grace time.Duration) {
	if node.Template == nil {
		node.Template = &corev1.PodTemplateSpec{}
	}
	spec := &node.Template.Spec
	spec.TerminationGracePeriodSeconds = new(max(ptr.Deref(spec.TerminationGracePeriodSeconds, 0), int64((grace+slack)/time.Second)))
	if !slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == v1beta1.ContainerRay }) {
		spec.Containers = append([]corev1.Container{{Name: v1beta1.ContainerRay}}, spec.Containers...)
	}
	for i := range spec.Containers {
		if ray := &spec.Containers[i]; ray.Name == v1beta1.ContainerRay {
			giveDrain(ray, defaults, grace+driverSlack)
		}
	}
}

// giveDrain has Ray let work end for so long when its node is told to end, or for longer where the user says so.
func giveDrain(ray *corev1.Container, defaults *v1beta1.PodDefaults, least time.Duration) {
	var given string
	if defaults != nil {
		given = valueIn(defaults.Env)
	}
	given = cmp.Or(valueIn(ray.Env), given)
	if seconds, err := strconv.Atoi(given); err == nil && seconds >= int(least/time.Second) {
		return
	}
	ray.Env = slices.DeleteFunc(ray.Env, func(e corev1.EnvVar) bool { return e.Name == pod.VariableDrain })
	ray.Env = append(ray.Env, corev1.EnvVar{Name: pod.VariableDrain, Value: wholeSeconds(least)})
}

// valueIn returns the value that a list of variables has for Ray's drain.
func valueIn(env []corev1.EnvVar) string {
	at := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == pod.VariableDrain })
	if at < 0 {
		return ""
	}
	return env[at].Value
}

// gangIsThere is shell code that holds while a process of a gang is in the pod.
const gangIsThere = `grep -qsz '^HELIOSTAT_GANG=' /proc/[0-9]*/environ`

// awaitGang has a container wait for the processes of a gang before Ray is told to end, unless the user has something run there.
func awaitGang(ray *corev1.Container, most time.Duration) {
	if ray.Lifecycle != nil && ray.Lifecycle.PreStop != nil {
		return
	}
	if ray.Lifecycle == nil {
		ray.Lifecycle = &corev1.Lifecycle{}
	}
	wait := `n=0; while [ $n -lt ` + wholeSeconds(most) + ` ] && ` + gangIsThere + `; do sleep 1; n=$((n+1)); done`
	ray.Lifecycle.PreStop = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", wait}}}
}
