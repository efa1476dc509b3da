package view

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Bounds of what is held of one object that its author writes.
const (
	// maxHeldLabels is how many bytes the labels have. Kubernetes bounds each label, but not their number.
	maxHeldLabels = 4 << 10
	maxHeldOwner  = 1 << 10
)

// Trim leaves of an object what lists, feeds and explanations read, and drops the rest: a field that is not named here is
// not held. An object of 1 MiB would else take as much memory of the server for as long as it exists.
func Trim(object Object) {
	trimMeta(object)
	switch one := object.(type) {
	case *v1beta1.ComputeCluster:
		trimCluster(one)
	case *v1beta1.ClusterJob:
		trimJob(one)
	case *v1beta1.ClusterJobSchedule:
		trimSchedule(one)
	case *v1beta1.ClusterService:
		trimService(one)
	case *corev1.Pod:
		trimPod(one)
	}
}

// heldAnnotations are those that are read.
var heldAnnotations = []string{
	v1beta1.AnnotationOwner, v1beta1.AnnotationRevisionCluster, // of our kinds
	v1beta1.AnnotationToken, v1beta1.AnnotationEncryption, // of pods
}

func trimMeta(object Object) {
	held := metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), CreationTimestamp: object.GetCreationTimestamp(),
		DeletionTimestamp: object.GetDeletionTimestamp(), DeletionGracePeriodSeconds: object.GetDeletionGracePeriodSeconds(),
		Labels: trimLabels(object.GetLabels()),
	}
	for _, key := range heldAnnotations {
		if value, is := object.GetAnnotations()[key]; is {
			if held.Annotations == nil {
				held.Annotations = map[string]string{}
			}
			held.Annotations[key] = strings.ToValidUTF8(value[:min(len(value), maxHeldOwner)], "")
		}
	}
	if owner := metav1.GetControllerOf(object); owner != nil {
		held.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if of, is := object.(metav1.ObjectMetaAccessor); is {
		if whole, is := of.GetObjectMeta().(*metav1.ObjectMeta); is {
			*whole = held
		}
	}
}

// trimLabels returns labels up to maxHeldLabels: ours first, then those of users, in the order of their keys.
func trimLabels(all map[string]string) map[string]string {
	size := 0
	for key, value := range all {
		size += len(key) + len(value)
	}
	if size <= maxHeldLabels {
		return all
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		if isOurs(a) != isOurs(b) {
			return map[bool]int{true: -1, false: 1}[isOurs(a)]
		}
		return strings.Compare(a, b)
	})
	held, size := map[string]string{}, 0
	for _, key := range keys {
		if size += len(key) + len(all[key]); size > maxHeldLabels {
			break
		}
		held[key] = all[key]
	}
	return held
}

// isOurs reports whether a key of a label is of our domain.
func isOurs(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == v1beta1.GroupVersion.Group || strings.HasSuffix(domain, "."+v1beta1.GroupVersion.Group)
}

func trimCluster(one *v1beta1.ComputeCluster) {
	spec, status := &one.Spec, &one.Status
	held := v1beta1.ComputeClusterSpec{Suspend: spec.Suspend, ManagedBy: spec.ManagedBy, Authentication: spec.Authentication}
	if spec.ControlStore != nil { // that there is one
		held.ControlStore = &v1beta1.ControlStore{}
	}
	if len(spec.WorkerGroups) > 0 { // that there are some
		held.WorkerGroups = []v1beta1.WorkerGroup{{Name: spec.WorkerGroups[0].Name}}
	}
	one.Spec = held
	one.Status = v1beta1.ComputeClusterStatus{
		Phase: status.Phase, Conditions: status.Conditions, Epoch: status.Epoch, Head: status.Head, Groups: status.Groups,
	}
}

func trimJob(one *v1beta1.ClusterJob) {
	status := &one.Status
	gang, hasTrials := one.Spec.Gang, one.Spec.Tune != nil
	one.Spec = v1beta1.ClusterJobSpec{ClusterRef: one.Spec.ClusterRef, ManagedBy: one.Spec.ManagedBy}
	if gang != nil { // it is only read which processes there are
		one.Spec.Gang = &v1beta1.Gang{}
		for _, role := range gang.Roles {
			one.Spec.Gang.Roles = append(one.Spec.Gang.Roles, v1beta1.GangRole{
				Name: role.Name, Replicas: role.Replicas, ProcessesPerReplica: role.ProcessesPerReplica, Start: role.Start,
			})
		}
	}
	if hasTrials {
		one.Spec.Tune = &v1beta1.Tune{} // it is only read whether there is one
	}
	one.Status = v1beta1.ClusterJobStatus{
		Phase: status.Phase, Conditions: status.Conditions, ClusterName: status.ClusterName, OwnCluster: status.OwnCluster,
		Attempt: status.Attempt, Attempts: status.Attempts, Gang: status.Gang, Tune: status.Tune,
		StartTime: status.StartTime, EndTime: status.EndTime,
	}
}

