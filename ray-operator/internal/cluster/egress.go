package cluster

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
)

// seePolicies finds a policy that rules egress, where it matters.
func (o observer) seePolicies(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	if !leavesEgress(cluster) {
		return nil
	}
	var policies networkingv1.NetworkPolicyList
	ruling := client.MatchingFields{index.Egress: index.EgressRuled}
	if err := o.client.List(ctx, &policies, client.InNamespace(cluster.Namespace), ruling, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the network policies beside ComputeCluster %s: %w", cluster.Name, err)
	}
	seen.EgressRuled = len(policies.Items) > 0
	return nil
}

// leavesEgress reports whether a cluster's spec says nothing of what its pods reach.
func leavesEgress(cluster *v1beta1.ComputeCluster) bool {
	network := cluster.Spec.Network
	return network == nil || network.AllowTo == nil && network.CloudMetadata != v1beta1.Enabled && network.Isolation != v1beta1.Disabled
}

// networkPolicyOf returns the policy around the cluster's pods. Where the namespace has one that limits what all its
// pods reach, and the spec says nothing of that, ours leaves it alone: policies add up, so it would open what that one
// closes.
func networkPolicyOf(s situation) *networkingv1.NetworkPolicy {
	policy := desired.NetworkPolicy(s.cluster, s.site)
	if policy != nil && s.seen.EgressRuled && leavesEgress(s.cluster) {
		policy.Spec.PolicyTypes, policy.Spec.Egress = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, nil
	}
	return policy
}
