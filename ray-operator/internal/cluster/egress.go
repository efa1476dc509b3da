package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
)

// RulesEgress reports whether a NetworkPolicy is somebody else's and limits what all pods of its namespace reach.
func RulesEgress(policy *networkingv1.NetworkPolicy) bool {
	if owner := metav1.GetControllerOf(policy); owner != nil && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		return false
	}
	all := len(policy.Spec.PodSelector.MatchLabels)+len(policy.Spec.PodSelector.MatchExpressions) == 0
	return all && slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
}

// seePolicies finds a policy that rules egress, where it matters.
func (r *Reconciler) seePolicies(ctx context.Context, cluster *v1alpha1.ComputeCluster, seen *Seen) error {
	if !leavesEgress(cluster) {
		return nil
	}
	var policies networkingv1.NetworkPolicyList
	if err := r.Client.List(ctx, &policies, client.InNamespace(cluster.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the network policies beside ComputeCluster %s: %w", cluster.Name, err)
	}
	for i := range policies.Items {
		seen.EgressRuled = seen.EgressRuled || RulesEgress(&policies.Items[i])
	}
	return nil
}

// leavesEgress reports whether a cluster's spec says nothing of what its pods reach.
func leavesEgress(cluster *v1alpha1.ComputeCluster) bool {
	network := cluster.Spec.Network
	return network == nil || network.AllowTo == nil && network.CloudMetadata != v1alpha1.CloudMetadataEnabled && network.Isolation != v1alpha1.IsolationDisabled
}

// networkPolicy returns the policy around the cluster's pods. Where the namespace has one that limits what all its pods
// reach, and the spec says nothing of that, ours leaves it alone: policies add up, so it would open what that one closes.
func (p *planner) networkPolicy() *networkingv1.NetworkPolicy {
	policy := desired.NetworkPolicy(p.cluster, p.site)
	if policy != nil && p.seen.EgressRuled && leavesEgress(p.cluster) {
		policy.Spec.PolicyTypes, policy.Spec.Egress = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, nil
	}
	return policy
}
