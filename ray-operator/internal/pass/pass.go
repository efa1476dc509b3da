// Package pass holds what a pass of every controller does alike: when to look again, how a condition is set, how a status
// is written, how a record is kept, and whether an object of a fixed name is as wanted.
//
// In: findings, errors, times, records and objects. Out: a ctrl.Result, a condition, a status through the writer that is
// given, the text of a record.
//
// It must never know a kind, read anything, or decide what a status says.
package pass

import (
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// conflictRetry is how soon to look again after something changed under a pass.
	conflictRetry = 200 * time.Millisecond
	// waitRetry is how soon to look again for what is under way, if nothing told before.
	waitRetry = time.Second
	// Recheck is how soon to look again at what no watch tells of, such as a foreign
	// object that goes or a quota that is raised.
	Recheck = 15 * time.Second
)

// Soonest returns the shorter of two waits. One that is not above zero is none.
func Soonest(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// Result turns a pass into when to look again: after wake, 0 is never, or as the errors
// that the pass met have it.
func Result(wake time.Duration, err error) (ctrl.Result, error) {
	_, terminal := fault.Finding(err)
	switch {
	case err == nil:
		return ctrl.Result{RequeueAfter: wake}, nil
	case terminal, fault.Refused(err): // in the status by now; trying faster would not help
		return ctrl.Result{RequeueAfter: Recheck}, nil
	case fault.IsWait(err):
		return ctrl.Result{RequeueAfter: waitRetry}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	default:
		return ctrl.Result{}, err
	}
}

// Teller sets conditions of one object's status.
type Teller struct {
	Conditions *[]metav1.Condition
	Generation int64
	Now        time.Time
}

// Set sets a condition with the finding.
func (t Teller) Set(kind string, holds bool, finding reason.Finding) {
	value := metav1.ConditionFalse
	if holds {
		value = metav1.ConditionTrue
	}
	meta.SetStatusCondition(t.Conditions, metav1.Condition{
		Type: kind, Status: value, ObservedGeneration: t.Generation,
		Reason: finding.Code, Message: finding.Text, LastTransitionTime: metav1.NewTime(t.Now),
	})
}

// Unknown sets a condition of which nobody can say yet whether it holds.
func (t Teller) Unknown(kind string, finding reason.Finding) {
	meta.SetStatusCondition(t.Conditions, metav1.Condition{
		Type: kind, Status: metav1.ConditionUnknown, ObservedGeneration: t.Generation,
		Reason: finding.Code, Message: finding.Text, LastTransitionTime: metav1.NewTime(t.Now),
	})
}

// SetOr sets a condition with the finding while it holds, and says that all is settled
// otherwise.
func (t Teller) SetOr(kind string, holds bool, finding reason.Finding) {
	if !holds {
		finding = reason.Settled.Of()
	}
	t.Set(kind, holds, finding)
}

// SetStalled sets the condition Stalled. Where it is False, others say what is waited for.
func (t Teller) SetStalled(holds bool, finding reason.Finding) {
	if !holds {
		finding = reason.NotStalled.Of()
	}
	t.Set(v1alpha1.ConditionStalled, holds, finding)
}

// While has a condition, true with the finding, as long as there is one.
func (t Teller) While(kind string, finding *reason.Finding) {
	if finding == nil {
		*t.Conditions = slices.DeleteFunc(*t.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
		return
	}
	t.Set(kind, true, *finding)
}

// NewWarning returns why an object is not ready, where that is a warning that its conditions did not have before.
func NewWarning(before, after []metav1.Condition) (reason.Finding, bool) {
	ready := meta.FindStatusCondition(after, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return reason.Finding{}, false
	}
	finding := reason.Finding{Code: ready.Reason, Text: ready.Message}
	former := meta.FindStatusCondition(before, v1alpha1.ConditionReady)
	return finding, finding.Severity() == reason.Warning && (former == nil || former.Reason != ready.Reason)
}

// IsOurs reports whether an object with that value of spec.managedBy is this operator's to reconcile.
func IsOurs(managedBy string) bool { return managedBy == "" || managedBy == v1alpha1.ManagedByOperator }

// Shown reports whether an error is for people: something was refused, or is in the way.
func Shown(err error) bool {
	_, terminal := fault.Finding(err)
	return terminal || fault.Refused(err)
}

// Stamp is a time as people read it, in UTC.
func Stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// Moment is a time of a record, in Unix seconds, as a status has it; nil for 0, which is none.
func Moment(seconds int64) *metav1.Time {
	if seconds == 0 {
		return nil
	}
	at := metav1.Unix(seconds, 0)
	return &at
}
