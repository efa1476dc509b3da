package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// deployment is the operator's; its Lease has the same name.
var deployment = types.NamespacedName{Namespace: live.ReleaseNamespace, Name: live.ReleaseName}

// operatorPods are the operator's, those on their way out included.
func operatorPods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := kubernetes.List(ctx, &pods, client.InNamespace(live.ReleaseNamespace), client.MatchingLabels{"app.kubernetes.io/component": "operator"})
	if err != nil {
		return nil, fmt.Errorf("list the operator's pods: %w", err)
	}
	return pods.Items, nil
}

// scaleOperator sets the Deployment's replicas and waits until as many pods are there.
func scaleOperator(ctx context.Context, replicas int32) {
	GinkgoHelper()
	var operator appsv1.Deployment
	Expect(kubernetes.Get(ctx, deployment, &operator)).To(Succeed())
	seen := operator.DeepCopy()
	operator.Spec.Replicas = &replicas
	Expect(kubernetes.Patch(ctx, &operator, client.MergeFrom(seen))).To(Succeed())
	eventually(ctx, fmt.Sprintf("%d operators", replicas), func(ctx context.Context) error {
		pods, err := operatorPods(ctx)
		if err == nil && len(pods) != int(replicas) {
			err = fmt.Errorf("there are %d", len(pods))
		}
		return err
	})
}

// killOperator ends the operator's process at once, wherever it is; its Deployment makes
// another.
func killOperator(ctx context.Context) {
	GinkgoHelper()
	pods, err := operatorPods(ctx)
	Expect(err).NotTo(HaveOccurred())
	for i := range pods {
		Expect(client.IgnoreNotFound(kubernetes.Delete(ctx, &pods[i], client.GracePeriodSeconds(0)))).To(Succeed())
	}
}

// leads waits until an operator works: one that nobody killed has the Lease. It has to wait for that
// of a killed one, which could not give it back, for 17 s.
func leads(ctx context.Context) error {
	return live.Until(ctx, limit, "an operator to lead", func(ctx context.Context) error {
		var lease coordinationv1.Lease
		if err := kubernetes.Get(ctx, deployment, &lease); err != nil {
			return fmt.Errorf("read the operator's Lease: %w", err)
		}
		pods, err := operatorPods(ctx)
		if err != nil {
			return err
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "nobody")
		for i := range pods {
			if pods[i].DeletionTimestamp == nil && strings.HasPrefix(holder, pods[i].Name+"_") {
				return nil
			}
		}
		return fmt.Errorf("%s has the Lease", holder)
	})
}

// successor waits until a pod is gone and there are as many workers as before.
func (e *env) successor(ctx context.Context, lost types.UID, workers int) {
	GinkgoHelper()
	eventually(ctx, "a successor", func(ctx context.Context) error {
		pods, err := kubernetes.PodsOf(ctx, e.NamespacedName, v1alpha1.RoleWorker)
		for i := range pods {
			if pods[i].UID == lost {
				err = fmt.Errorf("%s is still there", pods[i].Name)
			}
		}
		if err == nil && len(pods) != workers {
			err = fmt.Errorf("there are %d workers", len(pods))
		}
		return err
	})
}
