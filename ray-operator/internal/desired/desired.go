// Package desired builds the objects of a cluster other than its pods: Services,
// Secrets, NetworkPolicies, Ingress, disruption budget, claims, and what runs a managed
// control store.
//
// In: the cluster, where it counts its epoch, and what the installation knows of
// itself. Out: whole objects, owned by the cluster unless they must outlive it, or nil
// where the spec wants none. What a Secret holds is an argument: drawing it is the
// caller's, so that this package stays pure. It never looks at what exists.
package desired

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// HeadService is the Service in front of the head of one epoch. It publishes the
// head's address before the head is ready, so that workers join the moment it
// listens; and as it selects the epoch, a former head cannot be reached through it.
func HeadService(cluster *v1beta1.ComputeCluster, epoch int64) *corev1.Service {
	wanted := v1beta1.HeadServiceSpec{}
	if cluster.Spec.Head.Service != nil {
		wanted = *cluster.Spec.Head.Service
	}
	service := &corev1.Service{
		ObjectMeta: owned(cluster, naming.HeadService(cluster.Name)),
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeClusterIP,
			Selector:                 naming.HeadSelector(cluster.Name, epoch),
			PublishNotReadyAddresses: true,
		},
	}
	if wanted.Type != "" {
		service.Spec.Type = wanted.Type
	}
	if ptr.Deref(wanted.Headless, false) {
		service.Spec.ClusterIP = corev1.ClusterIPNone
	}
	dress(&service.ObjectMeta, wanted.Labels, wanted.Annotations)
	for _, port := range naming.HeadPorts() {
		made := servicePort(port.Name, port.ContainerPort, port.ContainerPort)
		if naming.EncryptionRequired(cluster) && port.ContainerPort == naming.PortDashboard {
			made.TargetPort, made.AppProtocol = intstr.FromInt32(naming.PortDashboardTLS), new("https")
		}
		service.Spec.Ports = append(service.Spec.Ports, made)
	}
	for _, port := range furtherPorts(&wanted) {
		service.Spec.Ports = append(service.Spec.Ports, servicePort(port.Name, port.Port, targetOf(port)))
	}
	for _, port := range wanted.Ports {
		setNodePort(service, port.Name, port.NodePort)
	}
	setReach(&service.Spec, &wanted.ServiceReach)
	return service
}

// setReach sets how a Service with its ports is reached, as far as the user says it.
func setReach(service *corev1.ServiceSpec, wanted *v1beta1.ServiceReach) {
	if wanted.LoadBalancerClass != "" {
		service.LoadBalancerClass = new(wanted.LoadBalancerClass)
	}
	service.LoadBalancerSourceRanges = slices.Clone(wanted.LoadBalancerSourceRanges)
	service.ExternalTrafficPolicy = wanted.ExternalTrafficPolicy
	service.SessionAffinity = wanted.SessionAffinity
	service.IPFamilies = slices.Clone(wanted.IPFamilies)
	if wanted.IPFamilyPolicy != "" {
		service.IPFamilyPolicy = new(wanted.IPFamilyPolicy)
	}
}

// setNodePort sets the node port of a Service's port by the port's name.
func setNodePort(service *corev1.Service, name string, number int32) {
	for i := range service.Spec.Ports {
		if service.Spec.Ports[i].Name == name {
			service.Spec.Ports[i].NodePort = number
		}
	}
}

// furtherPorts returns the ports of a head's Service that are not Ray's own.
func furtherPorts(wanted *v1beta1.HeadServiceSpec) []v1beta1.ServicePort {
	return slices.DeleteFunc(slices.Clone(wanted.Ports), func(port v1beta1.ServicePort) bool {
		isRays, _ := naming.PortNumber(port.Name)
		return isRays
	})
}

func servicePort(name string, port, target int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, TargetPort: intstr.FromInt32(target), Protocol: corev1.ProtocolTCP}
}

// targetOf is the head pod's port behind a port of its Service.
func targetOf(port v1beta1.ServicePort) int32 {
	if port.TargetPort != 0 {
		return port.TargetPort
	}
	return port.Port
}

// HostsService gives the workers of groups with more than one host per replica their
// DNS names. It has no address of its own, and it publishes those of workers that are
// not ready, because they find each other while they start. It is nil where no group
// has such replicas.
func HostsService(cluster *v1beta1.ComputeCluster) *corev1.Service {
	for i := range cluster.Spec.WorkerGroups {
		if pod.Hosts(&cluster.Spec.WorkerGroups[i]) > 1 {
			return &corev1.Service{
				ObjectMeta: owned(cluster, naming.HostsService(cluster.Name)),
				Spec: corev1.ServiceSpec{
					Type:                     corev1.ServiceTypeClusterIP,
					ClusterIP:                corev1.ClusterIPNone,
					Selector:                 naming.RoleSelector(cluster.Name, v1beta1.RoleWorker),
					PublishNotReadyAddresses: true,
				},
			}
		}
	}
	return nil
}

