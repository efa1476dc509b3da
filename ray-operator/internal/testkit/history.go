package testkit

import (
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// History is told of every revision and checks what must hold at each of them, not only
// at the end. Feed it from one watch per kind, or from a World.
type History struct {
	mu       sync.Mutex
	clusters map[types.UID]*known
	pods     map[types.UID]*corev1.Pod
	objects  map[types.UID]client.Object
	broken   []string
	jobs     jobsKnown
	// past is set while an operator acts that sees the past.
	past bool
	// silent are nodes that do not answer: what terminates there holds nobody up.
	silent map[string]bool
}

// known is a cluster and the largest size that each group had since the last rest: a
// pass may have begun before the last edits.
type known struct {
	*v1beta1.ComputeCluster
	largest map[string]int32
	// jobs is the largest maxConcurrentJobs since the last rest, 0 without a bound.
	jobs int32
}

// NewHistory is an empty history.
func NewHistory() *History {
	return &History{
		clusters: map[types.UID]*known{}, pods: map[types.UID]*corev1.Pod{}, objects: map[types.UID]client.Object{},
		jobs: newJobHistory(), silent: map[string]bool{},
	}
}

// Silence notes whether a node answers.
func (h *History) Silence(node string, silent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent[node] = silent
}

// holdsUp reports whether a pod has to be gone before what follows it: not one that terminates on a silent node.
func (h *History) holdsUp(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil || !h.silent[pod.Spec.NodeName]
}

// Observe takes a revision in.
func (h *History) Observe(event Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	uid := event.Object.GetUID()
	if event.Type == watch.Deleted {
		delete(h.objects, uid)
		delete(h.pods, uid)
		delete(h.clusters, uid)
		if known := h.jobs.known[uid]; known != nil {
			known.gone = true
		}
		return
	}
	h.objects[uid] = event.Object
	switch obj := event.Object.(type) {
	case *v1beta1.ComputeCluster:
		if before := h.clusters[uid]; event.Own && before != nil && before.Generation != obj.Generation && !mayChange(before.ComputeCluster, obj) {
			h.fault("the operator changed the spec of %s", obj.Name)
		}
		h.checkOwn(event, obj)
		h.cluster(obj)
	case *v1beta1.ClusterJob:
		h.job(event, obj)
	case *corev1.Pod:
		h.pods[uid] = obj
		if event.Type == watch.Added {
			h.checkSize(obj)
			h.checkSuspended(obj)
		}
	}
	h.checkHeads()
}

func (h *History) cluster(obj *v1beta1.ComputeCluster) {
	largest, jobs := map[string]int32{}, int32(0)
	if most := obj.Spec.MaxConcurrentJobs; most != nil {
		jobs = *most
	}
	if before := h.clusters[obj.UID]; before != nil {
		largest = before.largest
		if jobs > 0 {
			jobs = max(jobs, before.jobs)
		}
	}
	for i := range obj.Spec.WorkerGroups {
		group := &obj.Spec.WorkerGroups[i]
		largest[group.Name] = max(largest[group.Name], most(obj, group))
	}
	h.clusters[obj.UID] = &known{obj, largest, jobs}
}

// most is how many live workers a group may have: what is wanted, or with autoscaling its
// maximum, or since that is off the size that it keeps; and the surge of a rolling replacement.
func most(of *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup) int32 {
	replicas := int32(1)
	if group.Replicas != nil {
		replicas = *group.Replicas
	}
	record, _ := cluster.ParseRecord(of.Annotations[v1beta1.AnnotationRecord]) // a damaged one keeps nothing
	switch held := record.Scaled[group.Name]; {
	case of.Spec.Autoscaling != nil:
		replicas = *group.MaxReplicas
	case len(held) == 2 && (held[0] == replicas || held[0] < 0 && group.Replicas == nil):
		replicas = held[1]
	}
	if strategy := of.Spec.UpgradeStrategy; strategy != nil && strategy.Type == v1beta1.ClusterUpgradeRollingWorkers && strategy.RollingWorkers != nil {
		surge, _ := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(strategy.RollingWorkers.MaxSurge, intstr.IntOrString{})), int(replicas), true)
		replicas += int32(surge)
	}
	return replicas * max(1, group.HostsPerReplica)
}

// Rested tells that every pass that began before now has ended.
func (h *History) Rested() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, known := range h.clusters {
		known.largest, known.jobs = map[string]int32{}, 0
		h.cluster(known.ComputeCluster)
	}
}