func trimSchedule(one *v1beta1.ClusterJobSchedule) {
	status := &one.Status
	one.Spec = v1beta1.ClusterJobScheduleSpec{}
	one.Status = v1beta1.ClusterJobScheduleStatus{
		Conditions: status.Conditions, ActiveJobs: status.ActiveJobs,
		LastScheduleTime: status.LastScheduleTime, NextScheduleTime: status.NextScheduleTime,
	}
}

func trimService(one *v1beta1.ClusterService) {
	spec, status := &one.Spec, &one.Status
	one.Spec = v1beta1.ClusterServiceSpec{
		ServeConfig: trimServeConfig(spec.ServeConfig), ClusterRef: spec.ClusterRef, Suspend: spec.Suspend, ManagedBy: spec.ManagedBy,
	}
	one.Status = v1beta1.ClusterServiceStatus{
		Phase: status.Phase, Conditions: status.Conditions, Active: status.Active, Candidate: status.Candidate,
		Retiring: status.Retiring, LastUpgrade: status.LastUpgrade,
	}
}

// trimServeConfig leaves the port of Serve's proxies, and whether they want TLS. What cannot be read stays so: it is empty.
func trimServeConfig(whole runtime.RawExtension) runtime.RawExtension {
	var held struct {
		Options struct {
			Port        *float64 `json:"port,omitempty"`
			Certificate *string  `json:"ssl_certfile,omitempty"`
		} `json:"http_options"`
	}
	if json.Unmarshal(whole.Raw, &held) != nil {
		return runtime.RawExtension{}
	}
	if name := held.Options.Certificate; name != nil && *name != "" {
		held.Options.Certificate = new("set")
	}
	raw, err := json.Marshal(held)
	if err != nil { // numbers and texts always marshal
		return runtime.RawExtension{}
	}
	return runtime.RawExtension{Raw: raw}
}

// trimPod trims a pod. Of thousands of them, the start commands, variables, mounts and volumes are most of what would be held. Of one
// that is ready nobody asks what it waits for.
func trimPod(pod *corev1.Pod) {
	maps.DeleteFunc(pod.Labels, func(key, _ string) bool { return !isOurs(key) })
	isReady := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	selector := pod.Spec.NodeSelector
	pod.Spec = corev1.PodSpec{
		NodeName: pod.Spec.NodeName, ReadinessGates: pod.Spec.ReadinessGates, SchedulingGates: pod.Spec.SchedulingGates,
		InitContainers: trimContainers(pod.Spec.InitContainers, isReady), Containers: trimContainers(pod.Spec.Containers, isReady),
		SchedulerName: pod.Spec.SchedulerName,
	}
	if architecture, is := selector[corev1.LabelArchStable]; is {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: architecture}
	}
	status := pod.Status
	pod.Status = corev1.PodStatus{
		Phase: status.Phase, Reason: status.Reason, Message: status.Message, PodIP: status.PodIP, StartTime: status.StartTime,
		Conditions: status.Conditions, NominatedNodeName: status.NominatedNodeName,
		InitContainerStatuses: trimStatuses(status.InitContainerStatuses), ContainerStatuses: trimStatuses(status.ContainerStatuses),
	}
}

func trimContainers(all []corev1.Container, isReady bool) []corev1.Container {
	kept := make([]corev1.Container, 0, len(all))
	for i := range all {
		one := corev1.Container{Name: all[i].Name, Image: all[i].Image, RestartPolicy: all[i].RestartPolicy, Resources: all[i].Resources}
		if !isReady {
			one.StartupProbe, one.ReadinessProbe = trimProbe(all[i].StartupProbe), trimProbe(all[i].ReadinessProbe)
		}
		kept = append(kept, one)
	}
	return kept
}

// trimProbe leaves where a probe asks.
func trimProbe(probe *corev1.Probe) *corev1.Probe {
	if probe == nil || probe.HTTPGet == nil {
		return nil
	}
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: probe.HTTPGet.Port, Path: probe.HTTPGet.Path}}}
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
