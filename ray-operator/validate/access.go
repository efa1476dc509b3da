package validate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// maps of labels outside of templates, each with its path and its expression.
func withLabels(c *v1beta1.ComputeCluster, visit func(path *field.Path, labels map[string]string)) {
	if d := c.Spec.PodDefaults; d != nil {
		visit(field.NewPath("spec", "podDefaults", "labels"), d.Labels)
	}
	if s := c.Spec.Head.Service; s != nil {
		visit(field.NewPath("spec", "head", "service", "labels"), s.Labels)
	}
}

func withAnnotations(c *v1beta1.ComputeCluster, visit func(path *field.Path, annotations map[string]string)) {
	if d := c.Spec.PodDefaults; d != nil {
		visit(field.NewPath("spec", "podDefaults", "annotations"), d.Annotations)
	}
	if s := c.Spec.Head.Service; s != nil {
		visit(field.NewPath("spec", "head", "service", "annotations"), s.Annotations)
	}
	if g := c.Spec.Head.Ingress; g != nil {
		visit(field.NewPath("spec", "head", "ingress", "annotations"), g.Annotations)
	}
}

// annotated are the fields of annotations outside of templates.
const annotated = "spec.podDefaults.annotations, spec.head.service.annotations, spec.head.ingress.annotations"

// accessRules are about what surrounds the pods: defaults, Service, Ingress, network.
var accessRules = []Rule{
	{
		ID: "label-grammar", Field: "spec.podDefaults.labels, spec.podDefaults.nodeSelector, spec.head.service.labels", By: Policy,
		Refused: labelGrammar, Remedy: "correct the key or the value",
		Holds: "[variables.cluster.?podDefaults.?labels, variables.cluster.?podDefaults.?nodeSelector, variables.cluster.?head.?service.?labels].all(o, " +
			fmt.Sprintf(goodLabels, "o.orValue({})") + ")",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			check := func(path *field.Path, labels map[string]string) { keys(bad, path, "", labels, badLabels(labels)) }
			withLabels(c, check)
			if d := c.Spec.PodDefaults; d != nil {
				check(field.NewPath("spec", "podDefaults", "nodeSelector"), d.NodeSelector)
			}
		},
	},
	{
		ID: "annotation-grammar", Field: annotated, By: Policy,
		Refused: "a key of an annotation must have Kubernetes' syntax", Remedy: "use letters, digits, '-', '_' and '.', at most 63, with an optional DNS prefix and '/'",
		Holds: "[variables.cluster.?podDefaults.?annotations, variables.cluster.?head.?service.?annotations, variables.cluster.?head.?ingress.?annotations].all(o, " +
			fmt.Sprintf(goodAnnotations, "o.orValue({})") + ")",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			withAnnotations(c, func(path *field.Path, annotations map[string]string) { keys(bad, path, "", annotations, badAnnotation) })
		},
	},
	{
		ID: "pull-secret", Field: "spec.podDefaults.imagePullSecrets", By: Policy,
		Refused: "an entry must name a Secret", Remedy: "give its name",
		Holds: "variables.cluster.?podDefaults.?imagePullSecrets.orValue([]).all(s, s.?name.orValue('') != '')",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if d := c.Spec.PodDefaults; d != nil {
				each(bad, nil, "spec.podDefaults.imagePullSecrets", d.ImagePullSecrets,
					func(s *corev1.LocalObjectReference) bool { return s.Name == "" })
			}
		},
	},
	{
		ID: "own-variable", Field: "spec.podDefaults.env", By: Policy,
		Refused: "the operator sets " + strings.Join(ownVariables, ", "), Remedy: "leave them out",
		Holds: "variables.cluster.?podDefaults.?env.orValue([]).all(e, !(e.name in " + list(ownVariables) + "))",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if d := c.Spec.PodDefaults; d != nil {
				each(bad, nil, "spec.podDefaults.env", d.Env, isOwnVariable)
			}
		},
	},
	{
		ID: "open-public", Field: "spec.authentication.mode", By: Policy,
		Refused: "without authentication the cluster must have no public address, because anyone who reaches it can run code",
		Remedy:  "set authentication.mode to Token; or make head.service a ClusterIP, and give allowFrom no empty from and no ipBlock wider than /8",
		Holds: "variables.cluster.?authentication.?mode.orValue('') != 'Disabled' || (variables.cluster.?head.?service.?type.orValue('ClusterIP') == 'ClusterIP' && " +
			"variables.cluster.?network.?allowFrom.orValue([]).all(r, size(r.from) > 0 && r.from.all(p, !has(p.ipBlock) || !isCIDR(p.ipBlock.cidr) || cidr(p.ipBlock.cidr).prefixLength() >= 8)))",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if c.Spec.Authentication != nil && c.Spec.Authentication.Mode == v1beta1.AuthenticationDisabled && isPublic(c) {
				bad.at(field.NewPath("spec", "authentication", "mode"), c.Spec.Authentication.Mode)
			}
		},
	},
	{
		ID: "network-block", Field: "spec.network.allowFrom[*].from[*].ipBlock, spec.network.allowTo[*].to[*].ipBlock", By: Policy,
		Refused: badBlocks, Remedy: giveBlocks, Holds: peerExpression(goodBlocks), cluster: peers(hasBadBlock),
	},
	{
		ID: "network-port", Field: "spec.network.allowTo[*].ports", By: Policy,
		Refused: "a port must have protocol TCP, UDP or SCTP, a number from 1 to 65535 or a name, and endPort only with a number that is not above it", Remedy: "correct it",
		Holds: "variables.cluster.?network.?allowTo.orValue([]).all(r, r.?ports.orValue([]).all(p, p.?protocol.orValue('TCP') in ['', 'TCP', 'UDP', 'SCTP'] && " +
			"(!has(p.port) || type(p.port) != int || (p.port >= 1 && p.port <= 65535)) && " +
			"(!has(p.port) || type(p.port) != string || (p.port.size() <= 15 && p.port.matches('^[a-z0-9]+(-[a-z0-9]+)*$') && p.port.matches('[a-z]'))) && " +
			"(!has(p.endPort) || (has(p.port) && type(p.port) == int && p.endPort >= p.port && p.endPort <= 65535))))",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if c.Spec.Network != nil {
				for i := range c.Spec.Network.AllowTo {
					each(bad, field.NewPath("spec", "network", "allowTo").Index(i), "ports", c.Spec.Network.AllowTo[i].Ports, badPolicyPort)
				}
			}
		},
	},
}

