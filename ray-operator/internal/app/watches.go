package app

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
)

// children are the kinds that are made for clusters and watched: the cache holds those
// that carry a cluster's label, and a change of one wakes its cluster.
func children() []client.Object {
	return []client.Object{
		&corev1.Pod{},
		&corev1.Service{},
		&corev1.PersistentVolumeClaim{},
		&networkingv1.NetworkPolicy{},
		&networkingv1.Ingress{},
		&policyv1.PodDisruptionBudget{},
		&appsv1.StatefulSet{},
	}
}

// caches hold only what is ours of the kinds that others use too, and without the
// fields that nobody here reads.
func caches(cfg Config) (cache.Options, error) {
	options := cache.Options{
		SyncPeriod:       &cfg.Resync,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: trimNode}},
	}
	labelled := map[client.Object]string{&appsv1.ControllerRevision{}: v1alpha1.LabelService}
	if cfg.Kueue {
		labelled[&kueue.Workload{}] = kueue.LabelOwner
	}
	for _, kind := range children() {
		labelled[kind] = v1alpha1.LabelCluster
	}
	for kind, label := range labelled {
		required, err := labels.NewRequirement(label, selection.Exists, nil)
		if err != nil {
			return cache.Options{}, fmt.Errorf("select by the label %s: %w", label, err)
		}
		mine := cache.ByObject{Label: labels.NewSelector().Add(*required)}
		switch kind.(type) {
		case *corev1.Pod:
			mine.Transform = trimPod
		case *networkingv1.NetworkPolicy: // others' too, as they limit what a cluster reaches
			mine = cache.ByObject{Transform: trimPolicy}
		}
		options.ByObject[kind] = mine
	}
	if err := cacheNotes(options.ByObject, cfg.Namespace); err != nil {
		return cache.Options{}, err
	}
	for _, namespace := range cfg.Namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options, nil
}

// trimPod keeps of a pod what tells how it is: of thousands of pods the start commands,
// variables, mounts and volumes are most of what the operator would hold.
func trimPod(obj any) (any, error) {
	whole, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil // a marker of a deletion that was missed
	}
	whole.ManagedFields = nil
	whole.Spec = corev1.PodSpec{
		NodeName: whole.Spec.NodeName, SchedulerName: whole.Spec.SchedulerName,
		ReadinessGates: whole.Spec.ReadinessGates, SchedulingGates: whole.Spec.SchedulingGates,
		InitContainers: trimContainers(whole.Spec.InitContainers), Containers: trimContainers(whole.Spec.Containers),
	}
	status := whole.Status
	whole.Status = corev1.PodStatus{
		Phase: status.Phase, Reason: status.Reason, Message: status.Message, PodIP: status.PodIP, StartTime: status.StartTime,
		Conditions: status.Conditions, NominatedNodeName: status.NominatedNodeName,
		InitContainerStatuses: trimStatuses(status.InitContainerStatuses), ContainerStatuses: trimStatuses(status.ContainerStatuses),
	}
	return whole, nil
}

func trimStatuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	kept := make([]corev1.ContainerStatus, 0, len(all))
	for i := range all {
		kept = append(kept, corev1.ContainerStatus{
			Name: all[i].Name, Image: all[i].Image, State: all[i].State, LastTerminationState: all[i].LastTerminationState,
			Ready: all[i].Ready, Started: all[i].Started, RestartCount: all[i].RestartCount, Resources: all[i].Resources,
		})
	}
	return kept
}

func trimContainers(all []corev1.Container) []corev1.Container {
	kept := make([]corev1.Container, 0, len(all))
	for i := range all {
		kept = append(kept, corev1.Container{
			Name: all[i].Name, Image: all[i].Image, RestartPolicy: all[i].RestartPolicy, Resources: all[i].Resources,
			StartupProbe: all[i].StartupProbe, ReadinessProbe: all[i].ReadinessProbe, Args: pod.StartedWith(all[i].Args),
		})
	}
	return kept
}

// trimPolicy keeps of others' policies what they are about, and not what they say.
func trimPolicy(obj any) (any, error) {
	policy, ok := obj.(*networkingv1.NetworkPolicy)
	if !ok {
		return obj, nil // a marker of a deletion that was missed
	}
	policy.ManagedFields = nil
	if policy.Labels[v1alpha1.LabelCluster] == "" && policy.Labels[v1alpha1.LabelService] == "" {
		policy.Annotations = nil
		policy.Spec.Ingress, policy.Spec.Egress = nil, nil
	}
	return policy, nil
}

// wakesClustersBeside wakes the clusters of a policy's namespace.
func wakesClustersBeside(clusters client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, policy client.Object) []reconcile.Request {
		var list v1alpha1.ComputeClusterList
		if err := clusters.List(ctx, &list, client.InNamespace(policy.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "cannot tell which clusters are beside a NetworkPolicy", "policy", client.ObjectKeyFromObject(policy))
		}
		var requests []reconcile.Request
		for i := range list.Items {
			requests = append(requests, request(list.Items[i].Namespace, list.Items[i].Name))
		}
		return requests
	})
}

