package validate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Bounds of ServiceReach that the CRD's schema states.
const (
	mostRanges   = 64
	mostFamilies = 2
	longestRange = 64
)

var headServicePath = field.NewPath("spec", "head", "service")

// reached is a Service that a spec describes: its type, how it is reached, and the node ports of its ports, 0 for a port without one.
type reached struct {
	path      *field.Path
	kind      corev1.ServiceType
	of        *v1beta1.ServiceReach
	nodePorts []int32

	isHeadless bool
}

// ofHead returns the Service of a head, and whether the spec describes one.
func ofHead(c *v1beta1.ComputeCluster) (reached, bool) {
	s := c.Spec.Head.Service
	if s == nil {
		return reached{}, false
	}
	made := reached{path: headServicePath, kind: s.Type, of: &s.ServiceReach, isHeadless: ptr.Deref(s.Headless, false)}
	for i := range s.Ports {
		made.nodePorts = append(made.nodePorts, s.Ports[i].NodePort)
	}
	return made, true
}

// ofProxies returns the Service in front of the proxies of a service.
func ofProxies(s *serving) reached {
	made := reached{path: frontPath, kind: s.front().Type, of: &s.front().ServiceReach}
	for i := range s.front().Ports {
		made.nodePorts = append(made.nodePorts, s.front().Ports[i].NodePort)
	}
	return made
}

// ofReach completes a rule about each Service that a spec describes.
func ofReach(rule Rule, find func(r *reached, bad report)) Rule {
	rule.By = Expression
	rule.cluster = func(c *v1beta1.ComputeCluster, bad report) {
		if r, has := ofHead(c); has {
			find(&r, bad)
		}
	}
	rule.service = func(s *serving, bad report) {
		r := ofProxies(s)
		find(&r, bad)
	}
	return rule
}

// ofReachChange completes a rule about how each Service that a spec describes changes.
func ofReachChange(rule Rule, find func(before, after *reached, bad report)) Rule {
	rule.By = Expression
	rule.change = func(before, after *v1beta1.ComputeCluster, bad report) {
		was, had := ofHead(before)
		is, has := ofHead(after)
		if had && has {
			find(&was, &is, bad)
		}
	}
	rule.serviceChange = func(before, after *serving, bad report) {
		was, is := ofProxies(before), ofProxies(after)
		find(&was, &is, bad)
	}
	return rule
}

func isOutside(kind corev1.ServiceType) bool {
	return kind != "" && kind != corev1.ServiceTypeClusterIP
}

// keepsClass reports whether the class of a load balancer stays, which Kubernetes does not change.
func keepsClass(before, after *reached) bool {
	const balancer = corev1.ServiceTypeLoadBalancer
	return before.kind != balancer || after.kind != balancer || before.of.LoadBalancerClass == after.of.LoadBalancerClass
}

// keepsFamily reports whether the first family of a Service stays, which Kubernetes does not change.
func keepsFamily(before, after *reached) bool {
	was, is := before.of.IPFamilies, after.of.IPFamilies
	return len(was) == 0 || len(is) == 0 || was[0] == is[0]
}

func isHeadless(c *v1beta1.ComputeCluster) bool {
	return c.Spec.Head.Service != nil && ptr.Deref(c.Spec.Head.Service.Headless, false)
}

