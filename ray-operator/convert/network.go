package convert

import (
	"reflect"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// portNames are the names of Ray's ports, by their numbers.
var portNames = map[int32]v1beta1.Port{
	6379: v1beta1.PortGCS, 8265: v1beta1.PortDashboard, 10001: v1beta1.PortClient,
	8000: v1beta1.PortServe, 9000: v1beta1.PortServeGRPC, 8080: v1beta1.PortMetrics,
}

// allPorts are the names in the order of their numbers.
func allPorts() []v1beta1.Port {
	return []v1beta1.Port{
		v1beta1.PortGCS, v1beta1.PortServe, v1beta1.PortMetrics, v1beta1.PortDashboard, v1beta1.PortServeGRPC, v1beta1.PortClient,
	}
}

// takeNetwork converts the NetworkPolicies of KubeRay, or says that there is one now.
func (p *clusterPart) takeNetwork() {
	p.takeTLS()
	n := p.spec.NetworkPolicy
	if n == nil {
		if p.options.KeepOpen {
			p.network().Isolation = v1beta1.Disabled
			return
		}
		p.change(p.path("networkPolicy"), "network.isolation", "everyone reached the cluster, and now only its own pods, "+
			"the operator, and its "+
			"namespace on dashboard, client and metrics; name others in network.allowFrom, or pass --keep-open")
		return
	}
	switch n.Mode {
	case "", "DenyAll", "DenyAllEgress":
		p.takeEgress(n)
	case "DenyAllIngress":
		p.noRules("egressRules", len(n.Head.EgressRules), len(n.Worker.EgressRules))
	default:
		p.refuse(p.path("networkPolicy.mode"), "ray.io knows DenyAll, DenyAllIngress and DenyAllEgress; use one of them")
	}
	if n.Mode == "DenyAllEgress" {
		p.noRules("ingressRules", len(n.Head.IngressRules), len(n.Worker.IngressRules))
		return
	}
	for i := range n.Head.IngressRules {
		p.allowFrom(&n.Head.IngressRules[i])
	}
}

// noRules refuses rules for a direction that the mode leaves open, as ray.io does.
func (p *clusterPart) noRules(kind string, ofHead, ofWorkers int) {
	if ofHead > 0 {
		p.refuse(p.path("networkPolicy.head."+kind), "the mode denies nothing in this direction; take the rules out, or "+
			"use DenyAll")
	}
	if ofWorkers > 0 {
		p.refuse(p.path("networkPolicy.worker."+kind), "the mode denies nothing in this direction; take the rules out, "+
			"or use DenyAll")
	}
}

// takeEgress needs one list for head and workers.
func (p *clusterPart) takeEgress(n *rayNetwork) {
	rules, ofWorkers := n.Head.EgressRules, n.Worker.EgressRules
	if len(rules)+len(ofWorkers) > 0 && !reflect.DeepEqual(rules, ofWorkers) {
		p.refuse(p.path("networkPolicy.head.egressRules"), "head and workers have one list in network.allowTo; give both "+
			"the same rules, "+
			"or write a NetworkPolicy that selects heliostat.dev/role")
		return
	}
	p.network().AllowTo = []v1beta1.EgressRule{}
	for _, rule := range rules {
		p.network().AllowTo = append(p.network().AllowTo, v1beta1.EgressRule{To: peersOf(rule.To), Ports: rule.Ports})
	}
}

// peersOf has an empty list where the rule is about everyone.
func peersOf(peers []networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyPeer {
	return append([]networkingv1.NetworkPolicyPeer{}, peers...)
}

func (p *clusterPart) allowFrom(rule *networkingv1.NetworkPolicyIngressRule) {
	var names []v1beta1.Port
	for _, port := range rule.Ports {
		if port.Port == nil {
			names = allPorts()
			break
		}
		found := namesOf(port)
		if len(found) == 0 {
			p.refuse(p.path("networkPolicy.head.ingressRules"), "the rule is about a port that is not Ray's; write a "+
				"NetworkPolicy that selects heliostat.dev/role: head")
			return
		}
		for _, name := range found {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(rule.Ports) == 0 {
		names = allPorts()
	}
	p.network().AllowFrom = append(p.network().AllowFrom, v1beta1.IngressRule{From: peersOf(rule.From), Ports: names})
}

// namesOf are the names of Ray's ports that a port of a policy is about, none where it is about another too.
func namesOf(port networkingv1.NetworkPolicyPort) []v1beta1.Port {
	if port.Port.Type != intstr.Int || port.EndPort != nil && *port.EndPort != port.Port.IntVal {
		return nil
	}
	if port.Protocol != nil && *port.Protocol != "TCP" {
		return nil
	}
	if name, has := portNames[port.Port.IntVal]; has {
		return []v1beta1.Port{name}
	}
	return nil
}
