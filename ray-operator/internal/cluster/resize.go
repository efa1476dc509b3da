package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
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

// resizeWorkers makes workers larger in place, where CPU and memory of their group's size is all
// that changed: Kubernetes first, then Ray, and then they count as up to date. They are
// never made smaller so: what runs on them may need what it was promised.
func resizeWorkers(b basis) resizes {
	changes := resizes{tell: map[types.UID]map[string]float64{}}
	for _, worker := range b.seen.Pods {
		if !b.hasPod(worker) || !worker.isStaying() || !b.intents.canGrow(worker) {
			continue
		}
		wanted, actual := b.intents.resourcesOf(worker.At.Group), diagnose.RayStatus(worker.Pod).Resources
		switch {
		case !equality.Semantic.DeepEqual(pod.Ray(worker.Pod).Resources, wanted):
			changes.write = append(changes.write, Resizing{Pod: worker, Resources: wanted})
		case actual == nil || !equality.Semantic.DeepEqual(*actual, wanted) || isResizing(worker):
		case !nodes.Has(b.seen.Ray.Nodes[worker.UID].Total, pod.RayAmounts(b.cluster, worker.Pod)):
			changes.tell[worker.UID] = pod.RayAmounts(b.cluster, worker.Pod)
		default:
			changes.adopt = append(changes.adopt, Adopting{Pod: worker, Intent: b.intents.intentOf(worker.At.Group)})
		}
	}
	return changes
}

// resizes are the workers that Kubernetes, Ray and the operator have yet to know as larger.
type resizes struct {
	write []Resizing
	tell  map[types.UID]map[string]float64 // by pod, what Ray must be told that it has
	adopt []Adopting
}

// takeResizes plans what must be done about workers that become larger.
func (p *Plan) takeResizes(changes resizes) {
	p.Resize, p.Adopt = changes.write, changes.adopt
	for worker, amounts := range changes.tell {
		p.Ask.addResize(worker, amounts)
	}
	if len(p.Resize) > 0 {
		p.wakeIn(reconcile.Recheck) // in case that it is refused
	}
}

// canGrow reports whether a worker that is out of date can become what the spec wants while
// it runs. Ray can follow from 2.56 on; a node that cannot hold the pod then says so.
func (i intents) canGrow(worker Pod) bool {
	shape := worker.Annotations[v1beta1.AnnotationShape]
	if !i.isOld(worker) || shape == "" || !worker.isReady() || diagnose.RayStatus(worker.Pod) == nil || naming.IsRayBefore(i.cluster.Spec.RayVersion, 56) ||
		shape != i.shapeOf(worker.At.Group) {
		return false
	}
	wanted, has := i.resourcesOf(worker.At.Group), pod.Ray(worker.Pod).Resources
	return !isInfeasible(worker) && hasAll(wanted.Requests, has.Requests) && hasAll(wanted.Limits, has.Limits) &&
		isBounded(wanted) == isBounded(has)
}

// isBounded reports whether a container can never get more CPU than it requests. A pod that becomes so, or ceases to be,
// would have another quality of service, which Kubernetes refuses while it runs.
func isBounded(resources corev1.ResourceRequirements) bool {
	limit, isLimited := resources.Limits[corev1.ResourceCPU]
	return isLimited && limit.Cmp(resources.Requests[corev1.ResourceCPU]) == 0
}

// hasAll reports whether every amount is there, and at least as much of it.
func hasAll(large, small corev1.ResourceList) bool {
	for name, amount := range small {
		if have, ok := large[name]; !ok || have.Cmp(amount) < 0 {
			return false
		}
	}
	return len(large) == len(small)
}

// isResizing reports whether the kubelet is still at it; infeasible that the node can never
// hold the pod so.
func isResizing(worker Pod) bool {
	return worker.trueCondition(corev1.PodResizeInProgress) != nil || worker.trueCondition(corev1.PodResizePending) != nil
}

func isInfeasible(worker Pod) bool {
	pending := worker.trueCondition(corev1.PodResizePending)
	return pending != nil && pending.Reason == corev1.PodReasonInfeasible
}
