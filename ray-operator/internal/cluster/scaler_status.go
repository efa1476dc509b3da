package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// patience is for how long an autoscaler may not be reachable before people are told: a
// head starts in that time.
const patience = 30 * time.Second

// mostTold is how many workers that go, and how many shapes that never fit, the status names: it must stay far from
// the size that the API server stores, whatever code in a cluster asks for.
const mostTold = 20

// mostReason is how many bytes of a reason the schema takes. Those of the operator have fewer, but anybody who may change
// pods can write one into an annotation.
const mostReason = 128

// noShape is how the status tells of a shape without a text, which the schema refuses.
const noShape = "{}"

// reportSizes sets what the status says of autoscaling, also of sizes that are kept since it was turned off.
func reportSizes(t *statusDraft) {
	if !isAutoscaled(t.cluster) && len(listHeldSizes(t)) == 0 {
		return
	}
	told := &v1beta1.AutoscalingStatus{}
	t.status.Autoscaling = told
	for i := range t.cluster.Spec.WorkerGroups {
		group := &t.cluster.Spec.WorkerGroups[i]
		size, known := t.plan.Sizes[group.Name]
		if held := t.plan.Scaled[group.Name]; known && held != nil {
			told.Groups = append(told.Groups, v1beta1.GroupTarget{
				Name: group.Name, Target: int32(size.Replicas), Replicas: givenReplicas(held[0]), Message: size.Reason, Rolled: size.Rolled,
			})
		}
	}
	scaler := t.seen.Scaler
	if !isAutoscaled(t.cluster) || !scaler.Heard || t.head == nil {
		return
	}
	told.HeadUID = t.head.UID
	told.Retiring = listRetiring(t)
	told.RetiringTotal, told.InfeasibleTotal = int32(len(told.Retiring)), int32(len(scaler.Decision.Infeasible))
	told.Retiring = told.Retiring[:min(len(told.Retiring), mostTold)]
	for _, never := range scaler.Decision.Infeasible[:min(len(scaler.Decision.Infeasible), mostTold)] {
		told.Infeasible = append(told.Infeasible, v1beta1.InfeasibleShape{
			Shape: cmp.Or(never.Shape, noShape), Count: int32(never.Count), Message: never.Reason,
		})
	}
}

// givenReplicas returns the replicas of a spec, nil for the negative number that stands in the record for none.
func givenReplicas(recorded int32) *int32 {
	if recorded < 0 {
		return nil
	}
	return &recorded
}

