package reconcile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Conditions sets conditions of one object's status.
type Conditions struct {
	// All are those of the status.
	All        *[]metav1.Condition
	Generation int64
	Now        time.Time
}

// Set sets a condition with the finding.
func (c Conditions) Set(kind string, holds bool, finding reason.Finding) {
	value := metav1.ConditionFalse
	if holds {
		value = metav1.ConditionTrue
	}
	c.set(kind, value, finding)
}

// SetUnknown sets a condition of which nobody can say yet whether it holds.
func (c Conditions) SetUnknown(kind string, finding reason.Finding) {
	c.set(kind, metav1.ConditionUnknown, finding)
}

func (c Conditions) set(kind string, value metav1.ConditionStatus, finding reason.Finding) {
	meta.SetStatusCondition(c.All, metav1.Condition{
		Type: kind, Status: value, ObservedGeneration: c.Generation,
		Reason: finding.Code, Message: finding.Text, LastTransitionTime: metav1.NewTime(c.Now),
	})
}

// SetOr sets a condition with the finding while it holds, and says that all is settled
// otherwise.
func (c Conditions) SetOr(kind string, holds bool, finding reason.Finding) {
	if !holds {
		finding = reason.Settled.Of()
	}
	c.Set(kind, holds, finding)
}

// SetStalled sets the condition Stalled. Where it is False, others say what is waited for.
func (c Conditions) SetStalled(holds bool, finding reason.Finding) {
	if !holds {
		finding = reason.NotStalled.Of()
	}
	c.Set(v1beta1.ConditionStalled, holds, finding)
}

// SetWhile sets a condition to true with the finding, and removes it where there is none.
func (c Conditions) SetWhile(kind string, finding *reason.Finding) {
	if finding == nil {
		*c.All = slices.DeleteFunc(*c.All, func(there metav1.Condition) bool { return there.Type == kind })
		return
	}
	c.Set(kind, true, *finding)
}

// NewWarning returns why an object is not ready, where that is a warning that its conditions did not have before.
func NewWarning(before, after []metav1.Condition) (reason.Finding, bool) {
	ready := meta.FindStatusCondition(after, v1beta1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return reason.Finding{}, false
	}
	finding := reason.Finding{Code: ready.Reason, Text: ready.Message}
	former := meta.FindStatusCondition(before, v1beta1.ConditionReady)
	return finding, finding.Severity() == reason.Warning && (former == nil || former.Reason != ready.Reason)
}