// reachRules are about how Services are reached.
var reachRules = []Rule{
	ofReach(Rule{
		ID: "service-reach", Field: "spec.head.service, spec.service",
		Refused: "nodePort and externalTrafficPolicy need type NodePort or LoadBalancer, and loadBalancerClass and loadBalancerSourceRanges need LoadBalancer",
		Remedy:  "set that type or leave them out",
	}, func(r *reached, bad report) {
		ofNodes := slices.ContainsFunc(r.nodePorts, isSet) || r.of.ExternalTrafficPolicy != ""
		ofBalancers := r.of.LoadBalancerClass != "" || len(r.of.LoadBalancerSourceRanges) > 0
		if ofNodes && !isOutside(r.kind) || ofBalancers && r.kind != corev1.ServiceTypeLoadBalancer {
			bad.at(r.path, string(r.kind))
		}
	}),
	ofReach(Rule{
		ID: "node-port-twice", Field: "spec.head.service.ports, spec.service.ports",
		Refused: "node ports must be unique", Remedy: "give each port its own",
	}, func(r *reached, bad report) {
		seen := map[int32]bool{}
		for i, number := range r.nodePorts {
			if isSet(number) && seen[number] {
				bad.at(r.path.Child("ports").Index(i), number)
			}
			seen[number] = true
		}
	}),
	ofReach(Rule{
		ID: "load-balancer-class", Field: "spec.head.service.loadBalancerClass, spec.service.loadBalancerClass",
		Refused: "loadBalancerClass must be a name with an optional DNS prefix and '/'", Remedy: "give one such as service.k8s.aws/nlb",
	}, func(r *reached, bad report) {
		if class := r.of.LoadBalancerClass; class != "" && len(validation.IsQualifiedName(class)) > 0 {
			bad.at(r.path.Child("loadBalancerClass"), class)
		}
	}),
	ofReach(Rule{
		ID: "source-range", Field: "spec.head.service.loadBalancerSourceRanges, spec.service.loadBalancerSourceRanges",
		Refused: "a source range must be a block of addresses in canonical form", Remedy: "give one such as 203.0.113.0/24 or 2001:db8::/32",
	}, func(r *reached, bad report) {
		each(bad, r.path, "loadBalancerSourceRanges", r.of.LoadBalancerSourceRanges, func(block *string) bool { return badBlock(*block) })
	}),
	ofReach(Rule{
		ID: "ip-family-twice", Field: "spec.head.service.ipFamilies, spec.service.ipFamilies",
		Refused: "ipFamilies must not name a family twice", Remedy: "leave one out",
	}, func(r *reached, bad report) {
		if f := r.of.IPFamilies; len(f) > 1 && f[0] == f[1] {
			bad.at(r.path.Child("ipFamilies"), string(f[0]))
		}
	}),
	ofReach(Rule{
		ID: "ip-family-policy", Field: "spec.head.service.ipFamilies, spec.service.ipFamilies",
		Refused: "two ipFamilies need ipFamilyPolicy PreferDualStack or RequireDualStack", Remedy: "set one of the two or leave a family out",
	}, func(r *reached, bad report) {
		isSingle := r.of.IPFamilyPolicy == "" || r.of.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
		if isSingle && len(r.of.IPFamilies) > 1 {
			bad.at(r.path.Child("ipFamilies"), string(r.of.IPFamilyPolicy))
		}
	}),
	ofReachChange(Rule{
		ID: "ip-family-fixed", Field: "spec.head.service.ipFamilies, spec.service.ipFamilies",
		Refused: "the first of ipFamilies must not change", Remedy: "restore it or create a new object",
	}, func(before, after *reached, bad report) {
		if !after.isHeadless && !keepsFamily(before, after) {
			bad.at(after.path, string(after.of.IPFamilies[0]))
		}
	}),
	ofReachChange(Rule{
		ID: "load-balancer-class-fixed", Field: "spec.head.service.loadBalancerClass, spec.service.loadBalancerClass",
		Refused: "loadBalancerClass must not change while type is LoadBalancer", Remedy: "set type to ClusterIP first",
	}, func(before, after *reached, bad report) {
		if !keepsClass(before, after) {
			bad.at(after.path, after.of.LoadBalancerClass)
		}
	}),
	{
		ID: "headless", Field: "spec.head.service.headless", By: Expression,
		Refused: "a headless Service must have type ClusterIP and no targetPort that differs from its port, because it resolves to pod addresses",
		Remedy:  "leave headless out or correct these",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if isHeadless(c) && (isOutside(c.Spec.Head.Service.Type) || slices.ContainsFunc(c.Spec.Head.Service.Ports, hasOtherTarget)) {
				bad.at(headServicePath.Child("headless"), true)
			}
		},
	},
	{
		ID: "headless-fixed", Field: "spec.head.service.headless", By: Expression,
		Refused: "head.service.headless is immutable", Remedy: "create a new cluster",
		change: func(before, after *v1beta1.ComputeCluster, bad report) {
			if isHeadless(before) != isHeadless(after) {
				bad.at(headServicePath, nil)
			}
		},
	},
	{
		ID: "encryption-headless", Field: "spec.head.service.headless", By: Expression,
		Refused: "head.service.headless must not be set with network.encryption, because a headless Service cannot map the dashboard's port",
		Remedy:  "leave headless out",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if isHeadless(c) && naming.EncryptionRequired(c) {
				bad.at(headServicePath, nil)
			}
		},
	},
}

// isSet reports whether a number of a port is given.
func isSet(port int32) bool { return port != 0 }

func hasOtherTarget(p v1beta1.ServicePort) bool {
	return isSet(p.TargetPort) && isSet(p.Port) && p.TargetPort != p.Port
}

func longReachTexts(r *reached, bad report) {
	text(bad, r.path, "loadBalancerClass", r.of.LoadBalancerClass, maxText)
	for i, block := range r.of.LoadBalancerSourceRanges {
		text(bad, r.path.Child("loadBalancerSourceRanges").Index(i), "", block, longestRange)
	}
}

func longReachLists(r *reached, bad report) {
	count(bad, r.path, "loadBalancerSourceRanges", len(r.of.LoadBalancerSourceRanges), mostRanges)
	count(bad, r.path, "ipFamilies", len(r.of.IPFamilies), mostFamilies)
}

func unknownReachWords(r *reached, bad report) {
	word(bad, r.path, "externalTrafficPolicy", r.of.ExternalTrafficPolicy,
		corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	word(bad, r.path, "sessionAffinity", r.of.SessionAffinity, corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)
	for i, family := range r.of.IPFamilies {
		oneOf(bad, r.path.Child("ipFamilies").Index(i), family, corev1.IPv4Protocol, corev1.IPv6Protocol)
	}
	word(bad, r.path, "ipFamilyPolicy", r.of.IPFamilyPolicy,
		corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)
}

func twiceInReach(r *reached, bad report) {
	twice(bad, r.path, "loadBalancerSourceRanges", r.of.LoadBalancerSourceRanges, func(block *string) string { return *block })
}
