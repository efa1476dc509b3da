package explain

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// CodePending is the code that an object has before the operator has written its status. The schema of the kinds gives
// it, so it is not in the catalogue.
const CodePending = "Pending"

// What the schema of the kinds says of an object that the operator has not seen yet.
const (
	pendingMessage = "Waiting for the operator"
	pendingRemedy  = "if this stays, check that the Heliostat operator runs"
)

// longestText bounds the texts of a link. Texts of the operator have 1 KiB and the name of what they are about; a
// condition takes 32 KiB from each client with the right to write it.
const longestText = 4 << 10

// subject is what our kinds have in common.
type subject struct {
	kind       string
	object     *metav1.ObjectMeta
	conditions []metav1.Condition
	managedBy  string
}

// subjectOf reads an object; ok is false where it is none of ours.
func subjectOf(object runtime.Object) (about subject, ok bool) {
	switch o := object.(type) {
	case *v1beta1.ComputeCluster:
		if o != nil {
			return subject{KindCluster, &o.ObjectMeta, o.Status.Conditions, o.Spec.ManagedBy}, true
		}
	case *v1beta1.ClusterJob:
		if o != nil {
			return subject{KindJob, &o.ObjectMeta, o.Status.Conditions, o.Spec.ManagedBy}, true
		}
	case *v1beta1.ClusterService:
		if o != nil {
			return subject{KindService, &o.ObjectMeta, o.Status.Conditions, o.Spec.ManagedBy}, true
		}
	case *v1beta1.ClusterJobSchedule:
		if o != nil {
			return subject{KindSchedule, &o.ObjectMeta, o.Status.Conditions, ""}, true
		}
	}
	return subject{}, false
}

func (s subject) condition(kind string) *metav1.Condition {
	return meta.FindStatusCondition(s.conditions, kind)
}

// ready is the status of the condition Ready.
func (s subject) ready() metav1.ConditionStatus {
	if ready := s.condition(v1beta1.ConditionReady); ready != nil {
		switch ready.Status {
		case metav1.ConditionTrue, metav1.ConditionFalse:
			return ready.Status
		}
	}
	if suspended := s.condition(v1beta1.ConditionSuspended); suspended != nil && suspended.Status == metav1.ConditionTrue {
		return metav1.ConditionFalse // what is suspended has no condition Ready
	}
	return metav1.ConditionUnknown
}

// headline is what the status says first: Ready, with what it is at. What is suspended lacks it, and a status of others may.
func (s subject) headline() Cause {
	kinds := []string{v1beta1.ConditionReady, v1beta1.ConditionSuspended, v1beta1.ConditionStalled, v1beta1.ConditionReconciling}
	for _, kind := range kinds {
		condition := s.condition(kind)
		if condition == nil || condition.Reason == "" {
			continue
		}
		if kind != v1beta1.ConditionReady && condition.Status != metav1.ConditionTrue {
			continue
		}
		if condition.Reason == CodePending && condition.Message == pendingMessage+"; "+pendingRemedy {
			break
		}
		return s.cause(condition.Reason, condition.Message, s.since(condition.Reason, condition.Message))
	}
	return s.pending()
}

// pending is an object of which its controller has said nothing yet.
func (s subject) pending() Cause {
	message, remedy := pendingMessage, strings.ToUpper(pendingRemedy[:1])+pendingRemedy[1:]
	if s.managedBy != "" && s.managedBy != v1beta1.ManagedByOperator {
		message = "Waiting for " + s.managedBy + ", which manages it"
		remedy = "If this stays, check that its controller runs"
	}
	cause := s.cause(CodePending, message, s.object.CreationTimestamp.Time)
	cause.Remedy = remedy
	return cause
}

// cause is a link about the object itself.
func (s subject) cause(code, text string, since time.Time) Cause {
	message, remedy := reason.Split(code, text)
	return Cause{s.kind, s.object.Namespace, s.object.Name, cut(code), cut(message), cut(remedy), since}
}

// since is when a finding began: it is not older than the youngest change of a condition that has it.
func (s subject) since(code, text string) time.Time {
	var since time.Time
	for i := range s.conditions {
		condition := &s.conditions[i]
		if condition.Reason == code && condition.Message == text && condition.LastTransitionTime.After(since) {
			since = condition.LastTransitionTime.Time
		}
	}
	if created := s.object.CreationTimestamp.Time; !since.IsZero() && since.Before(created) {
		return created // the schema's own time is that of 1970
	}
	return since
}

// cut bounds a text, and makes it one that every encoding takes.
func cut(text string) string {
	const ellipsis = "…"
	if len(text) > longestText {
		text = strings.ToValidUTF8(text[:longestText-len(ellipsis)], "") + ellipsis
	}
	return strings.ToValidUTF8(text, "�")
}
