package cluster

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/scaler"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// reportSizes sets what the status says of autoscaling, also of sizes that are kept since it was turned off.
func reportSizes(t *statusDraft) {
	if !isAutoscaled(t.cluster) && len(listHeldSizes(t.cluster, t.plan.Scaled)) == 0 {
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
	if isAutoscaled(t.cluster) && t.head != nil {
		t.seen.Scaler.Report(told, t.head.UID, listExits(t.pods))
	}
}

// listExits returns the pods with the planned exits that they are on.
func listExits(pods []Pod) []scaler.Exit {
	all := make([]scaler.Exit, len(pods))
	for i, p := range pods {
		all[i] = scaler.Exit{Name: p.Name, UID: p.UID, IsDraining: p.isDraining()}
		if all[i].IsDraining {
			exit := p.plannedExit()
			all[i].Until, all[i].Why = exit.Until, exit.Why
		}
	}
	return all
}

// givenReplicas returns the replicas of a spec, nil for the negative number that stands in the record for none.
func givenReplicas(recorded int32) *int32 {
	if recorded < 0 {
		return nil
	}
	return &recorded
}

// listHeldSizes returns the groups that keep a size since autoscaling was turned off, with it.
func listHeldSizes(cluster *v1beta1.ComputeCluster, scaled map[string]RecordedSize) []string {
	var all []string
	for i := range cluster.Spec.WorkerGroups {
		name := cluster.Spec.WorkerGroups[i].Name
		if size, off := scaled[name].size(); off {
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
	held := listHeldSizes(t.cluster, t.plan.Scaled)
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
		head := scaler.Head{Name: t.head.Name, HasStarted: t.head.hasStarted(), IsReady: t.head.isReady()}
		holds, finding := t.seen.Scaler.Judge(head, t.status.Autoscaling, listSizes(t.cluster, t.plan.Sizes), t.now)
		return &verdict{holds, finding}
	}
}

// listSizes returns the groups' sizes with their bounds.
func listSizes(cluster *v1beta1.ComputeCluster, sizes map[string]Size) string {
	var parts []string
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		within := boundsOf(group)
		parts = append(parts, fmt.Sprintf("%s %d (%d to %d)", group.Name, desiredReplicas(cluster, sizes, group), within.Min, within.Max))
	}
	return strings.Join(parts, ", ")
}

// desiredReplicas returns how many replicas a group must have, as far as the plan got to say so.
func desiredReplicas(cluster *v1beta1.ComputeCluster, sizes map[string]Size, group *v1beta1.WorkerGroup) int {
	if size, known := sizes[group.Name]; known {
		return size.Replicas
	}
	if ptr.Deref(group.Suspend, false) {
		return 0
	}
	return scale.Follow(pod.Replicas(cluster, group), 0, boundsOf(group))
}

// neededWorkers returns how many workers of a group have to be ready for the cluster to be usable: with
// autoscaling those of its minimum.
func neededWorkers(cluster *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup, desired int32) int32 {
	if !isAutoscaled(cluster) {
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
