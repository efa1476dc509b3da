package view

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Trim takes out of an object what nobody reads here. Of thousands of pods, the start commands, variables, mounts and
// volumes are most of what would be held.
func Trim(object Object) {
	object.SetManagedFields(nil)
	pod, is := object.(*corev1.Pod)
	if !is {
		return
	}
	maps.DeleteFunc(pod.Annotations, func(key, _ string) bool { return !strings.Contains(key, "heliostat.dev/") })
	pod.Spec = corev1.PodSpec{
		NodeName: pod.Spec.NodeName, SchedulerName: pod.Spec.SchedulerName, PriorityClassName: pod.Spec.PriorityClassName,
		ReadinessGates: pod.Spec.ReadinessGates, SchedulingGates: pod.Spec.SchedulingGates,
		InitContainers: trimContainers(pod.Spec.InitContainers), Containers: trimContainers(pod.Spec.Containers),
	}
	status := pod.Status
	pod.Status = corev1.PodStatus{
		Phase: status.Phase, Reason: status.Reason, Message: status.Message, PodIP: status.PodIP, StartTime: status.StartTime,
		Conditions: status.Conditions, NominatedNodeName: status.NominatedNodeName,
		InitContainerStatuses: trimStatuses(status.InitContainerStatuses), ContainerStatuses: trimStatuses(status.ContainerStatuses),
	}
}

func trimContainers(all []corev1.Container) []corev1.Container {
	kept := make([]corev1.Container, 0, len(all))
	for i := range all {
		kept = append(kept, corev1.Container{
			Name: all[i].Name, Image: all[i].Image, RestartPolicy: all[i].RestartPolicy, Resources: all[i].Resources,
		})
	}
	return kept
}

func trimStatuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	kept := make([]corev1.ContainerStatus, 0, len(all))
	for i := range all {
		kept = append(kept, corev1.ContainerStatus{
			Name: all[i].Name, Image: all[i].Image, State: all[i].State, LastTerminationState: all[i].LastTerminationState,
			Ready: all[i].Ready, Started: all[i].Started, RestartCount: all[i].RestartCount,
		})
	}
	return kept
}
