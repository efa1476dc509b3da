package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// takeFront converts the head's Service and Ingress.
func (p *clusterPart) takeFront() {
	head := &p.spec.HeadGroupSpec
	made := &v1beta1.HeadServiceSpec{Type: head.ServiceType}
	if head.HeadService != nil {
		p.takeHeadService(made, head.HeadService)
	}
	if len(p.spec.HeadServiceAnnotations) > 0 {
		made.Annotations = merge(made.Annotations, p.spec.HeadServiceAnnotations)
	}
	if !isPlain(made) {
		p.made.Head.Service = made
	}
	p.takeIngress()
}

// isPlain reports whether a Service is what the operator makes without a word.
func isPlain(s *v1beta1.HeadServiceSpec) bool {
	said := len(s.Annotations)+len(s.Labels)+len(s.Ports)+len(s.LoadBalancerSourceRanges)+len(s.IPFamilies) > 0
	reached := s.IPFamilyPolicy != "" || s.LoadBalancerClass != "" || s.ExternalTrafficPolicy != "" || s.SessionAffinity != ""
	return s.Type == "" && s.Headless == nil && !said && !reached
}

func merge(under, over map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, under)
	maps.Copy(all, over)
	return all
}

func (p *clusterPart) takeHeadService(made *v1beta1.HeadServiceSpec, from *corev1.Service) {
	at := p.path("headGroupSpec.headService")
	made.Labels, made.Annotations = p.serviceLabels(at, from.Labels), from.Annotations
	if from.Name != "" {
		p.change(at+".metadata.name", "", "the head's Service is NAME-head; point clients there, or add a Service of the "+
			"other name")
	}
	if from.Spec.Type != "" {
		if made.Type != "" && made.Type != from.Spec.Type {
			p.drop(p.path("headGroupSpec.serviceType"), "headService says another type, which counts; leave this out")
		}
		made.Type = from.Spec.Type
	}
	made.Headless = ifTrue(from.Spec.ClusterIP == corev1.ClusterIPNone)
	made.ServiceReach = p.reach(at, &from.Spec)
	p.takeHeadPorts(at+".spec.ports", made, from.Spec.Ports)
}

// takeHeadPorts takes the ports that are not Ray's, which the operator adds under its own names.
func (p *clusterPart) takeHeadPorts(at string, made *v1beta1.HeadServiceSpec, ports []corev1.ServicePort) {
	for _, port := range ports {
		if name, isRays := rayPortNames[port.Port]; isRays {
			if port.NodePort != 0 {
				made.Ports = append(made.Ports, v1beta1.ServicePort{Name: name, NodePort: port.NodePort})
			}
			continue
		}
		p.refusePort(at, "head.service.ports", port)
		name := port.Name
		if _, isRays := numberOf(port.Name); isRays || port.Name == "" {
			name = portName(port.Name, port.Port)
			p.adjust(at, "head.service.ports", fmt.Sprintf("the port %d is named %s, because a port needs a name that is none of Ray's own "+
				"ports", port.Port, name))
		}
		made.Ports = append(made.Ports, v1beta1.ServicePort{Name: name, Port: port.Port, TargetPort: port.TargetPort.IntVal, NodePort: port.NodePort})
	}
}

// refusePort refuses a port of a Service of which ours has no such thing: one that leads on by a name, or is not for TCP.
func (r *report) refusePort(at, to string, port corev1.ServicePort) {
	switch {
	case port.TargetPort.StrVal != "":
		r.refuse(at, "a targetPort is a number here; write that of the port "+port.TargetPort.StrVal)
	case port.Protocol != "" && port.Protocol != corev1.ProtocolTCP:
		r.refuse(at, fmt.Sprintf("the port %d is for %s, but a port of %s is for TCP; add a Service of your own for it", port.Port,
			port.Protocol, to))
	}
}

// portName is the name of a port whose own cannot be kept.
func portName(name string, number int32) string {
	return fmt.Sprintf("%s-%d", cmp.Or(name, "port"), number)
}

// rayPortNames are the names of the ports of the head's Service.
var rayPortNames = map[int32]string{6379: "gcs", 8265: "dashboard", 10001: "client", 8080: "metrics", 8000: "serve"}

