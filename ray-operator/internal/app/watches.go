package app

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

// caches hold only what is ours of the kinds that others use too, and without the
// fields that nobody here reads.
func caches(cfg Config) (cache.Options, error) {
	options := cache.Options{
		SyncPeriod:       &cfg.Resync,
		DefaultTransform: newTrimmer().trim,
		ByObject:         map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: trimNode}},
	}
	labelled := map[client.Object]string{&appsv1.ControllerRevision{}: v1beta1.LabelService, &discoveryv1.EndpointSlice{}: v1beta1.LabelService}
	if cfg.Kueue {
		labelled[&kueue.Workload{}] = kueue.LabelOwner
	}
	for _, kind := range cluster.Children() {
		labelled[kind] = v1beta1.LabelCluster
	}
	for kind, label := range labelled {
		required, err := labels.NewRequirement(label, selection.Exists, nil)
		if err != nil {
			return cache.Options{}, fmt.Errorf("select by the label %s: %w", label, err)
		}
		mine := cache.ByObject{Label: labels.NewSelector().Add(*required)}
		if _, is := kind.(*networkingv1.NetworkPolicy); is {
			mine = cache.ByObject{} // others' too, as they limit what a cluster reaches
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
	kinds := append(cluster.Children(), &v1beta1.ComputeCluster{}, &v1beta1.ClusterJob{}, &v1beta1.ClusterService{},
		&v1beta1.ClusterJobSchedule{}, &appsv1.ControllerRevision{}, &discoveryv1.EndpointSlice{})
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

// notItsStatus lets all through but the event of a status that a pass over the object wrote itself.
func notItsStatus(own *kube.Pending) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !own.Took(e.ObjectNew) || wake.IsBeyondStatus(wake.Change{Old: e.ObjectOld, New: e.ObjectNew})
	}}
}

// notes sees clusters go before their reconcile is woken, and lets every event through.
func notes(gone *cluster.DeletedClusters) predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		gone.Add(client.ObjectKeyFromObject(e.Object), e.Object.GetUID())
		return true
	}}
}