// Ingress opens the dashboard to the outside. It is nil where the spec asks for none,
// and without authentication, because the dashboard runs code for anyone who reaches it.
func Ingress(cluster *v1beta1.ComputeCluster) *networkingv1.Ingress {
	wanted := cluster.Spec.Head.Ingress
	if wanted == nil || !pod.TokenRequired(cluster) {
		return nil
	}
	kind, path := cmp.Or(wanted.PathType, networkingv1.PathTypePrefix), cmp.Or(wanted.Path, "/")
	hosts := slices.Concat([]string{wanted.Host}, wanted.AdditionalHosts)
	ingress := &networkingv1.Ingress{
		ObjectMeta: owned(cluster, naming.Ingress(cluster.Name)),
	}
	dress(&ingress.ObjectMeta, nil, wanted.Annotations)
	for _, host := range hosts {
		ingress.Spec.Rules = append(ingress.Spec.Rules, networkingv1.IngressRule{
			Host: host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: path, PathType: new(kind), Backend: networkingv1.IngressBackend{
					Service: &networkingv1.IngressServiceBackend{
						Name: naming.HeadService(cluster.Name), Port: networkingv1.ServiceBackendPort{Name: "dashboard"},
					},
				}}},
			}},
		})
	}
	if wanted.ClassName != "" {
		class := wanted.ClassName
		ingress.Spec.IngressClassName = &class
	}
	if wanted.TLSSecretName != "" {
		ingress.Spec.TLS = []networkingv1.IngressTLS{{Hosts: hosts, SecretName: wanted.TLSSecretName}}
	}
	return ingress
}

// HeadBudget keeps evictions from taking the head, of whatever epoch. A head that is
// not ready may always be evicted, so that a broken one never holds up a node's drain.
func HeadBudget(cluster *v1beta1.ComputeCluster) *policyv1.PodDisruptionBudget {
	return budgetOf(owned(cluster, naming.HeadBudget(cluster.Name)), naming.RoleSelector(cluster.Name, v1beta1.RoleHead))
}

// budgetOf is the budget of a single pod, which may be evicted where it is not ready.
func budgetOf(meta metav1.ObjectMeta, labels map[string]string) *policyv1.PodDisruptionBudget {
	one, unready := intstr.FromInt32(1), policyv1.AlwaysAllow
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}, UnhealthyPodEvictionPolicy: &unready,
		},
	}
}

// Claim is the claim that a slot of a group has for the group's i-th
// volumeClaimTemplate, with the template's labels and annotations.
func Claim(cluster *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup, slot, i int) *corev1.PersistentVolumeClaim {
	template := group.VolumeClaimTemplates[i].DeepCopy()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: owned(cluster, naming.Claim(cluster.Name, cluster.UID, group.Name, slot, template.Name)),
		Spec:       template.Spec,
	}
	claim.Labels = naming.SlotLabels(cluster.Name, group.Name, slot)
	dress(&claim.ObjectMeta, template.Labels, template.Annotations)
	return claim
}

// TokenSecret holds the token that opens the cluster. It must not be immutable: a kubelet
// keeps what it knows of an immutable Secret as long as a pod on its node uses it, and
// would give the former token to the pods of a successor under the same name.
func TokenSecret(cluster *v1beta1.ComputeCluster, token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: owned(cluster, naming.TokenSecret(cluster.Name)),
		Type:       corev1.SecretTypeOpaque,
		StringData: map[string]string{v1beta1.TokenKey: token},
	}
}

// AuthoritySecret holds the certificate authority of a cluster with encryption or a managed Redis, PEM each.
func AuthoritySecret(cluster *v1beta1.ComputeCluster, certificate, key []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: owned(cluster, naming.AuthoritySecret(cluster.Name)),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{v1beta1.AuthorityCertificateKey: certificate, v1beta1.AuthorityKeyKey: key},
	}
}

func owned(cluster *v1beta1.ComputeCluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: cluster.Namespace, Labels: naming.ClusterLabels(cluster.Name),
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(cluster, v1beta1.GroupVersion.WithKind("ComputeCluster")),
		},
	}
}

// dress adds the user's labels and annotations. The operator's own labels win: its
// selectors hang on them.
func dress(meta *metav1.ObjectMeta, labels, annotations map[string]string) {
	own := meta.Labels
	meta.Labels = maps.Clone(labels)
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	maps.Copy(meta.Labels, own)
	meta.Annotations = maps.Clone(annotations)
}