// widestBlock is the shortest prefix of an ipBlock that is not taken for the Internet.
const widestBlock = 8

// isPublic reports whether a cluster's ports may be reached from outside of the Kubernetes cluster.
func isPublic(c *v1beta1.ComputeCluster) bool {
	if s := c.Spec.Head.Service; s != nil && s.Type != "" && s.Type != corev1.ServiceTypeClusterIP {
		return true
	}
	return c.Spec.Network != nil && slices.ContainsFunc(c.Spec.Network.AllowFrom, func(rule v1beta1.IngressRule) bool {
		return len(rule.From) == 0 || slices.ContainsFunc(rule.From, func(p networkingv1.NetworkPolicyPeer) bool {
			if p.IPBlock == nil {
				return false
			}
			block, err := netip.ParsePrefix(p.IPBlock.CIDR)
			return err == nil && block.Bits() < widestBlock
		})
	})
}

func isOwnVariable(e *corev1.EnvVar) bool { return slices.Contains(ownVariables, e.Name) }

func headPortNumbers() []int32 {
	var numbers []int32
	for _, port := range naming.HeadPorts() {
		numbers = append(numbers, port.ContainerPort)
	}
	return numbers
}

func peers(wrong func(*networkingv1.NetworkPolicyPeer) bool) func(*v1beta1.ComputeCluster, report) {
	return func(c *v1beta1.ComputeCluster, bad report) {
		if c.Spec.Network == nil {
			return
		}
		at := field.NewPath("spec", "network")
		for i := range c.Spec.Network.AllowFrom {
			each(bad, at.Child("allowFrom").Index(i), "from", c.Spec.Network.AllowFrom[i].From, wrong)
		}
		for i := range c.Spec.Network.AllowTo {
			each(bad, at.Child("allowTo").Index(i), "to", c.Spec.Network.AllowTo[i].To, wrong)
		}
	}
}

func peerExpression(holds string) string {
	return "variables.cluster.?network.?allowFrom.orValue([]).all(r, r.from.all(p, " + holds + ")) && " +
		"variables.cluster.?network.?allowTo.orValue([]).all(r, r.to.all(p, " + holds + "))"
}

// Words and the expression of the rules about blocks of addresses.
const (
	badBlocks  = "an ipBlock's cidr and except must be blocks in canonical form"
	giveBlocks = "give them such as 10.0.0.0/8 or 2001:db8::/32"
	goodBlocks = "!has(p.ipBlock) || ([p.ipBlock.cidr] + p.ipBlock.?except.orValue([])).all(b, isCIDR(b) && string(cidr(b).masked()) == b)"
)

func hasBadBlock(p *networkingv1.NetworkPolicyPeer) bool {
	return p.IPBlock != nil && (badBlock(p.IPBlock.CIDR) || slices.ContainsFunc(p.IPBlock.Except, badBlock))
}

func badBlock(block string) bool { return len(validation.IsValidCIDR(field.NewPath(""), block)) > 0 }

var policyProtocols = []corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}

func badPolicyPort(p *networkingv1.NetworkPolicyPort) bool {
	if p.Protocol != nil && !slices.Contains(policyProtocols, *p.Protocol) || p.Port != nil && badPort(p.Port) {
		return true
	}
	counted := p.Port != nil && p.Port.Type == intstr.Int
	return p.EndPort != nil && (!counted || *p.EndPort < p.Port.IntVal || *p.EndPort > 65535)
}

func badPort(p *intstr.IntOrString) bool {
	if p.Type == intstr.Int {
		return p.IntVal < 1 || p.IntVal > 65535
	}
	return len(validation.IsValidPortName(p.StrVal)) > 0
}
