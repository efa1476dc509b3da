package cluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

// kindName is the kind that owner references name.
const kindName = "ComputeCluster"

// Children returns the kinds of objects that are made for clusters and watched. The cache holds those with a cluster's
// label.
func Children() []client.Object {
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

// Watched are the kinds that are not watched everywhere.
type Watched struct {
	// Nodes needs a ClusterRole, and Queue needs Kueue's kinds.
	Nodes, Queue bool
}

// WakeRules say what wakes clusters, beside changes of their own.
func WakeRules(watched Watched) []wake.Rule {
	rules := []wake.Rule{
		{Name: "a job wakes the cluster that it refers to", Kind: &v1beta1.ClusterJob{}, Matters: wake.IsEdit, Find: clusterOfJob},
		{Name: "a policy wakes the clusters beside it", Kind: &networkingv1.NetworkPolicy{}, Matters: changesEgress, Find: clustersBeside},
	}
	for _, kind := range Children() {
		rules = append(rules, wake.Rule{Name: fmt.Sprintf("a %T wakes its cluster", kind), Kind: kind,
			Matters: wake.Matters(kind), Find: wake.Controllers(kindName)})
	}
	if watched.Queue {
		rules = append(rules, wake.Rule{Name: "a Workload wakes the clusters that it admits", Kind: &kueue.Workload{},
			Matters: wake.Always, Find: clustersOfWorkload})
	}
	if watched.Nodes {
		rules = append(rules, wake.Rule{Name: "a node wakes the clusters on it", Kind: &corev1.Node{},
			Matters: changesNode, Find: clustersOn})
	}
	return rules
}

// clusterOfJob finds the cluster that a job refers to: it may be suspended for being idle, or about to be.
func clusterOfJob(_ context.Context, _ client.Reader, c wake.Change) ([]types.NamespacedName, error) {
	job, is := c.Object().(*v1beta1.ClusterJob)
	if !is || job.Spec.ClusterRef == nil {
		return nil, nil
	}
	return []types.NamespacedName{{Namespace: job.Namespace, Name: job.Spec.ClusterRef.Name}}, nil
}

// changesEgress reports whether somebody's policy begins or ends to limit what all pods of its namespace reach.
func changesEgress(c wake.Change) bool {
	rules := func(object client.Object) bool {
		policy, is := object.(*networkingv1.NetworkPolicy)
		return is && index.RulesEgress(policy)
	}
	return rules(c.Old) != rules(c.New)
}

// clustersBeside finds the clusters of an object's namespace.
func clustersBeside(ctx context.Context, cache client.Reader, c wake.Change) ([]types.NamespacedName, error) {
	return listClusters(ctx, cache, client.InNamespace(c.Object().GetNamespace()))
}

// clustersOfWorkload finds the cluster that a Workload is for, or those that its job made.
func clustersOfWorkload(ctx context.Context, cache client.Reader, c wake.Change) ([]types.NamespacedName, error) {
	workload := c.Object()
	owner := metav1.GetControllerOfNoCopy(workload)
	switch {
	case owner == nil:
		return nil, nil
	case owner.Kind == kindName:
		return []types.NamespacedName{{Namespace: workload.GetNamespace(), Name: owner.Name}}, nil
	}
	return listClusters(ctx, cache, client.InNamespace(workload.GetNamespace()), client.MatchingFields{index.Owner: string(owner.UID)})
}

func listClusters(ctx context.Context, cache client.Reader, which ...client.ListOption) ([]types.NamespacedName, error) {
	var list v1beta1.ComputeClusterList
	if err := cache.List(ctx, &list, append(which, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list ComputeClusters: %w", err)
	}
	var names []types.NamespacedName
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return names, nil
}

// changesNode reports whether a node begins to go away, or comes back. A new one has no pods yet, unless the cache
// missed its creation: then it may be about to go when it is first seen.
func changesNode(c wake.Change) bool {
	before, was := c.Old.(*corev1.Node)
	now, is := c.New.(*corev1.Node)
	switch {
	case !is:
		return c.New == nil
	case c.Old == nil:
		return len(now.Spec.Taints) > 0 || now.Spec.Unschedulable
	}
	return was && (!equality.Semantic.DeepEqual(before.Spec, now.Spec) ||
		!equality.Semantic.DeepEqual(before.Status.Conditions, now.Status.Conditions))
}

// clustersOn finds the clusters that have pods on a node.
func clustersOn(ctx context.Context, cache client.Reader, c wake.Change) ([]types.NamespacedName, error) {
	var list corev1.PodList
	if err := cache.List(ctx, &list, client.MatchingFields{index.Node: c.Object().GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pods on node %s: %w", c.Object().GetName(), err)
	}
	var names []types.NamespacedName
	for i := range list.Items {
		if owner := metav1.GetControllerOfNoCopy(&list.Items[i]); owner != nil && owner.Kind == kindName {
			names = append(names, types.NamespacedName{Namespace: list.Items[i].Namespace, Name: owner.Name})
		}
	}
	return names, nil
}
