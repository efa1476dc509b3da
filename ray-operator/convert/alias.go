package convert

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// aliases are Services with KubeRay's names for an object. Clusters of jobs and services have names of their own, which
// nobody knows before they are there. A head that speaks TLS has its dashboard behind another port, so it has none.
func aliases(of runtime.Object) []runtime.Object {
	switch of := of.(type) {
	case *v1beta1.ComputeCluster:
		if n := of.Spec.Network; n != nil && n.Encryption == v1beta1.Enabled {
			return nil
		}
		return []runtime.Object{headAlias(of)}
	case *v1beta1.ClusterService:
		return []runtime.Object{serveAlias(of)}
	default:
		return nil
	}
}

func alias(name, namespace string, selector map[string]string, ports []corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{Selector: selector, Ports: ports},
	}
}

// headAlias leads to the head by its own ports, by KubeRay's names of them.
func headAlias(cluster *v1beta1.ComputeCluster) *corev1.Service {
	return alias(cluster.Name+"-head-svc", cluster.Namespace, naming.RoleSelector(cluster.Name, v1beta1.RoleHead),
		[]corev1.ServicePort{
			aliasPort("gcs-server", 6379), aliasPort("dashboard", 8265), aliasPort("client", 10001), aliasPort("metrics",
				8080), aliasPort("serve", 8000),
		})
}

// serveAlias leads to the proxies that take requests now.
func serveAlias(service *v1beta1.ClusterService) *corev1.Service {
	selector := map[string]string{naming.ServeLabel(service.Name): v1beta1.ServeOn}
	port := aliasPort("serve", servePort)
	if front := service.Spec.Service; front != nil {
		for _, its := range front.Ports {
			if its.Name == portHTTP {
				port.Port = its.Port
			}
		}
	}
	port.TargetPort = intstr.FromInt32(httpPort(service.Spec.ServeConfig.Raw))
	return alias(service.Name+"-serve-svc", service.Namespace, selector, []corev1.ServicePort{port})
}

// httpPort is where the proxies listen, by the configuration of Serve.
func httpPort(serveConfig []byte) int32 {
	config := struct {
		Options struct {
			Port int32 `json:"port"`
		} `json:"http_options"`
	}{}
	if json.Unmarshal(serveConfig, &config) != nil || config.Options.Port == 0 {
		return servePort
	}
	return config.Options.Port
}

func aliasPort(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromInt32(number), Protocol: corev1.ProtocolTCP}
}
