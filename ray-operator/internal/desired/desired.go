// Package desired builds the objects of a cluster other than its pods: the head's
// Service and the token's Secret.
//
// In: the cluster and, for the Service, its epoch. Out: whole objects, owned by the
// cluster. The Secret's token is an argument: drawing it is the caller's, so that
// this package stays pure.
package desired

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
)

// HeadService is the Service in front of the head of one epoch. It publishes the
// head's address before the head is ready, so that workers join the moment it
// listens; and as it selects the epoch, a former head cannot be reached through it.
func HeadService(cluster *v1alpha1.ComputeCluster, epoch int64) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: owned(cluster, naming.HeadService(cluster.Name)),
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeClusterIP,
			Selector:                 naming.HeadSelector(cluster.Name, epoch),
			PublishNotReadyAddresses: true,
		},
	}
	for _, port := range pod.HeadPorts() {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: port.Name, Port: port.ContainerPort, TargetPort: intstr.FromInt32(port.ContainerPort), Protocol: port.Protocol,
		})
	}
	return service
}

// TokenSecret holds the token that opens the cluster. It is immutable: Ray reads the
// token once, so a change would only lock new pods out.
func TokenSecret(cluster *v1alpha1.ComputeCluster, token string) *corev1.Secret {
	immutable := true
	return &corev1.Secret{
		ObjectMeta: owned(cluster, naming.TokenSecret(cluster.Name)),
		Type:       corev1.SecretTypeOpaque,
		Immutable:  &immutable,
		StringData: map[string]string{v1alpha1.TokenKey: token},
	}
}

func owned(cluster *v1alpha1.ComputeCluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: cluster.Namespace, Labels: naming.ClusterLabels(cluster.Name),
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("ComputeCluster")),
		},
	}
}
