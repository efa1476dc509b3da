package testkit

import (
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
)

// History is told of every revision and checks what must hold at each of them, not only
// at the end. Feed it from one watch per kind, or from a World.
type History struct {
	mu       sync.Mutex
	clusters map[types.UID]*known
	pods     map[types.UID]*corev1.Pod
	objects  map[types.UID]client.Object
	broken   []string
}

// known is a cluster and the largest size that each group may still be brought to: a
// pass may have begun before the last edit.
type known struct {
	*v1alpha1.ComputeCluster
	former map[string]int32
}

// NewHistory is an empty history.
func NewHistory() *History {
	return &History{
		clusters: map[types.UID]*known{}, pods: map[types.UID]*corev1.Pod{}, objects: map[types.UID]client.Object{},
	}
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
		return
	}
	h.objects[uid] = event.Object
	switch obj := event.Object.(type) {
	case *v1alpha1.ComputeCluster:
		h.cluster(obj)
	case *corev1.Pod:
		h.pods[uid] = obj
		if event.Type == watch.Added {
			h.checkSize(obj)
		}
	}
	h.checkHeads()
}

func (h *History) cluster(obj *v1alpha1.ComputeCluster) {
	former := map[string]int32{}
	if before := h.clusters[obj.UID]; before != nil {
		for _, group := range before.Spec.WorkerGroups {
			former[group.Name] = *group.Replicas
		}
		if before.Generation == obj.Generation {
			former = before.former
		}
	}
	h.clusters[obj.UID] = &known{obj, former}
}

func live(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

// checkSize looks at a pod that was just made: its group must not have more than wanted.
func (h *History) checkSize(made *corev1.Pod) {
	owner := metav1.GetControllerOf(made)
	at, err := naming.ParsePlace(made.Labels)
	if err != nil || owner == nil || h.clusters[owner.UID] == nil || at.Group == "" {
		return
	}
	count, wanted := h.live(owner.UID, at), h.clusters[owner.UID].ceiling(at.Group)
	if count > wanted {
		h.fault("%s was made though group %s has %d live pods and %d are wanted", made.Name, at.Group, count, wanted)
	}
}

// live counts the live pods of a group and epoch.
func (h *History) live(owner types.UID, at naming.Place) int32 {
	count := int32(0)
	for _, pod := range h.pods {
		ref := metav1.GetControllerOf(pod)
		other, err := naming.ParsePlace(pod.Labels)
		if err == nil && ref != nil && ref.UID == owner && live(pod) && other.Group == at.Group && other.Epoch == at.Epoch {
			count++
		}
	}
	return count
}

// ceiling is the most workers that a group may be brought to.
func (k *known) ceiling(group string) int32 {
	most := k.former[group]
	for _, wanted := range k.Spec.WorkerGroups {
		if wanted.Name == group {
			most = max(most, *wanted.Replicas)
		}
	}
	return most
}

// checkHeads looks for two live heads of one cluster that are both not fenced. A head
// is fenced once the record says that a later epoch has begun.
func (h *History) checkHeads() {
	heads := map[types.UID]string{}
	for _, pod := range h.pods {
		owner := metav1.GetControllerOf(pod)
		if owner == nil || h.clusters[owner.UID] == nil || pod.Labels[v1alpha1.LabelRole] != v1alpha1.RoleHead || !live(pod) {
			continue
		}
		epoch, _ := strconv.ParseInt(pod.Labels[v1alpha1.LabelEpoch], 10, 64)
		record, err := cluster.ParseRecord(h.clusters[owner.UID].Annotations[v1alpha1.AnnotationRecord])
		if err == nil && epoch < record.Epoch {
			continue
		}
		if other, ok := heads[owner.UID]; ok {
			h.fault("%s and %s are both live heads of %s", pod.Name, other, owner.Name)
		}
		heads[owner.UID] = pod.Name
	}
}

// Foreign is told of a write to obj and complains where obj does not belong to a cluster.
func (h *History) Foreign(verb string, obj client.Object) {
	if _, ours := obj.(*v1alpha1.ComputeCluster); ours {
		return
	}
	if owner := metav1.GetControllerOf(obj); owner == nil || owner.Kind != "ComputeCluster" {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.fault("%s of %T %s, which is not ours", verb, obj, obj.GetName())
	}
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

// Left lists what belongs to clusters that are gone.
func (h *History) Left() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var left []string
	for _, obj := range h.objects {
		if owner := metav1.GetControllerOf(obj); owner != nil && owner.Kind == "ComputeCluster" && h.clusters[owner.UID] == nil {
			left = append(left, fmt.Sprintf("%T %s", obj, obj.GetName()))
		}
	}
	return left
}
