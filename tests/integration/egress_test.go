package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestEgress_IsTheNamespacesToRule: policies add up, so a cluster's must not open what an administrator closes for all pods.
func TestEgress_IsTheNamespacesToRule(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, "--watch-namespaces="+namespace)
	name := create(t, namespace, 1, 0)[0]
	ready(t, name)
	limits := func(want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("the cluster's policy to be about egress: %v", want), func(ctx context.Context) error {
			var policy networkingv1.NetworkPolicy
			err := shared.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name.Name + "-network"}, &policy)
			if have := policy.Spec.PolicyTypes; err == nil && slices.Contains(have, networkingv1.PolicyTypeEgress) != want {
				err = fmt.Errorf("it is about %v", have)
			}
			return err
		})
	}
	limits(true)
	closed := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "closed"},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}},
	}
	must(t, shared.Create(t.Context(), closed))
	limits(false)
	must(t, shared.Delete(t.Context(), closed))
	limits(true)
}