// whatPoliciesTell lets through that somebody's policy limits what all pods of its namespace reach, or does not any more.
func whatPoliciesTell() predicate.Funcs {
	rules := func(object client.Object) bool {
		policy, is := object.(*networkingv1.NetworkPolicy)
		return is && index.RulesEgress(policy)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return rules(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return rules(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return rules(e.ObjectOld) != rules(e.ObjectNew) },
	}
}

// trimNode keeps of a node what reports whether it stays: a large cluster's nodes are most
// of what a watch of them would hold.
func trimNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil // a marker of a deletion that was missed
	}
	kept := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			CreationTimestamp: node.CreationTimestamp, DeletionTimestamp: node.DeletionTimestamp,
		},
		Spec: corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			condition.LastHeartbeatTime = metav1.Time{} // else every beat would be a change
			kept.Status.Conditions = []corev1.NodeCondition{condition}
		}
	}
	return kept, nil
}

// indexed makes the cache find objects by what they are asked for.
func indexed(ctx context.Context, indexer client.FieldIndexer) error {
	for _, field := range index.Fields() {
		if err := indexer.IndexField(ctx, field.Kind, field.Name, field.Value); err != nil {
			return fmt.Errorf("index %T by %s: %w", field.Kind, field.Name, err)
		}
	}
	return nil
}

// warmed has a standby's cache filled when it takes over. Its queues are not: nobody would take a key of an object that
// is gone out of them, and who takes over is told of all that there is anyway.
func warmed(ctx context.Context, informers cache.Informers, cfg Config) error {
	kinds := append(children(), &v1alpha1.ComputeCluster{}, &v1alpha1.ClusterJob{}, &v1alpha1.ClusterService{}, &appsv1.ControllerRevision{})
	if cfg.WatchNodes {
		kinds = append(kinds, &corev1.Node{})
	}
	if cfg.Kueue {
		kinds = append(kinds, &kueue.Workload{}, &kueue.ResourceFlavor{}, &kueue.WorkloadPriorityClass{})
	}
	for _, kind := range kinds {
		if _, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("fill the cache of %T: %w", kind, err)
		}
	}
	return nil
}

// wakesItsCluster wakes the cluster that an object belongs to, by its owner reference.
func wakesItsCluster() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return clusterOf(obj)
	})
}

// notes sees clusters go before their reconcile is woken, and lets every event through.
func notes(gone *cluster.Gone) predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		gone.Add(client.ObjectKeyFromObject(e.Object), e.Object.GetUID())
		return true
	}}
}

// notItsStatus lets all through but the event of a status that a pass over the object wrote itself.
func notItsStatus(own *kube.Pending) predicate.Predicate {
	more := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !own.Took(e.ObjectNew) || more.Update(e)
	}}
}

// whatTells are the changes of a kind that a cluster is woken for. The status of a budget,
// a policy or an Ingress is others' to keep, and nothing here reads it; of a StatefulSet's
// it is read whether its pods are ready.
func whatTells(kind client.Object) predicate.Predicate {
	switch kind.(type) {
	case *networkingv1.NetworkPolicy, *networkingv1.Ingress, *policyv1.PodDisruptionBudget:
		return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
	case *appsv1.StatefulSet:
		return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, readyChanged())
	case *corev1.Pod:
		return whatPodsTell()
	default:
		return predicate.ResourceVersionChangedPredicate{}
	}
}

// whatPodsTell lets through what changes anything that the cache keeps of a pod, which is what somebody here reads.
func whatPodsTell() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*corev1.Pod)
		now, is := e.ObjectNew.(*corev1.Pod)
		if !was || !is {
			return true
		}
		kept, keeps := *before, *now
		kept.ResourceVersion, kept.Generation = "", 0
		keeps.ResourceVersion, keeps.Generation = "", 0
		return !equality.Semantic.DeepEqual(kept, keeps)
	}}
}

// readyChanged lets a StatefulSet through whose number of ready pods has changed.
func readyChanged() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*appsv1.StatefulSet)
		now, is := e.ObjectNew.(*appsv1.StatefulSet)
		return was && is && before.Status.ReadyReplicas != now.Status.ReadyReplicas
	}}
}

func clusterOf(obj client.Object) []reconcile.Request {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil || owner.Kind != "ComputeCluster" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name}}}
}

// wakesClustersOn wakes the clusters that have pods on a node.
func wakesClustersOn(pods client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, node client.Object) []reconcile.Request {
		var list corev1.PodList
		if err := pods.List(ctx, &list, client.MatchingFields{index.Node: node.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "cannot tell whose pods are on a node", "node", node.GetName())
			return nil
		}
		var requests []reconcile.Request
		for i := range list.Items {
			requests = append(requests, clusterOf(&list.Items[i])...)
		}
		return requests
	})
}

// whatNodesTell lets through what makes a node one that goes or comes back; a new node has
// no pods yet, and one that is gone had said so before.
func whatNodesTell() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, was := e.ObjectOld.(*corev1.Node)
			now, is := e.ObjectNew.(*corev1.Node)
			return was && is && (!equality.Semantic.DeepEqual(before.Spec, now.Spec) ||
				!equality.Semantic.DeepEqual(before.Status.Conditions, now.Status.Conditions))
		},
	}
}
