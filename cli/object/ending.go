package object

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Goals of a wait.
const (
	ForReady     = "ready"
	ForSuspended = "suspended"
	// ForRollout is that all requests of a service go to the version of the spec.
	ForRollout = "rolled out"
)

// Ending is how a wait ended.
type Ending struct {
	// Code is the exit code, and Text says after the name of the object what it is now.
	Code int
	Text string
}

// Judge returns how the wait for an object ends by what is known now; ok is false while it goes on. A job is ready when it
// has succeeded.
func Judge(in explain.Input, goal string) (end Ending, ok bool) {
	about := factsOf(in.Object)
	headline := explain.Headline(in.Object)
	said := headline.Message
	if headline.Remedy != "" {
		said += ". " + headline.Remedy
	}
	switch {
	case about.meta.DeletionTimestamp != nil:
		return Ending{outcome.Failed, "is being deleted"}, true
	case !about.isCurrent:
		return Ending{}, false // the status is of an earlier spec
	case goal == ForSuspended:
		return about.judgeSuspended(said)
	case goal == ForRollout && about.isRolling():
		return about.judgeRollout()
	case about.phase == v1beta1.PhaseStopped:
		return Ending{outcome.Stopped, "was stopped: " + said}, true
	case about.isTrue(v1beta1.ConditionReady):
		return Ending{outcome.Done, about.success()}, true
	case about.isTrue(v1beta1.ConditionFailed):
		return Ending{outcome.Failed, "has failed: " + said}, true
	case about.isSuspended && about.isTrue(v1beta1.ConditionSuspended):
		return Ending{outcome.Stopped, "is suspended; heliostat resume takes that back"}, true
	case about.isTrue(v1beta1.ConditionStalled) && !about.isTaken:
		return Ending{stalled(headline.Code), "goes no further: " + said}, true
	}
	return Ending{}, false
}

// stalled is the code for what never begins, or else for what failed.
func stalled(code string) int {
	switch code {
	case reason.InvalidSpec.Code, reason.NameConflict.Code:
		return outcome.Refused
	}
	return outcome.Failed
}

// facts are what judge reads of an object.
type facts struct {
	meta        *metav1.ObjectMeta
	phase       string
	conditions  []metav1.Condition
	isSuspended bool
	// isCurrent: the status is of the spec as it is now.
	isCurrent bool
	// isTaken: a next version is on its way to the requests of a service.
	isTaken bool
	end     *metav1.Time
}

func factsOf(object any) facts {
	switch o := object.(type) {
	case *v1beta1.ComputeCluster:
		return facts{&o.ObjectMeta, o.Status.Phase, o.Status.Conditions, ptr.Deref(o.Spec.Suspend, false),
			o.Status.ObservedGeneration >= o.Generation, false, nil}
	case *v1beta1.ClusterJob:
		return facts{&o.ObjectMeta, o.Status.Phase, o.Status.Conditions, ptr.Deref(o.Spec.Suspend, false),
			o.Status.ObservedGeneration >= o.Generation, false, o.Status.EndTime}
	case *v1beta1.ClusterService:
		return facts{&o.ObjectMeta, o.Status.Phase, o.Status.Conditions, ptr.Deref(o.Spec.Suspend, false),
			o.Status.ObservedGeneration >= o.Generation, o.Status.Candidate != nil, nil}
	case *v1beta1.ClusterJobSchedule:
		return facts{&o.ObjectMeta, "", o.Status.Conditions, ptr.Deref(o.Spec.Suspend, false), o.Status.ObservedGeneration >= o.Generation, false, nil}
	}
	return facts{meta: &metav1.ObjectMeta{}}
}

func (f facts) isTrue(condition string) bool {
	return meta.IsStatusConditionTrue(f.conditions, condition)
}

// isRolling reports whether the requests of a service have not all moved to the version of the spec. Where that comes on
// the same cluster, the replicas of the former one answer meanwhile, and the service is ready.
func (f facts) isRolling() bool {
	isChanging := f.isTrue(v1beta1.ConditionReady) && f.isTrue(v1beta1.ConditionUpgrading)
	return f.isTaken || isChanging || f.isTrue(v1beta1.ConditionRolledBack)
}

// judgeRollout judges a service whose requests have not all moved to the version of the spec.
func (f facts) judgeRollout() (Ending, bool) {
	back := meta.FindStatusCondition(f.conditions, v1beta1.ConditionRolledBack)
	if back == nil || back.Status != metav1.ConditionTrue {
		return Ending{}, false
	}
	return Ending{outcome.Failed, "was rolled back: " + back.Message}, true
}

func (f facts) judgeSuspended(said string) (Ending, bool) {
	switch {
	case f.isTrue(v1beta1.ConditionSuspended):
		return Ending{outcome.Done, "is suspended"}, true
	case f.end != nil:
		return Ending{outcome.Failed, "has ended: " + said}, true
	}
	return Ending{}, false
}

// success says how something succeeded.
func (f facts) success() string {
	if f.end == nil {
		return "is ready"
	}
	text := "has succeeded"
	if took := f.end.Sub(f.meta.CreationTimestamp.Time); took > 0 {
		text += fmt.Sprintf(" after %s", took.Round(time.Second))
	}
	return text
}
