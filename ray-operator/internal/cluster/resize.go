package cluster

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
)

// Resizing is a worker whose Ray container gets other resources while it runs.
type Resizing struct {
	Pod       Pod
	Resources corev1.ResourceRequirements
}

// Adopting is a worker that has become what the spec wants without being replaced.
type Adopting struct {
	Pod    Pod
	Intent string
}

// resizes makes workers larger in place, where CPU and memory of their group's size is all
// that changed: Kubernetes first, then Ray, and then they count as up to date. They are
// never made smaller so: what runs on them may need what it was promised.
func (p *planner) resizes() {
	defer func() {
		if len(p.Resize) > 0 {
			p.wakeIn(recheck) // in case that it is refused
		}
	}()
	for _, worker := range p.seen.Pods {
		if worker.At.Epoch != p.Epoch || !worker.counts() || !p.intents.canGrow(worker) {
			continue
		}
		wanted, actual := wantedResources(p.cluster, worker), worker.ray().Resources
		switch {
		case !equality.Semantic.DeepEqual(pod.Ray(worker.Pod).Resources, wanted):
			p.Resize = append(p.Resize, Resizing{Pod: worker, Resources: wanted})
		case actual == nil || !equality.Semantic.DeepEqual(*actual, wanted) || resizing(worker):
		case !has(p.seen.Ray.Nodes[worker.UID].Total, pod.RayAmounts(p.cluster, worker.Pod)):
			p.Ask.resize(worker.UID, pod.RayAmounts(p.cluster, worker.Pod))
		default:
			p.Adopt = append(p.Adopt, Adopting{Pod: worker, Intent: p.intents.of(worker.At.Group)})
		}
	}
}

// canGrow tells whether a worker that is out of date can become what the spec wants while
// it runs. Ray can follow from 2.56 on; a node that cannot hold the pod then says so.
func (i intents) canGrow(worker Pod) bool {
	shape := worker.Annotations[v1alpha1.AnnotationShape]
	if !i.isOld(worker) || shape == "" || !worker.ready() || worker.ray() == nil || i.cluster.Spec.RayVersion < "2.56" ||
		shape != pod.Shape(i.cluster, worker.At.Group) {
		return false
	}
	wanted := wantedResources(i.cluster, worker)
	return !infeasible(worker) && covers(wanted.Requests, pod.Ray(worker.Pod).Resources.Requests) &&
		covers(wanted.Limits, pod.Ray(worker.Pod).Resources.Limits)
}

// wantedResources are those that a new worker in the pod's place would have.
func wantedResources(cluster *v1alpha1.ComputeCluster, worker Pod) corev1.ResourceRequirements {
	return pod.Ray(pod.Worker(cluster, pod.FindGroup(cluster, worker.At.Group), worker.At.Slot, worker.At.Epoch)).Resources
}

// covers tells whether every amount is there, and at least as much of it.
func covers(large, small corev1.ResourceList) bool {
	for name, amount := range small {
		if have, ok := large[name]; !ok || have.Cmp(amount) < 0 {
			return false
		}
	}
	return len(large) == len(small)
}

// has tells whether Ray counts what it shall.
func has(total, wanted map[string]float64) bool {
	return maps.EqualFunc(wanted, subset(total, wanted), func(a, b float64) bool { return a == b })
}

func subset(of, keys map[string]float64) map[string]float64 {
	found := map[string]float64{}
	for key := range keys {
		if value, ok := of[key]; ok {
			found[key] = value
		}
	}
	return found
}

// resizing tells whether the kubelet is still at it; infeasible that the node can never
// hold the pod so.
func resizing(worker Pod) bool {
	return condition(worker, corev1.PodResizeInProgress) != nil || condition(worker, corev1.PodResizePending) != nil
}

func infeasible(worker Pod) bool {
	pending := condition(worker, corev1.PodResizePending)
	return pending != nil && pending.Reason == corev1.PodReasonInfeasible
}

func condition(p Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if found := &p.Status.Conditions[i]; found.Type == kind && found.Status == corev1.ConditionTrue {
			return found
		}
	}
	return nil
}
