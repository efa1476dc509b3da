package testkit

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Create makes objects, as a user does. A ComputeCluster starts with the status that
// the schema fills in.
func (w *World) Create(objects ...client.Object) {
	w.Helper()
	for _, obj := range objects {
		obj.SetUID("")
		w.Must(w.Client.Create(w.Ctx, obj))
	}
}

// Edit changes a cluster's spec or metadata, as a user does.
func (w *World) Edit(name string, edit func(*v1beta1.ComputeCluster)) {
	w.Helper()
	found := w.Cluster(name)
	edit(found)
	w.Must(w.Client.Update(w.Ctx, found))
}

// Scale sets the replicas of the cluster's first group.
func (w *World) Scale(name string, replicas int32) {
	w.Helper()
	w.Edit(name, func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Replicas = &replicas })
}

// Delete deletes an object, as a user does.
func (w *World) Delete(obj client.Object) {
	w.Helper()
	w.Must(w.Client.Delete(w.Ctx, obj))
}

// Force removes a pod without a trace.
func (w *World) Force(pod *corev1.Pod) {
	w.Helper()
	w.Must(w.Client.Delete(w.Ctx, pod, client.GracePeriodSeconds(0)))
}

// Cluster reads a cluster.
func (w *World) Cluster(name string) *v1beta1.ComputeCluster {
	w.Helper()
	var found v1beta1.ComputeCluster
	w.Must(w.Client.Get(w.Ctx, types.NamespacedName{Namespace: Namespace, Name: name}, &found))
	return &found
}

// Pods are the pods of a cluster, in the order of their names.
func (w *World) Pods(cluster string) []*corev1.Pod {
	w.Helper()
	var list corev1.PodList
	w.Must(w.Client.List(w.Ctx, &list, client.MatchingLabels{v1beta1.LabelCluster: cluster}))
	var pods []*corev1.Pod
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// Head is the cluster's one head pod that is not leaving.
func (w *World) Head(cluster string) *corev1.Pod {
	w.Helper()
	heads := w.Workers(cluster, "")
	if len(heads) != 1 {
		w.Fatalf("cluster %s has %d heads", cluster, len(heads))
	}
	return heads[0]
}

// Workers are the pods of a group that are not leaving, lowest slot first.
func (w *World) Workers(cluster, group string) []*corev1.Pod {
	w.Helper()
	workers := slices.DeleteFunc(w.Pods(cluster), func(pod *corev1.Pod) bool {
		return pod.Labels[v1beta1.LabelGroup] != group || pod.DeletionTimestamp != nil
	})
	slices.SortFunc(workers, func(a, b *corev1.Pod) int {
		return strings.Compare(a.Labels[v1beta1.LabelSlot], b.Labels[v1beta1.LabelSlot])
	})
	return workers
}

// UIDs are the pods' UIDs, for telling whether they were touched.
func UIDs(pods []*corev1.Pod) []string {
	var uids []string
	for _, pod := range pods {
		uids = append(uids, string(pod.UID))
	}
	return uids
}

// Expect asserts a condition, given as "Type=Status Reason".
func (w *World) Expect(cluster string, conditions ...string) {
	w.Helper()
	found := w.Cluster(cluster)
	for _, wanted := range conditions {
		kind, _, _ := strings.Cut(wanted, "=")
		have := kind + "=absent"
		if condition := meta.FindStatusCondition(found.Status.Conditions, kind); condition != nil {
			have = kind + "=" + string(condition.Status)
			if strings.Contains(wanted, " ") {
				have += " " + condition.Reason
			}
		}
		if have != wanted {
			w.Fatalf("cluster %s: %s, want %s; conditions: %+v", cluster, have, wanted, found.Status.Conditions)
		}
	}
}

// Message is the text of a condition.
func (w *World) Message(cluster, kind string) string {
	w.Helper()
	condition := meta.FindStatusCondition(w.Cluster(cluster).Status.Conditions, kind)
	if condition == nil {
		return ""
	}
	return condition.Message
}

// Annotate sets an annotation of an object, as a user does.
func (w *World) Annotate(obj client.Object, name, value string) {
	w.Helper()
	w.Read(obj)
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	obj.SetAnnotations(annotations)
	w.Must(w.Client.Update(w.Ctx, obj))
}

// Read brings an object up to date.
func (w *World) Read(obj client.Object) {
	w.Helper()
	w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(obj), obj))
}

// Draining are the pods of a group that are on their planned exit.
func (w *World) Draining(cluster, group string) []*corev1.Pod {
	w.Helper()
	return slices.DeleteFunc(w.Workers(cluster, group), func(pod *corev1.Pod) bool { return pod.Annotations[v1beta1.AnnotationDrain] == "" })
}

// Taint puts a taint on a node, which is made if there is none.
func (w *World) Taint(name, taint string) {
	w.Helper()
	now := metav1.NewTime(w.Clock.Now())
	w.node(name, func(node *corev1.Node) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: taint, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now})
		node.Spec.Unschedulable = node.Spec.Unschedulable || taint == corev1.TaintNodeUnschedulable
	})
}

// Cordon marks a node as unschedulable, before anything has put the taint on it that says since when.
func (w *World) Cordon(name string) {
	w.Helper()
	w.node(name, func(node *corev1.Node) { node.Spec.Unschedulable = true })
}

func (w *World) node(name string, edit func(*corev1.Node)) {
	w.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.Client.Get(w.Ctx, client.ObjectKeyFromObject(node), node); err != nil {
		w.Create(node)
	}
	edit(node)
	w.Must(w.Client.Update(w.Ctx, node))
}

// Silence has a node fall silent: it and its pods are found unready and, as their tolerations
// say, the pods are deleted; but nothing on it stops.
func (w *World) Silence(name string) {
	w.Helper()
	w.nodeReady(name, corev1.ConditionUnknown)
	w.History.Silence(name, true)
	former := w.Kubelet.Hang
	w.Kubelet.Hang = func(pod *corev1.Pod) bool { return pod.Spec.NodeName == name || former != nil && former(pod) }
	for _, obj := range w.all() {
		if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName == name {
			w.Must(w.Kubelet.Unready(w.Ctx, pod))
			w.Delete(pod)
		}
	}
}

// Answer has a node that was silent answer again.
func (w *World) Answer(name string) {
	w.Helper()
	w.Kubelet.Hang = nil
	w.History.Silence(name, false)
	w.nodeReady(name, corev1.ConditionTrue)
}

func (w *World) nodeReady(name string, ready corev1.ConditionStatus) {
	w.Helper()
	var node corev1.Node
	w.node(name, func(there *corev1.Node) { node = *there })
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Name: name}, &node))
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(w.Clock.Now())}}
	w.Must(w.Client.Status().Update(w.Ctx, &node))
}

// Writes are the operator's writes since the count, each as "verb Kind name", and
// the count now.
func (w *World) Writes(since int) ([]string, int) {
	return w.operator.writes[since:], len(w.operator.writes)
}

// Requests are what the operator sent to the API server, each as "verb Kind name": its writes, and what it read past its cache.
func (w *World) Requests() []string { return w.operator.requests }

// Forget takes an object out of the operator's cache, though it is there.
func (w *World) Forget(obj client.Object) {
	w.view.push(Event{Type: watch.Deleted, Object: obj})
	w.view.deliver(late{})
}

// Pass reconciles a cluster once.
func (w *World) Pass(name string) {
	w.pass(request{clusterKind, types.NamespacedName{Namespace: Namespace, Name: name}})
}
