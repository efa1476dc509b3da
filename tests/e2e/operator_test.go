package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// killOperator ends the operator's process at once, wherever it is; its Deployment makes another. It
// returns how many operators it killed that led. A killed one cannot give its Lease back, which runs out
// after 17 s. On a local Kubernetes the Lease is taken from it as soon as its process is gone.
func killOperator(ctx context.Context) (led int) {
	GinkgoHelper()
	pods, err := operatorPods(ctx)
	Expect(err).NotTo(HaveOccurred())
	holder, err := leader(ctx)
	Expect(err).NotTo(HaveOccurred())
	for i := range pods {
		if holds(&pods[i], holder) {
			led++
		}
		Expect(client.IgnoreNotFound(kubernetes.Delete(ctx, &pods[i], client.GracePeriodSeconds(0)))).To(Succeed())
	}
	if os.Getenv("LOCALKUBE") == "" {
		return led
	}
	for i := range pods {
		eventually(ctx, "the process of "+pods[i].Name+" to be gone", func(context.Context) error {
			there, err := live.HasProcess("operator", string(pods[i].UID))
			if err == nil && there {
				err = errors.New("it is there")
			}
			return err
		})
	}
	holder, err = leader(ctx)
	Expect(err).NotTo(HaveOccurred())
	for i := range pods {
		if holds(&pods[i], holder) {
			Expect(kubernetes.ExpireLease(ctx, deployment.Namespace, deployment.Name)).To(Succeed())
		}
	}
	return led
}

// upgradeOperator changes the pods of the operator's Deployment, as an upgrade of the chart does, and waits until a new one leads
// and no former one is there.
func upgradeOperator(ctx context.Context) {
	GinkgoHelper()
	former, err := operatorPods(ctx)
	Expect(err).NotTo(HaveOccurred())
	operator := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"upgraded-at":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	Expect(kubernetes.Patch(ctx, &operator, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
	for i := range former {
		gone(ctx, &former[i])
	}
	Expect(leads(ctx)).To(Succeed())
}

// leader is who has the operators' Lease, empty where nobody does.
func leader(ctx context.Context) (string, error) {
	var lease coordinationv1.Lease
	if err := client.IgnoreNotFound(kubernetes.Get(ctx, deployment, &lease)); err != nil {
		return "", fmt.Errorf("read the operator's Lease: %w", err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// holds reports whether it is the operator in a pod that has the Lease.
func holds(pod *corev1.Pod, holder string) bool { return strings.HasPrefix(holder, pod.Name+"_") }

// leads waits until an operator works: one that nobody killed has the Lease.
func leads(ctx context.Context) error {
	return live.Until(ctx, limit, "an operator to lead", func(ctx context.Context) error {
		holder, err := leader(ctx)
		if err != nil {
			return err
		}
		pods, err := operatorPods(ctx)
		if err != nil {
			return err
		}
		for i := range pods {
			if pods[i].DeletionTimestamp == nil && holds(&pods[i], holder) {
				return nil
			}
		}
		return fmt.Errorf("%q has the Lease", holder)
	})
}
