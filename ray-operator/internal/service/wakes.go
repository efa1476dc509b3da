package service

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

// kindName is the kind that owner references name.
const kindName = "ClusterService"

// WakeRules say what wakes services, beside changes of their own.
func WakeRules() []wake.Rule {
	rules := []wake.Rule{
		{Name: "a service wakes those on its cluster", Kind: &v1beta1.ClusterService{}, Matters: wake.IsEdit, Find: servicesBeside},
		{Name: "a cluster wakes the services that use it", Kind: &v1beta1.ComputeCluster{}, Matters: wake.Always, Find: servicesOfCluster},
		{Name: "a pod wakes the services of its cluster", Kind: &corev1.Pod{}, Matters: wake.ChangesPod, Find: servicesOfPod},
	}
	for _, kind := range []client.Object{
		&corev1.Service{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{}, &appsv1.ControllerRevision{},
	} {
		rules = append(rules, wake.Rule{Name: fmt.Sprintf("a %T wakes its service", kind), Kind: kind,
			Matters: wake.Matters(kind), Find: wake.Controllers(kindName)})
	}
	return rules
}

// servicesBeside finds the services on the cluster of one that changed: what that one asked for may be theirs now.
func servicesBeside(ctx context.Context, cache client.Reader, c wake.Change) ([]types.NamespacedName, error) {
	changed, is := c.Object().(*v1beta1.ClusterService)
	if !is || changed.Spec.ClusterRef == nil {
		return nil, nil
	}
	return listServices(ctx, cache, types.NamespacedName{Namespace: changed.Namespace, Name: changed.Spec.ClusterRef.Name})
}

// servicesOfCluster finds the service that a cluster was made for, and those that refer to it.
func servicesOfCluster(ctx context.Context, cache client.Reader, c wake.Change) ([]types.NamespacedName, error) {
	referring, err := listServices(ctx, cache, client.ObjectKeyFromObject(c.Object()))
	return append(wake.Owners(kindName, c.Object()), referring...), err
}

// listServices lists the names of the services that refer to a cluster.
func listServices(ctx context.Context, cache client.Reader, cluster types.NamespacedName) ([]types.NamespacedName, error) {
	var list v1beta1.ClusterServiceList
	err := cache.List(ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Cluster: cluster.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list ClusterServices that refer to ComputeCluster %s: %w", cluster, err)
	}
	var names []types.NamespacedName
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return names, nil
}

// servicesOfPod finds the services that use the cluster of a pod.
func servicesOfPod(ctx context.Context, cache client.Reader, c wake.Change) ([]types.NamespacedName, error) {
	cluster, err := wake.ClusterOf(ctx, cache, c.Object())
	if err != nil {
		return nil, err
	}
	return servicesOfCluster(ctx, cache, wake.Change{New: cluster})
}
