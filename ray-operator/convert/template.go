package convert

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// takeTemplate keeps the pod template, and takes out what the operator does itself.
func (n *nodePart) takeTemplate() {
	template, path := n.from.Template.DeepCopy(), n.at+".template"
	n.made.Template = template
	n.takeTemplateMetadata(path+".metadata", &template.ObjectMeta)
	pod, path := &template.Spec, path+".spec"
	if len(pod.Containers) == 0 {
		n.refuse(path+".containers", "ray.io runs Ray in the first container, and the template has no container; add one")
		return
	}
	n.takeContainer(path+".containers[0]", pod)
	n.takeInits(path, pod)
	sharedPart{n}.takeShared(path, pod)
	n.renameVolumes(path, pod)
	if pod.RestartPolicy != "" && pod.RestartPolicy != corev1.RestartPolicyAlways {
		n.drop(path+".restartPolicy", "Ray's pods are restarted always, and replaced where that does not help")
		pod.RestartPolicy = ""
	}
	if pod.ServiceAccountName != "" && pod.AutomountServiceAccountToken == nil {
		n.change(path+".serviceAccountName", n.to+".template", "pods get no token of their service account; "+
			"set automountServiceAccountToken to true where programs call Kubernetes")
	}
	n.takeSchedulerName(path, pod)
}

// ownLabels are those that every pod gets from the operator.
var ownLabels = []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"}

func (n *nodePart) takeTemplateMetadata(path string, meta *metav1.ObjectMeta) {
	given := meta.Name != "" || meta.GenerateName != "" || meta.Namespace != "" ||
		len(meta.Finalizers)+len(meta.OwnerReferences) > 0
	if given {
		n.drop(path, "the operator names pods; of the metadata only labels and annotations are taken")
	}
	for _, key := range slices.Sorted(maps.Keys(meta.Labels)) {
		if slices.Contains(ownLabels, key) || strings.HasPrefix(key, v1beta1.GroupVersion.Group+"/") {
			n.drop(path+".labels["+key+"]", "the operator sets this label on every pod; choose another key if yours is "+
				"selected by it")
			delete(meta.Labels, key)
		}
	}
	if len(meta.Labels) == 0 {
		meta.Labels = nil
	}
	*meta = metav1.ObjectMeta{Labels: meta.Labels, Annotations: meta.Annotations}
}

// takeContainer makes the first container the one that is named ray.
func (n *nodePart) takeContainer(path string, pod *corev1.PodSpec) {
	ray := &pod.Containers[0]
	taken := func(c corev1.Container) bool { return c.Name == v1beta1.ContainerRay }
	if slices.ContainsFunc(pod.Containers[1:], taken) || slices.ContainsFunc(pod.InitContainers, taken) {
		n.refuse(path+".name", "the container that runs Ray is named ray, and another has the name; rename that")
	}
	ray.Name = v1beta1.ContainerRay
	n.image, ray.Image = ray.Image, ""
	if len(ray.Command)+len(ray.Args) > 0 {
		n.refuse(path+".command", "the operator starts Ray, so that command and args have no place; do what must come "+
			"before in an init container")
	}
	n.takePorts(path+".ports", ray)
	n.takePortNames(path+".ports", ray)
	variables := variablesPart{n}
	variables.takeCertificates(strings.TrimSuffix(path, ".containers[0]"), pod)
	variables.takeVariables(path+".env", ray)
	if stops := ray.Lifecycle; stops != nil && stops.PreStop != nil && stops.PreStop.Exec != nil {
		if strings.Contains(strings.Join(stops.PreStop.Exec.Command, " "), "ray stop") {
			n.drop(path+".lifecycle.preStop", "pods that go are drained through Ray, which ray stop would cut short")
			stops.PreStop = nil
		}
		if *stops == (corev1.Lifecycle{}) {
			ray.Lifecycle = nil
		}
	}
	if len(ray.Resources.Limits)+len(ray.Resources.Requests) == 0 {
		n.change(path+".resources", n.to+".size", "without resources Ray gets 1 CPU and "+n.defaultMemory()+"; set resources or size")
	}
}

// takePorts takes out Ray's own ports, which the operator adds. Ports of the host stay, under the operator's names.
func (n *nodePart) takePorts(path string, ray *corev1.Container) {
	ours, workers := validate.RayPorts()
	ours = append(ours, workers...) // a worker with a copy of the head's list does no harm
	before := len(ray.Ports)
	ray.Ports = slices.DeleteFunc(ray.Ports, func(p corev1.ContainerPort) bool {
		return slices.Contains(ours, p.ContainerPort) && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP) &&
			p.HostPort == 0
	})
	if len(ray.Ports) < before {
		n.drop(path, "the operator adds Ray's own ports, named gcs, dashboard, client, metrics and serve")
	}
	if len(ray.Ports) == 0 {
		ray.Ports = nil
	}
}

// takeInits takes out init containers that wait for the head by KubeRay's variables.
func (n *nodePart) takeInits(path string, pod *corev1.PodSpec) {
	waits := func(c corev1.Container) bool {
		text := strings.Join(slices.Concat(c.Command, c.Args), " ")
		return strings.Contains(text, "RAY_IP") || strings.Contains(text, "ray health-check")
	}
	for _, c := range pod.InitContainers {
		if waits(c) {
			n.drop(fmt.Sprintf("%s.initContainers[%d]", path, n.indexOfInit(c.Name)), "workers start beside the head, and join it when it listens")
		}
	}
	if pod.InitContainers = slices.DeleteFunc(pod.InitContainers, waits); len(pod.InitContainers) == 0 {
		pod.InitContainers = nil
	}
}

// takeSchedulerName is about templates that name a gang scheduler, which spec.scheduler names for all.
func (n *nodePart) takeSchedulerName(path string, pod *corev1.PodSpec) {
	if n.clusterPart.made.Scheduler == nil || pod.SchedulerName == "" {
		return
	}
	n.adjust(path+".schedulerName", "scheduler.schedulerName", "spec.scheduler names the scheduler for all pods")
	n.clusterPart.made.Scheduler.SchedulerName = pod.SchedulerName
	pod.SchedulerName = ""
}

// isBare reports whether a template says nothing.
func isBare(template *corev1.PodTemplateSpec) bool {
	return reflect.DeepEqual(*template, corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: v1beta1.ContainerRay}}},
	})
}
