package scaler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// mostTold is how many workers that go, and how many shapes that never fit, the status names: it must stay far from
// the size that the API server stores, whatever code in a cluster asks for.
const mostTold = 20

// mostReason is how many bytes of a reason the schema takes. Those of the operator have fewer, but anybody who may change
// pods can write one into an annotation.
const mostReason = 128

// noShape is how the status tells of a shape without a text, which the schema refuses.
const noShape = "{}"

// Exit is a pod of the cluster, and the planned exit that it is on.
type Exit struct {
	Name string
	UID  types.UID
	// IsDraining: it is on one, which ends at Until, and Why.
	IsDraining bool
	Until      time.Time
	Why        string
}

// Report adds to a status what the autoscaler beside the head says: who goes, and what can never fit.
func (s State) Report(told *v1beta1.AutoscalingStatus, head types.UID, pods []Exit) {
	if !s.Heard {
		return
	}
	told.HeadUID = head
	told.Retiring = s.retiring(pods)
	told.RetiringTotal, told.InfeasibleTotal = int32(len(told.Retiring)), int32(len(s.Decision.Infeasible))
	told.Retiring = told.Retiring[:min(len(told.Retiring), mostTold)]
	for _, never := range s.Decision.Infeasible[:min(len(s.Decision.Infeasible), mostTold)] {
		told.Infeasible = append(told.Infeasible, v1beta1.InfeasibleShape{
			Shape: cmp.Or(never.Shape, noShape), Count: int32(never.Count), Message: never.Reason,
		})
	}
}

// retiring returns the workers that the autoscaler gives back, and those on a planned exit.
func (s State) retiring(pods []Exit) []v1beta1.RetiringWorker {
	var all []v1beta1.RetiringWorker
	for _, p := range pods {
		named := slices.IndexFunc(s.Decision.Removals, func(r protocol.Removal) bool { return r.Pod == string(p.UID) })
		switch {
		case p.IsDraining:
			until := metav1.NewTime(p.Until)
			all = append(all, v1beta1.RetiringWorker{
				Pod: p.Name, UID: p.UID, Reason: p.Why[:min(len(p.Why), mostReason)], State: v1beta1.RetiringDraining, DeadlineTime: &until,
			})
		case named >= 0:
			removal := s.Decision.Removals[named]
			one := v1beta1.RetiringWorker{
				Pod: p.Name, UID: types.UID(removal.Pod), Node: removal.Node, Reason: removal.Reason, State: v1beta1.RetiringDraining,
			}
			if removal.Drained {
				one.State = v1beta1.RetiringDrained
			}
			all = append(all, one)
		}
	}
	return all
}

// Head is the head's pod, with the autoscaler beside it.
type Head struct {
	Name string
	// HasStarted: its Ray container got through its startup probe.
	HasStarted, IsReady bool
}

// Judge returns whether autoscaling works, and why, for a head that has an autoscaler beside it. Sizes are those of the groups,
// as text.
func (s State) Judge(head Head, told *v1beta1.AutoscalingStatus, sizes string, now time.Time) (bool, reason.Finding) {
	switch {
	case !s.Connected && !s.Since.IsZero() && now.Sub(s.Since) >= patience && head.IsReady:
		return false, reason.AutoscalerUnreachable.Of(head.Name, reconcile.Stamp(s.Since), s.Failure)
	case !s.Heard || !s.Connected:
		return false, reason.AutoscalerStarting.Of(head.Name)
	case s.Decision.Error != "" && !head.HasStarted:
		return false, reason.AutoscalerStarting.Of(head.Name)
	case s.Decision.Error != "":
		return false, reason.AutoscalerTrouble.Of(s.Decision.Error)
	case len(s.Decision.Infeasible) > 0:
		return true, reason.Infeasible.Of(describeShapes(told))
	default:
		return true, reason.Autoscaled.Of(sizes)
	}
}

// describeShapes returns at most three shapes that nothing can hold, as text.
func describeShapes(of *v1beta1.AutoscalingStatus) string {
	const most = 3
	var parts []string
	all := of.Infeasible
	for _, one := range all[:min(most, len(all))] {
		parts = append(parts, fmt.Sprintf("%d × %s (%s)", one.Count, one.Shape, one.Message))
	}
	if more := int(of.InfeasibleTotal) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more shapes", more))
	}
	return strings.Join(parts, ", ")
}