// listRetiring returns the workers that the autoscaler gives back, and those on a planned exit.
func listRetiring(t *statusDraft) []v1beta1.RetiringWorker {
	var all []v1beta1.RetiringWorker
	for _, p := range t.pods {
		named := slices.IndexFunc(t.seen.Scaler.Decision.Removals, func(l protocol.Removal) bool { return l.Pod == string(p.UID) })
		switch {
		case p.isDraining():
			exit := p.plannedExit()
			until := metav1.NewTime(exit.Until)
			all = append(all, v1beta1.RetiringWorker{
				Pod: p.Name, UID: p.UID, Reason: exit.Why[:min(len(exit.Why), mostReason)], State: v1beta1.RetiringDraining, DeadlineTime: &until,
			})
		case named >= 0:
			removal := t.seen.Scaler.Decision.Removals[named]
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

// listHeldSizes returns the groups that keep a size since autoscaling was turned off, with it.
func listHeldSizes(t *statusDraft) []string {
	var all []string
	for i := range t.cluster.Spec.WorkerGroups {
		name := t.cluster.Spec.WorkerGroups[i].Name
		if size, off := t.plan.Scaled[name].size(); off {
			all = append(all, fmt.Sprintf("%s %d", name, size))
		}
	}
	return all
}

// reportAutoscaling sets the condition Autoscaling.
func reportAutoscaling(t *statusDraft, suspended *reason.Finding) {
	told := judgeScaler(t)
	if told == nil {
		t.say.SetWhile(v1beta1.ConditionAutoscaling, nil)
		return
	}
	if suspended != nil {
		told = &verdict{false, *suspended}
	}
	t.say.Set(v1beta1.ConditionAutoscaling, told.holds, told.Finding)
}

// judgeScaler returns the condition Autoscaling, nil where the cluster has none.
func judgeScaler(t *statusDraft) *verdict {
	held := listHeldSizes(t)
	switch {
	case !isAutoscaled(t.cluster) && len(held) == 0:
		return nil
	case !isAutoscaled(t.cluster):
		return &verdict{false, reason.SizesHeld.Of(strings.Join(held, ", "))}
	case t.head == nil:
		return &verdict{false, reason.HeadMissing.Of()}
	case !pod.HasAutoscaler(t.head.Pod):
		return &verdict{false, reason.HeadWithoutAutoscaler.Of(t.head.Name)}
	default:
		return judgeScalerDecision(t)
	}
}

// judgeScalerDecision returns the condition of a cluster whose head has an autoscaler beside it.
func judgeScalerDecision(t *statusDraft) *verdict {
	switch scaler := t.seen.Scaler; {
	case !scaler.Connected && !scaler.Since.IsZero() && t.now.Sub(scaler.Since) >= patience && t.head.isReady():
		return &verdict{false, reason.AutoscalerUnreachable.Of(t.head.Name, reconcile.Stamp(scaler.Since), scaler.Failure)}
	case !scaler.Heard || !scaler.Connected:
		return &verdict{false, reason.AutoscalerStarting.Of(t.head.Name)}
	case scaler.Decision.Error != "" && !t.head.hasStarted():
		return &verdict{false, reason.AutoscalerStarting.Of(t.head.Name)}
	case scaler.Decision.Error != "":
		return &verdict{false, reason.AutoscalerTrouble.Of(scaler.Decision.Error)}
	case len(scaler.Decision.Infeasible) > 0:
		return &verdict{true, reason.Infeasible.Of(describeShapes(t.status.Autoscaling))}
	default:
		return &verdict{true, reason.Autoscaled.Of(listSizes(t))}
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

// listSizes returns the groups' sizes with their bounds.
func listSizes(t *statusDraft) string {
	var parts []string
	for i := range t.cluster.Spec.WorkerGroups {
		group := &t.cluster.Spec.WorkerGroups[i]
		within := boundsOf(group)
		parts = append(parts, fmt.Sprintf("%s %d (%d to %d)", group.Name, desiredReplicas(t, group), within.Min, within.Max))
	}
	return strings.Join(parts, ", ")
}

// desiredReplicas returns how many replicas a group must have, as far as the plan got to say so.
func desiredReplicas(t *statusDraft, group *v1beta1.WorkerGroup) int {
	if size, known := t.plan.Sizes[group.Name]; known {
		return size.Replicas
	}
	if ptr.Deref(group.Suspend, false) {
		return 0
	}
	return scale.Follow(pod.Replicas(t.cluster, group), 0, boundsOf(group))
}

// neededWorkers returns how many workers of a group have to be ready for the cluster to be usable: with
// autoscaling those of its minimum.
func neededWorkers(t *statusDraft, group *v1beta1.WorkerGroup, desired int32) int32 {
	if !isAutoscaled(t.cluster) {
		return desired
	}
	return min(desired, int32(boundsOf(group).Min*pod.Hosts(group)))
}

// mirroredSizes returns the sizes that the record keeps, as the status tells of them.
func mirroredSizes(cluster *v1beta1.ComputeCluster) map[string]RecordedSize {
	status := cluster.Status.Autoscaling
	if status == nil {
		return nil
	}
	all := map[string]RecordedSize{}
	for _, target := range status.Groups {
		all[target.Name] = RecordedSize{recordReplicas(target.Replicas)}
		if !isAutoscaled(cluster) {
			all[target.Name] = RecordedSize{recordReplicas(target.Replicas), target.Target}
		}
	}
	return all
}
