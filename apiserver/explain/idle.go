package explain

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// idle are the reasons whose texts say since when a cluster is idle.
var idle = []string{reason.IdleSoon.Code, reason.IdleKept.Code, reason.IdleLimitReached.Code, reason.SuspendedIdle.Code}

// IdleSince returns since when nobody uses a cluster, by the text of its condition: the status has it nowhere else. It is
// zero where its idle policy does not ask, and where nobody knows.
func IdleSince(conditions []metav1.Condition) time.Time {
	condition := meta.FindStatusCondition(conditions, v1beta1.ConditionSuspended)
	if condition == nil || !slices.Contains(idle, condition.Reason) {
		return time.Time{}
	}
	_, text, _ := strings.Cut(condition.Message, "idle since ")
	text, _, _ = strings.Cut(text, ";")
	text, _, _ = strings.Cut(text, ". ")
	since, err := time.Parse(time.RFC3339, text)
	if err != nil { // its record was lost
		return time.Time{}
	}
	return since
}
