package corpus

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

type (
	cluster   = v1beta1.ComputeCluster
	group     = v1beta1.WorkerGroup
	tmpl      = corev1.PodTemplateSpec
	container = corev1.Container
	edit      = func(*cluster)
)

func ptr[T any](value T) *T { return &value }

func quantities(pairs ...string) map[string]resource.Quantity {
	list := map[string]resource.Quantity{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list[pairs[i]] = resource.MustParse(pairs[i+1])
	}
	return list
}

func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, quantity := range quantities(pairs...) {
		list[corev1.ResourceName(name)] = quantity
	}
	return list
}

// longVariables makes variables with values of a length.
func longVariables(n, length int) []corev1.EnvVar {
	all := make([]corev1.EnvVar, n)
	for i := range all {
		all[i] = corev1.EnvVar{Name: fmt.Sprint("V", i), Value: strings.Repeat("x", length)}
	}
	return all
}

// spec edits the spec, and inGroup its first group.
func spec(change func(*v1beta1.ComputeClusterSpec)) edit {
	return func(c *cluster) { change(&c.Spec) }
}

func inGroup(change func(*group)) edit {
	return func(c *cluster) { change(&c.Spec.WorkerGroups[0]) }
}

func replicas(least, now, most *int32) edit {
	return inGroup(func(g *group) { g.MinReplicas, g.Replicas, g.MaxReplicas = least, now, most })
}

func size(pairs ...string) edit { return inGroup(func(g *group) { g.Size = resources(pairs...) }) }

func headSize(pairs ...string) edit {
	return func(c *cluster) { c.Spec.Head.Size = resources(pairs...) }
}

func logical(pairs ...string) edit {
	return inGroup(func(g *group) { g.RayResources = quantities(pairs...) })
}

func option(name, value string) edit {
	return inGroup(func(g *group) { g.RayStartParams = map[string]string{name: value} })
}

func rayLabel(key, value string) edit {
	return inGroup(func(g *group) { g.Labels = map[string]string{key: value} })
}

func defaults(change func(*v1beta1.PodDefaults)) edit {
	return func(c *cluster) {
		if c.Spec.PodDefaults == nil {
			c.Spec.PodDefaults = &v1beta1.PodDefaults{}
		}
		change(c.Spec.PodDefaults)
	}
}

func service(change func(*v1beta1.HeadServiceSpec)) edit {
	return func(c *cluster) {
		if c.Spec.Head.Service == nil {
			c.Spec.Head.Service = &v1beta1.HeadServiceSpec{}
		}
		change(c.Spec.Head.Service)
	}
}

func servicePorts(ports ...v1beta1.ServicePort) edit {
	return service(func(s *v1beta1.HeadServiceSpec) { s.Ports = ports })
}

func ingress(change func(*v1beta1.IngressSpec)) edit {
	return func(c *cluster) {
		if c.Spec.Head.Ingress == nil {
			c.Spec.Head.Ingress = &v1beta1.IngressSpec{Host: "ray.example.com"}
		}
		change(c.Spec.Head.Ingress)
	}
}

func authentication(mode v1beta1.AuthenticationMode, secret string) edit {
	return func(c *cluster) { c.Spec.Authentication = &v1beta1.Authentication{Mode: mode, SecretName: secret} }
}

func allowFrom(ports []v1beta1.Port, peers ...networkingv1.NetworkPolicyPeer) edit {
	return func(c *cluster) {
		c.Spec.Network = &v1beta1.Network{AllowFrom: []v1beta1.IngressRule{{From: append([]networkingv1.NetworkPolicyPeer{}, peers...), Ports: ports}}}
	}
}

func allowTo(peers []networkingv1.NetworkPolicyPeer, ports ...networkingv1.NetworkPolicyPort) edit {
	return func(c *cluster) {
		c.Spec.Network = &v1beta1.Network{AllowTo: []v1beta1.EgressRule{{To: append([]networkingv1.NetworkPolicyPeer{}, peers...), Ports: ports}}}
	}
}

func cloudMetadata(c *cluster) {
	c.Spec.Network = &v1beta1.Network{CloudMetadata: v1beta1.Enabled}
}

func block(cidr string, except ...string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
}

// workers are a number of a group's replicas.
func workers(n int32) *intstr.IntOrString { return ptr(intstr.FromInt32(n)) }

// percent is a text in the place of a number of replicas.
func percent(text string) *intstr.IntOrString { return ptr(intstr.FromString(text)) }

func upgrade(kind v1beta1.ClusterUpgradeType, rolling *v1beta1.RollingWorkers) edit {
	return func(c *cluster) {
		c.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: kind, RollingWorkers: rolling}
	}
}

// claim adds a good claim with a change to the first group.
func claim(changes ...func(*corev1.PersistentVolumeClaim)) edit {
	return inGroup(func(g *group) {
		c := corev1.PersistentVolumeClaim{}
		c.Name = "data"
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		c.Spec.Resources.Requests = resources("storage", "1Gi")
		for _, change := range changes {
			change(&c)
		}
		g.VolumeClaimTemplates = append(g.VolumeClaimTemplates, c)
	})
}

// ensured is a template with a sidecar and a Ray container.
func ensured(t **tmpl) (*tmpl, *container) {
	if *t == nil {
		*t = &tmpl{}
	}
	if len((*t).Spec.Containers) == 0 {
		(*t).Spec.Containers = []container{{Name: "side", Image: "side"}, {Name: "ray"}}
	}
	return *t, &(*t).Spec.Containers[len((*t).Spec.Containers)-1]
}

// template edits the template of the first group and its Ray container, headTemplate
// those of the head.
func template(change func(*tmpl, *container)) edit {
	return inGroup(func(g *group) { change(ensured(&g.Template)) })
}

func headTemplate(change func(*tmpl, *container)) edit {
	return func(c *cluster) { change(ensured(&c.Spec.Head.Template)) }
}

func inPod(change func(*corev1.PodSpec)) edit {
	return template(func(t *tmpl, _ *container) { change(&t.Spec) })
}

func inRay(change func(*container)) edit {
	return template(func(_ *tmpl, c *container) { change(c) })
}

func inSide(change func(*container)) edit {
	return template(func(t *tmpl, _ *container) { change(&t.Spec.Containers[0]) })
}

func port(number int32) corev1.ContainerPort { return corev1.ContainerPort{ContainerPort: number} }

// both is edits one after the other.
func both[T any](edits ...func(T)) func(T) {
	return func(object T) {
		for _, e := range edits {
			e(object)
		}
	}
}
