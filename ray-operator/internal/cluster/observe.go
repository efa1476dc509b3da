package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
)

// OwnerIndex indexes pods by the UID of their controller.
const OwnerIndex = "metadata.controller.uid"

// Presence is what is known of an object of a fixed name.
type Presence int

const (
	// Absent: nothing has the name.
	Absent Presence = iota
	// Ours: it is there and belongs to the cluster.
	Ours
	// Going: it belongs to the cluster, or to a former one of its name, and is on its
	// way out.
	Going
	// Foreign: it is there and belongs to someone else.
	Foreign
)

// Pod is a pod of the cluster with its place.
type Pod struct {
	*corev1.Pod
	At naming.Place
}

// Seen is all that a pass knows of the world. Pods are the cluster's own, by owner
// UID, in the order of their names.
type Seen struct {
	Pods    []Pod
	Service *corev1.Service
	// ServicePresence and TokenPresence tell whose the objects are.
	ServicePresence Presence
	TokenPresence   Presence
	// Record is valid when RecordError is nil.
	Record      Record
	RecordError error
	// RecordMissing tells that the record was not in its annotation and comes from
	// what mirrors it.
	RecordMissing bool
}

// observe reads the world; it writes nothing.
func (r *Reconciler) observe(ctx context.Context, cluster *v1alpha1.ComputeCluster) (Seen, error) {
	var seen Seen
	pods, err := r.ownedPods(ctx, cluster.Namespace, cluster.UID)
	if err != nil {
		return seen, err
	}
	for i := range pods {
		// Labels that cannot be read are those of a pod whose labels someone
		// changed: its place is unknown, and it is replaced like one of a former epoch.
		at, _ := naming.ParsePlace(pods[i].Labels)
		seen.Pods = append(seen.Pods, Pod{Pod: &pods[i], At: at})
	}
	slices.SortFunc(seen.Pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	seen.Record, seen.RecordError = recall(cluster, pods)
	_, recorded := cluster.Annotations[v1alpha1.AnnotationRecord]
	seen.RecordMissing = !recorded
	if err := r.confirmHead(ctx, cluster, &seen); err != nil {
		return seen, err
	}

	var service corev1.Service
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: naming.HeadService(cluster.Name)}
	if seen.ServicePresence, err = presence(r.Client.Get(ctx, key, &service), &service, cluster); err != nil {
		return seen, fmt.Errorf("read Service %s: %w", key, err)
	}
	if seen.ServicePresence == Ours {
		seen.Service = &service
	}
	seen.TokenPresence, err = r.token(ctx, cluster, seen)
	return seen, err
}

// confirmHead asks the API server for the head that the record names where the cache
// does not have it: a cache of pods that is late must not end a living head's epoch.
func (r *Reconciler) confirmHead(ctx context.Context, cluster *v1alpha1.ComputeCluster, seen *Seen) error {
	if seen.RecordError != nil || seen.Record.HeadUID == "" || headOf(seen.Pods, seen.Record.Epoch) != nil {
		return nil
	}
	at := naming.Place{Epoch: seen.Record.Epoch}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: naming.Pod(cluster.Name, cluster.UID, at)}
	if slices.ContainsFunc(seen.Pods, func(p Pod) bool { return p.Name == key.Name }) {
		return nil // it is there, and someone changed its labels
	}
	var head corev1.Pod
	switch err := r.Live.Get(ctx, key, &head); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read head pod %s: %w", key, err)
	case kube.IsOwned(&head, cluster.UID):
		seen.Pods = append(seen.Pods, Pod{Pod: &head, At: at})
	}
	return nil
}

// token looks whether the token's Secret is there. The operator has no right to list
// Secrets, so this is a live read; it is spared where the plan would make no pod.
func (r *Reconciler) token(ctx context.Context, cluster *v1alpha1.ComputeCluster, seen Seen) (Presence, error) {
	seen.TokenPresence = Ours
	if plan := Decide(cluster, seen, r.Clock.Now()); plan.Head == nil && len(plan.Create) == 0 {
		return Ours, nil
	}
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: naming.TokenSecret(cluster.Name)}
	found, err := presence(r.Live.Get(ctx, key, &secret), &secret, cluster)
	if err != nil {
		return found, fmt.Errorf("read Secret %s: %w", key, err)
	}
	return found, nil
}

func (r *Reconciler) ownedPods(ctx context.Context, namespace string, owner types.UID) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{OwnerIndex: string(owner)})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", owner, err)
	}
	return list.Items, nil
}

func presence(err error, obj client.Object, cluster *v1alpha1.ComputeCluster) (Presence, error) {
	owner := metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("ComputeCluster"))
	switch {
	case apierrors.IsNotFound(err):
		return Absent, nil
	case err != nil:
		return Absent, err
	case kube.IsPredecessors(obj, *owner):
		return Going, nil
	case !kube.IsOwned(obj, owner.UID):
		return Foreign, nil
	case obj.GetDeletionTimestamp() != nil:
		return Going, nil
	default:
		return Ours, nil
	}
}

// leaving tells whether a pod is on its way out.
func (p Pod) leaving() bool { return p.DeletionTimestamp != nil }

// finished tells whether a pod has ended as a whole and will not run again.
func (p Pod) finished() bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// ready tells whether the kubelet found the pod ready and it is to stay.
func (p Pod) ready() bool {
	condition := p.readiness()
	return !p.leaving() && !p.finished() && condition != nil && condition.Status == corev1.ConditionTrue
}

// readySince is when the kubelet found the pod ready, zero if it did not or does not say.
func (p Pod) readySince() time.Time {
	if condition := p.readiness(); condition != nil && p.ready() {
		return condition.LastTransitionTime.Time
	}
	return time.Time{}
}

func (p Pod) readiness() *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodReady {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// endedAt is when the pod's Ray container last ended, zero if it never did.
func (p Pod) endedAt() time.Time {
	for _, container := range p.Status.ContainerStatuses {
		if container.Name != v1alpha1.ContainerRay {
			continue
		}
		if ended := container.State.Terminated; ended != nil {
			return ended.FinishedAt.Time
		}
		if ended := container.LastTerminationState.Terminated; ended != nil {
			return ended.FinishedAt.Time
		}
	}
	return time.Time{}
}

// replaceable tells how long a finished pod stays before it is replaced: so that a pod
// which fails at once, again and again, comes at most once in retryPeriod.
func (p Pod) replaceable(now time.Time) time.Duration {
	return max(0, p.CreationTimestamp.Add(retryPeriod).Sub(now))
}

const retryPeriod = 10 * time.Second

func alive(pods []Pod) int {
	count := 0
	for _, pod := range pods {
		if !pod.leaving() && !pod.finished() {
			count++
		}
	}
	return count
}

// replicas is the wanted size of a group; 1 where the schema's default did not fill it.
func replicas(group *v1alpha1.WorkerGroup) int32 {
	if group.Replicas == nil {
		return 1
	}
	return *group.Replicas
}
