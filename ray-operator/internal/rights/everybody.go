package rights

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// width has, for each family of addresses, the shortest prefix of a block that does not count as everybody.
type width struct{ v4, v6 int }

// ofClusters and ofServices are the widest blocks that may reach a cluster, which asks for a token, and a service, which
// asks for none.
var (
	ofClusters = width{v4: 8, v6: 8}
	ofServices = width{v4: 16, v6: 48}
)

// finest is how many bits longer than the widest prefix those are whose size still counts. Longer ones count like these.
const finest = 8

// size returns how much of all addresses a block has. Two of the widest blocks have as much as the next wider one, which
// is everybody.
func size(bits, widest int) int { return 1 << (finest + 1 - min(max(bits-widest+1, 0), finest+1)) }

// tooMuch is the size of the narrowest block that is everybody.
const tooMuch = 1 << (finest + 1)

// areEverybody reports whether peers are more than some clients: all pods of the Kubernetes cluster, whatever their
// selector is, or blocks that together are as large as one that is too wide.
func areEverybody(peers []networkingv1.NetworkPolicyPeer, widest width) bool {
	v4, v6 := 0, 0
	for i := range peers {
		switch block := peers[i].IPBlock; {
		case block != nil:
			prefix, err := netip.ParsePrefix(block.CIDR)
			if err != nil || prefix.Addr().Is4In6() {
				return true
			}
			if prefix.Addr().Is4() {
				v4 += size(prefix.Bits(), widest.v4)
			} else {
				v6 += size(prefix.Bits(), widest.v6)
			}
		case peers[i].NamespaceSelector != nil && !isNarrow(peers[i].NamespaceSelector):
			return true
		}
	}
	return v4 >= tooMuch || v6 >= tooMuch
}

// isNarrow reports whether a selector names what it selects. Exists, NotIn and DoesNotExist match what nobody listed.
func isNarrow(selector *metav1.LabelSelector) bool {
	return len(selector.MatchLabels) > 0 || slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Operator == metav1.LabelSelectorOpIn
	})
}

// unbounded is an expression for whether a peer p is everybody by itself, but for the size of its block.
const unbounded = "has(p.ipBlock) ? !isCIDR(p.ipBlock.cidr) : has(p.namespaceSelector) && size(p.namespaceSelector.?matchLabels.orValue({})) == 0 && " +
	"!p.namespaceSelector.?matchExpressions.orValue([]).exists(e, e.operator == 'In')"

// everybody is the counterpart of areEverybody. The lists of peers are what a list has below each of its items r.
func everybody(list, peers string, widest width) string {
	return fmt.Sprintf("%[1]s.exists(r, %[2]s.exists(p, %[3]s)) || %[1]s.map(r, %[4]s).sum() >= %[6]d || %[1]s.map(r, %[5]s).sum() >= %[6]d",
		list, peers, unbounded, sizes(peers, 4, widest.v4), sizes(peers, 6, widest.v6), tooMuch)
}

// sizes is an expression for the sum of the sizes of a family's blocks.
func sizes(peers string, family, widest int) string {
	var table []string
	for bits := widest; bits < widest+finest; bits++ {
		table = append(table, strconv.Itoa(size(bits, widest)))
	}
	return fmt.Sprintf("%s.map(p, !has(p.ipBlock) || !isCIDR(p.ipBlock.cidr) || cidr(p.ipBlock.cidr).ip().family() != %d ? 0 : "+
		"cidr(p.ipBlock.cidr).prefixLength() < %d ? %d : [%s][?cidr(p.ipBlock.cidr).prefixLength() - %[3]d].orValue(1)).sum()",
		peers, family, widest, tooMuch, strings.Join(table, ", "))
}

func findOpen(o *object, found func(field, name string)) {
	open := func(field string, is bool) {
		if is {
			found(o.path+"."+field, "")
		}
	}
	open("authentication.mode", o.cluster.Authentication != nil && o.cluster.Authentication.Mode == v1beta1.AuthenticationDisabled)
	if n := o.cluster.Network; n != nil {
		open("network.isolation", n.Isolation == v1beta1.Disabled)
		var peers []networkingv1.NetworkPolicyPeer
		for _, rule := range n.AllowFrom {
			peers = append(peers, rule.From...)
		}
		everyone := slices.ContainsFunc(n.AllowFrom, func(rule v1beta1.IngressRule) bool { return len(rule.From) == 0 })
		open("network.allowFrom", everyone || areEverybody(peers, ofClusters))
	}
	open("head.service.type", o.cluster.Head.Service != nil && isOpen(o.cluster.Head.Service.Type))
	open("head.ingress", o.cluster.Head.Ingress != nil && isPlainText(o.cluster.Head.Ingress))
	if o.service == nil || o.service.Service == nil {
		return
	}
	if isOpen(o.service.Service.Type) {
		found("spec.service.type", "")
	}
	peers := make([]networkingv1.NetworkPolicyPeer, len(o.service.Service.AllowFrom))
	for i := range peers {
		peers[i] = o.service.Service.AllowFrom[i].NetworkPolicyPeer
	}
	if areEverybody(peers, ofServices) {
		found("spec.service.allowFrom", "")
	}
}
