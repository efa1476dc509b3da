package view

import (
	"maps"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Line is one object in a list, as message Line of the API. It follows from the object, which its UID and
// resourceVersion name, and from GPUs: two lines with these three the same are the same.
type Line struct {
	Key
	UID             string
	ResourceVersion string
	Labels          map[string]string
	Phase           string
	// Ready is "True", "False" or "Unknown".
	Ready                 string
	Code, Message, Remedy string
	// Since is when the code began, and zero where that is not known.
	Since, Created time.Time
	// Owner is what the annotation heliostat.dev/owner says. Any client that may edit the object may set it: it is what
	// an object says of itself, and no proof.
	Owner string
	// GPUs is how many GPUs the pods of the object's own clusters request. Pods that have ended count no more, and
	// those of a cluster that others may use count for that cluster alone. An object without pods has none: what it
	// would take is in the cluster's status.resources.
	GPUs int64
	// IdleSince is since when nobody uses a cluster, where its idle policy asks.
	IdleSince time.Time
	Cluster   string
	Attempt   int32
	Version   string
	Traffic   []Traffic
	// LastSchedule and NextSchedule are the times of a schedule, zero where there is none, and ActiveJobs is how many of its jobs
	// have not ended.
	LastSchedule, NextSchedule time.Time
	ActiveJobs                 int32
}

// Traffic is the share of a service's requests that a version gets.
type Traffic struct {
	Version string
	Percent int32
}

// Same reports whether two lines say the same.
func (l *Line) Same(other *Line) bool {
	if l == nil || other == nil {
		return l == other
	}
	return l.UID == other.UID && l.ResourceVersion == other.ResourceVersion && l.GPUs == other.GPUs && l.Key == other.Key
}

// with returns the line with GPUs.
func (l *Line) with(gpus int64) *Line {
	if l.GPUs == gpus {
		return l
	}
	line := *l
	line.GPUs = gpus
	return &line
}

// Proto returns the line as the API has it.
func (l *Line) Proto() *heliostatv1.Line {
	message := &heliostatv1.Line{
		Kind: l.Kind, Namespace: l.Namespace, Name: l.Name, Uid: l.UID, ResourceVersion: l.ResourceVersion,
		Labels: maps.Clone(l.Labels), Owner: l.Owner, Created: stamp(l.Created),
		Phase: l.Phase, Ready: l.Ready, Code: l.Code, Message: l.Message, Remedy: l.Remedy, Since: stamp(l.Since),
		Gpus: int32(l.GPUs), IdleSince: stamp(l.IdleSince), Cluster: l.Cluster, Attempt: l.Attempt, Version: l.Version,
		LastScheduleTime: stamp(l.LastSchedule), NextScheduleTime: stamp(l.NextSchedule), ActiveJobs: l.ActiveJobs,
	}
	for _, part := range l.Traffic {
		message.Traffic = append(message.Traffic, &heliostatv1.Traffic{Version: part.Version, Percent: part.Percent})
	}
	return message
}

func stamp(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at)
}

// lineOf returns the line of an object without GPUs.
func lineOf(kind string, object Object) *Line {
	line := &Line{
		Key: Key{kind, object.GetNamespace(), object.GetName()}, UID: string(object.GetUID()),
		ResourceVersion: object.GetResourceVersion(), Labels: object.GetLabels(), Owner: ownerOf(object),
		Created: object.GetCreationTimestamp().UTC(), Ready: explain.Ready(object),
	}
	cause := explain.Headline(object)
	line.Code, line.Message, line.Remedy, line.Since = cause.Code, cause.Message, cause.Remedy, cause.Since.UTC()
	switch one := object.(type) {
	case *v1beta1.ComputeCluster:
		line.Phase, line.IdleSince = one.Status.Phase, explain.IdleSince(one.Status.Conditions)
	case *v1beta1.ClusterJob:
		line.Phase, line.Attempt = one.Status.Phase, one.Status.Attempt
		if line.Cluster = one.Status.ClusterName; line.Cluster == "" {
			line.Cluster = refersTo(one)
		}
	case *v1beta1.ClusterJobSchedule:
		line.Phase, line.ActiveJobs = explain.PhaseOfSchedule(one), one.Status.ActiveJobs
		line.LastSchedule, line.NextSchedule = moment(one.Status.LastScheduleTime), moment(one.Status.NextScheduleTime)
	case *v1beta1.ClusterService:
		line.Phase, line.Cluster = one.Status.Phase, refersTo(one)
		if active := one.Status.Active; active != nil {
			line.Cluster, line.Version = active.ClusterName, revisionText(active.Revision)
		}
		for _, version := range []*v1beta1.ServiceVersion{one.Status.Active, one.Status.Candidate} {
			if version != nil {
				line.Traffic = append(line.Traffic, Traffic{revisionText(version.Revision), version.TrafficPercent})
			}
		}
	}
	return line
}

// revisionText returns the number of a revision as text, empty where there is none.
func revisionText(number int64) string {
	if number == 0 {
		return ""
	}
	return strconv.FormatInt(number, 10)
}

// moment returns a time of a status, zero where there is none.
func moment(at *metav1.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}

func ownerOf(object Object) string { return object.GetAnnotations()[v1beta1.AnnotationOwner] }

// refersTo returns the name of the cluster that a job or a service refers to.
func refersTo(object Object) string {
	var ref *v1beta1.ClusterReference
	switch one := object.(type) {
	case *v1beta1.ClusterJob:
		ref = one.Spec.ClusterRef
	case *v1beta1.ClusterService:
		ref = one.Spec.ClusterRef
	}
	if ref == nil {
		return ""
	}
	return ref.Name
}

// clusterOf returns the UID of the cluster that owns a pod.
func clusterOf(pod *corev1.Pod) types.UID {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "ComputeCluster" {
		return owner.UID
	}
	return ""
}

// gpusOf returns how many GPUs a pod's containers request, and none for a pod that has ended. Kubernetes makes a
// device's request of its limit, so one of the two may be missing only before that.
func gpusOf(pod *corev1.Pod) int64 {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	sum := int64(0)
	for i := range pod.Spec.Containers {
		for name, quantity := range pod.Spec.Containers[i].Resources.Requests {
			if v1beta1.IsGPU(name) {
				sum += quantity.Value()
			}
		}
	}
	return sum
}