func live(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

// checkSize looks at a pod that was just made: its group must not have more than wanted.
// An operator that sees the past may make one too many, which goes again: no create can
// be made to depend on which other pods there are.
func (h *History) checkSize(made *corev1.Pod) {
	owner := metav1.GetControllerOf(made)
	at, err := naming.ParsePlace(made.Labels)
	if err != nil || owner == nil || h.clusters[owner.UID] == nil || at.Group == "" || h.past {
		return
	}
	count, wanted := h.live(owner.UID, at), h.clusters[owner.UID].largest[at.Group]
	if count > wanted {
		h.fault("%s was made though group %s has %d live pods and %d are wanted", made.Name, at.Group, count, wanted)
	}
}

// checkSuspended looks at a pod that was just made: its cluster must not be suspended.
func (h *History) checkSuspended(made *corev1.Pod) {
	owner := metav1.GetControllerOf(made)
	if owner == nil || h.clusters[owner.UID] == nil || h.past {
		return
	}
	record, err := cluster.ParseRecord(h.clusters[owner.UID].Annotations[v1beta1.AnnotationRecord])
	if err == nil && record.Suspended.Cause != "" {
		h.fault("%s was made though %s is suspended", made.Name, owner.Name)
	}
}

// live counts the pods of a group and epoch that are to stay.
func (h *History) live(owner types.UID, at naming.Place) int32 {
	count := int32(0)
	for _, pod := range h.pods {
		ref := metav1.GetControllerOf(pod)
		other, err := naming.ParsePlace(pod.Labels)
		_, drains := pod.Annotations[v1beta1.AnnotationDrain]
		if err == nil && ref != nil && ref.UID == owner && live(pod) && !drains && other.Group == at.Group && other.Epoch == at.Epoch {
			count++
		}
	}
	return count
}

// checkHeads looks for two live heads of one cluster that are both not fenced. A head
// is fenced once the record says that a later epoch has begun.
func (h *History) checkHeads() {
	heads := map[types.UID]string{}
	for _, pod := range h.pods {
		owner := metav1.GetControllerOf(pod)
		if owner == nil || h.clusters[owner.UID] == nil || pod.Labels[v1beta1.LabelRole] != v1beta1.RoleHead || !live(pod) {
			continue
		}
		epoch, _ := strconv.ParseInt(pod.Labels[v1beta1.LabelEpoch], 10, 64)
		record, err := cluster.ParseRecord(h.clusters[owner.UID].Annotations[v1beta1.AnnotationRecord])
		if err == nil && epoch < record.Epoch {
			continue
		}
		if other, ok := heads[owner.UID]; ok {
			h.fault("%s and %s are both live heads of %s", pod.Name, other, owner.Name)
		}
		heads[owner.UID] = pod.Name
	}
}

// Foreign is told of a write of the controller of a kind to obj, and complains where obj is
// not of that kind, nor belongs to one that is.
func (h *History) Foreign(controller, verb string, obj client.Object) {
	labels := obj.GetLabels()
	if labels[v1beta1.LabelNote] != "" || labels[v1beta1.LabelStore] != "" && metav1.GetControllerOf(obj) == nil {
		return // these outlive their cluster, so it does not own them
	}
	if controller == clusterKind && verb == "patch" && isStray(obj) {
		return // it lost its owner reference and gets it back
	}
	if controller == serviceKind && verb == "patch" && kindOf(obj) == "Pod" && labels[v1beta1.LabelCluster] != "" {
		return // it gives pods of clusters the label by which they get requests
	}
	if owner := metav1.GetControllerOf(obj); kindOf(obj) != controller && (owner == nil || owner.Kind != controller) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.fault("%s of %T %s, which is not the %s's", verb, obj, obj.GetName(), controller)
	}
}

// isStray reports whether an object is a pod of some cluster that has no controller.
func isStray(obj client.Object) bool {
	return kindOf(obj) == "Pod" && metav1.GetControllerOf(obj) == nil && obj.GetLabels()[v1beta1.LabelCluster] != ""
}

func (h *History) fault(format string, values ...any) {
	h.broken = append(h.broken, fmt.Sprintf(format, values...))
}

// Broken lists the rules that were broken.
func (h *History) Broken() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.broken...)
}

// Left lists what belongs to clusters and jobs that are gone.
func (h *History) Left() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var left []string
	for _, obj := range h.objects {
		if pod, isPod := obj.(*corev1.Pod); isPod && !h.holdsUp(pod) {
			continue
		}
		if owner := metav1.GetControllerOf(obj); owner != nil && hasController(owner.Kind) && h.objects[owner.UID] == nil {
			left = append(left, fmt.Sprintf("%T %s", obj, obj.GetName()))
		}
	}
	return left
}
