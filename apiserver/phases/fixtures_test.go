package phases_test

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/phases"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

var born = time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)

// at is some minutes after everything was made.
func at(minutes int) metav1.Time {
	return metav1.NewTime(born.Add(time.Duration(minutes) * time.Minute))
}

func since(kind string, isTrue bool, minutes int) metav1.Condition {
	status := metav1.ConditionFalse
	if isTrue {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: "Why", Message: "because", LastTransitionTime: at(minutes)}
}

func waiting(finding reason.Finding) metav1.Condition {
	return metav1.Condition{
		Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: finding.Code, Message: finding.Text, LastTransitionTime: at(0),
	}
}

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team", Name: name, UID: "uid", CreationTimestamp: at(0)}
}

// clusterOf has a group of workers.
func clusterOf(conditions ...metav1.Condition) *v1beta1.ComputeCluster {
	cluster := &v1beta1.ComputeCluster{ObjectMeta: objectMeta("demo")}
	cluster.Spec.WorkerGroups = []v1beta1.WorkerGroup{{Name: "cpu"}}
	cluster.Status.Conditions = conditions
	return cluster
}

// headOf is a head that was made after two minutes, and scheduled then if it has a node.
func headOf(node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo-head", CreationTimestamp: at(2)}}
	pod.Labels = map[string]string{v1beta1.LabelRole: v1beta1.RoleHead, v1beta1.LabelEpoch: "1"}
	pod.OwnerReferences = []metav1.OwnerReference{{UID: "uid", Controller: new(true)}}
	if pod.Spec.NodeName = node; node != "" {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(3)}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: v1beta1.ContainerRay}}
	}
	return pod
}

// readyHead is a head that answers.
func readyHead() *corev1.Pod {
	pod := headOf("node1")
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	return pod
}

func jobOf(phase string, isShared bool, attempts ...v1beta1.JobAttempt) *v1beta1.ClusterJob {
	job := &v1beta1.ClusterJob{ObjectMeta: objectMeta("train")}
	if isShared {
		job.Spec.ClusterRef = &v1beta1.ClusterReference{Name: "demo"}
	}
	job.Status.Phase, job.Status.Attempts, job.Status.ClusterName = phase, attempts, "demo"
	job.Status.Conditions = []metav1.Condition{waiting(reason.JobAPIStarting.Of("demo"))}
	return job
}

// attempt was submitted, began to run and ended after so many minutes; 0 is that it has not.
func attempt(number int32, submitted, started, ended int) v1beta1.JobAttempt {
	moment := func(minutes int) *metav1.Time {
		if minutes == 0 {
			return nil
		}
		return new(at(minutes))
	}
	return v1beta1.JobAttempt{Number: number, SubmitTime: moment(submitted), StartTime: moment(started), EndTime: moment(ended)}
}

func serviceOf(active, candidate *v1beta1.ServiceVersion, conditions ...metav1.Condition) *v1beta1.ClusterService {
	service := &v1beta1.ClusterService{ObjectMeta: objectMeta("serve")}
	service.Status.Active, service.Status.Candidate, service.Status.Conditions = active, candidate, conditions
	return service
}

func apps(states ...string) []v1beta1.ApplicationStatus {
	var all []v1beta1.ApplicationStatus
	for i, state := range states {
		all = append(all, v1beta1.ApplicationStatus{Name: fmt.Sprint(i), State: state})
	}
	return all
}

// drawing is phases as one line: "Accepted Done 0-2, HeadReady Current 2-? (words)", in minutes.
func drawing(all []phases.Phase) string {
	minute := func(at time.Time) string {
		if at.IsZero() {
			return "?"
		}
		return fmt.Sprint(int(at.Sub(born).Minutes()))
	}
	var parts []string
	for _, phase := range all {
		text := phase.Name + " " + phase.State
		if phase.State != phases.Pending {
			text += " " + minute(phase.Since) + "-" + minute(phase.Until)
		}
		if phase.WaitsFor != "" {
			text += " (" + phase.WaitsFor + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// now is an hour after everything was made.
func draw(object runtime.Object, clusters []*v1beta1.ComputeCluster, pods ...*corev1.Pod) string {
	in := explain.Input{Object: object, Clusters: clusters, Pods: pods, Now: at(60).Time}
	whole := drawing(phases.Of(in))
	in = explain.Input{Object: held(object), Now: in.Now}
	for _, one := range clusters {
		in.Clusters = append(in.Clusters, held(one))
	}
	for _, one := range pods {
		in.Pods = append(in.Pods, held(one))
	}
	if trimmed := drawing(phases.Of(in)); trimmed != whole {
		return whole + ", but of what the server holds: " + trimmed
	}
	return whole
}

// held is what the server holds of an object.
func held[T runtime.Object](one T) T {
	object, is := one.DeepCopyObject().(view.Object)
	if !is {
		return one
	}
	view.Trim(object)
	trimmed, _ := object.(T) // it is the same kind
	return trimmed
}
