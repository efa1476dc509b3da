package away

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// portHTTP is the name of the port of a service that takes HTTP.
const portHTTP = "http"

// findPod returns a ready pod that accepts requests for a service, and the port where it does.
func findPod(ctx context.Context, objects *kube.Objects, service *v1beta1.ClusterService) (types.NamespacedName, int, error) {
	front := &corev1.Service{}
	if err := objects.Get(ctx, client.ObjectKeyFromObject(service), front); err != nil {
		return types.NamespacedName{}, 0, kube.Because(fmt.Errorf("read Service %s: %w", service.Name, err))
	}
	port := 0
	for _, one := range front.Spec.Ports {
		if one.Name == portHTTP {
			port = one.TargetPort.IntValue()
		}
	}
	pods := &corev1.PodList{}
	if err := objects.List(ctx, pods, client.InNamespace(service.Namespace),
		client.MatchingLabels(front.Spec.Selector)); err != nil {
		return types.NamespacedName{}, 0, kube.Because(fmt.Errorf("list pods of service %s: %w", service.Name, err))
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if port > 0 && len(front.Spec.Selector) > 0 && isReady(pod) {
			return client.ObjectKeyFromObject(pod), port, nil
		}
	}
	return types.NamespacedName{}, 0, outcome.Errorf(outcome.Refused, "no pod accepts requests for service/%s now; see %s",
		service.Name, console.Again(service.Namespace, "why service/%s", service.Name))
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}