// serviceLabels are the labels of a Service without the operator's own.
func (r *report) serviceLabels(at string, labels map[string]string) map[string]string {
	kept := maps.Clone(labels)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if slices.Contains(ownLabels, key) || strings.HasPrefix(key, prefixRay) {
			r.drop(at+".metadata.labels["+key+"]", "the operator sets this label; choose another key if yours is selected by it")
			delete(kept, key)
		}
	}
	return kept
}

// reach is how a Service is reached beside its type, and says what of it has no field.
func (r *report) reach(at string, spec *corev1.ServiceSpec) v1beta1.ServiceReach {
	made := v1beta1.ServiceReach{
		LoadBalancerSourceRanges: spec.LoadBalancerSourceRanges, ExternalTrafficPolicy: spec.ExternalTrafficPolicy, SessionAffinity: spec.SessionAffinity,
		IPFamilies: spec.IPFamilies,
	}
	if spec.IPFamilyPolicy != nil {
		made.IPFamilyPolicy = *spec.IPFamilyPolicy
	}
	if spec.LoadBalancerClass != nil {
		made.LoadBalancerClass = *spec.LoadBalancerClass
	}
	if len(spec.Selector) > 0 {
		r.drop(at+".spec.selector", "the operator selects the pods")
	}
	if spec.PublishNotReadyAddresses {
		r.drop(at+".spec.publishNotReadyAddresses", "the operator publishes the head before it is ready")
	}
	for _, other := range []struct {
		field string
		given bool
	}{
		{"clusterIP", spec.ClusterIP != "" && spec.ClusterIP != corev1.ClusterIPNone}, {"clusterIPs",
			len(spec.ClusterIPs) > 1},
		{"externalIPs", len(spec.ExternalIPs) > 0}, {"externalName", spec.ExternalName != ""},
		{"loadBalancerIP", spec.LoadBalancerIP != ""}, {"healthCheckNodePort", spec.HealthCheckNodePort != 0},
		{"sessionAffinityConfig", spec.SessionAffinityConfig != nil}, {"allocateLoadBalancerNodePorts",
			spec.AllocateLoadBalancerNodePorts != nil},
		{"internalTrafficPolicy", spec.InternalTrafficPolicy != nil}, {"trafficDistribution",
			spec.TrafficDistribution != nil},
	} {
		if other.given {
			r.note(Row{Path: at + ".spec." + other.field, Verdict: Dropped, Differs: true,
				Text: "Services of the operator's have no such field; write a Service of your own beside it"})
		}
	}
	return made
}

func (p *clusterPart) takeIngress() {
	head, at := &p.spec.HeadGroupSpec, p.path("headGroupSpec")
	o := head.IngressOptions
	if o == nil {
		o = &rayIngress{}
	}
	switch {
	case !head.EnableIngress && head.IngressOptions != nil:
		p.drop(at+".ingressOptions", "without enableIngress it has no effect; set that, or leave it out")
		return
	case !head.EnableIngress:
		return
	case o.Host == "":
		p.refuse(at+".ingressOptions.host", "an Ingress without a host takes requests that are for others; set host")
		return
	}
	made := &v1beta1.IngressSpec{Host: o.Host, Path: o.Path, PathType: o.PathType,
		ClassName: p.meta.Annotations[keyIngress]}
	for i := range o.TLS {
		p.takeIngressTLS(at+".ingressOptions.tls", made, o.TLS[i].SecretName, o.TLS[i].Hosts)
	}
	for key, value := range p.meta.Annotations {
		if key != keyIngress {
			if made.Annotations == nil {
				made.Annotations = map[string]string{}
			}
			made.Annotations[key] = value // KubeRay copies all of them
		}
	}
	p.made.Head.Ingress = made
}

func (p *clusterPart) takeIngressTLS(path string, made *v1beta1.IngressSpec, secret string, hosts []string) {
	if made.TLSSecretName != "" && made.TLSSecretName != secret {
		p.refuse(path, "all hosts of the Ingress have one Secret with their certificate; make one for all of them")
	}
	made.TLSSecretName = secret
	for _, host := range hosts {
		if host != made.Host && !slices.Contains(made.AdditionalHosts, host) {
			p.note(Row{
				Path: path, To: "head.ingress.additionalHosts", Verdict: Changed, Differs: true,
				Text: "the dashboard answers under " + host + " too, for which there was a certificate only; take the host out " +
					"if it must not",
			})
			made.AdditionalHosts = append(made.AdditionalHosts, host)
		}
	}
}
