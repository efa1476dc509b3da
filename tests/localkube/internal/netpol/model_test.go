package netpol

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// The nodes of the cluster in these tests.
var nodes = []string{"north", "south"}

// testCluster has two namespaces of teams and one of strangers, spread over two
// nodes, with pods of every sort that must not count.
func testCluster() Cluster {
	restart := corev1.ContainerRestartPolicyAlways
	return Cluster{
		Namespaces: []*corev1.Namespace{
			namespace("shop", "team=shop"), namespace("ops", "team=ops"), namespace("out", ""),
		},
		Pods: []*corev1.Pod{
			pod("shop/web", "north", "10.244.1.2", "role=web,tier=front", port("http", "TCP", 8080)),
			pod("shop/api", "south", "10.244.2.2", "role=api,tier=back", port("http", "TCP", 9090), port("dns", "UDP", 53)),
			pod("shop/db", "north", "10.244.1.3", "role=db,tier=back", port("sql", "", 5432)),
			pod("ops/monitor", "south", "10.244.2.3", "role=monitor"),
			pod("ops/web", "north", "10.244.1.4", "role=web"),
			pod("out/web", "south", "10.244.2.4", "role=web"),
			pod("shop/done", "north", "10.244.1.9", "role=web", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
			pod("shop/failed", "north", "10.244.1.8", "role=web", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
			pod("shop/host", "north", "10.89.0.11", "role=web", func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
			pod("shop/new", "north", "", "role=web"),
			pod("shop/mesh", "south", "10.244.2.5", "role=mesh", func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{
					{Ports: []corev1.ContainerPort{{Name: "proxy", ContainerPort: 15001}}, RestartPolicy: &restart},
					{Ports: []corev1.ContainerPort{{Name: "proxy", ContainerPort: 15002}}},
				}
			}),
		},
	}
}

// The families of the cluster in these tests.
var families = []plan.Family{plan.IPv4, plan.IPv6}

// written finds addresses and ranges of IPv4 in texts.
var written = regexp.MustCompile(`\b[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+\b`)

// in gives a text that is about addresses of IPv4 in the same words for a family. In IPv6 the four bytes come first, so that
// ranges are as wide as before: 10.1.0.0/16 is a01::/16.
func in(family plan.Family, text string) string {
	if family == plan.IPv4 {
		return text
	}
	return written.ReplaceAllStringFunc(text, func(found string) string {
		four := netip.MustParseAddr(found).As4()
		var bytes [16]byte
		copy(bytes[:], four[:])
		return netip.AddrFrom16(bytes).String()
	})
}

func namespace(name, set string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: parseLabels(set)}}
}

func pod(name, node, address, set string, options ...func(*corev1.Pod)) *corev1.Pod {
	ns, name, _ := strings.Cut(name, "/")
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: parseLabels(set)},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if address != "" {
		out.Status.PodIPs = []corev1.PodIP{{IP: in(plan.IPv6, address)}, {IP: address}}
	}
	for _, option := range options {
		option(out)
	}
	return out
}

func port(name string, protocol corev1.Protocol, number int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := &p.Spec.Containers[0]
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: name, Protocol: protocol, ContainerPort: number})
	}
}

func parseLabels(set string) map[string]string {
	out := map[string]string{}
	for pair := range strings.SplitSeq(set, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			out[key] = value
		}
	}
	return out
}

// policies reads specs of policies for the namespace shop, separated by "---".
func policies(t *testing.T, specs string) []*networkingv1.NetworkPolicy {
	t.Helper()
	var out []*networkingv1.NetworkPolicy
	for i, text := range strings.Split(strings.ReplaceAll(specs, "\t", "  "), "---\n") {
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("p", i)}}
		if err := yaml.UnmarshalStrict([]byte(text), &policy.Spec); err != nil {
			t.Fatalf("read policy: %v\n%s", err, text)
		}
		out = append(out, policy)
	}
	return out
}

// model is what the nodes' kernels would do with their rulesets, in one family.
type model struct {
	t        *testing.T
	family   plan.Family
	pods     map[string]netip.Addr
	rulesets map[string]Ruleset
}

func newModel(t *testing.T, cluster Cluster, family plan.Family) model {
	m := model{t: t, family: family, pods: map[string]netip.Addr{}, rulesets: map[string]Ruleset{}}
	for _, p := range cluster.Pods {
		for _, ip := range p.Status.PodIPs {
			if address := netip.MustParseAddr(ip.IP); family.Of(address) {
				m.pods[p.Namespace+"/"+p.Name] = address
			}
		}
	}
	for _, node := range nodes {
		m.rulesets[node] = Compile(cluster, node, families...)
	}
	return m
}

// passes says whether a connection like "shop/web > shop/db tcp:5432" opens. An
// end is a pod or an address.
func (m model) passes(connection string) bool {
	m.t.Helper()
	fields := strings.Fields(connection)
	if len(fields) != 4 {
		m.t.Fatalf("not a connection: %q", connection)
	}
	protocol, text, _ := strings.Cut(fields[3], ":")
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		m.t.Fatalf("not a connection: %q", connection)
	}
	p := packet{m.end(fields[0]), m.end(fields[2]), protocol, uint16(number)}
	for _, node := range nodes {
		if !p.passes(m.t, m.rulesets[node]) {
			return false
		}
	}
	return true
}

func (m model) end(name string) netip.Addr {
	m.t.Helper()
	if address, known := m.pods[name]; known {
		return address
	}
	address, err := netip.ParseAddr(in(m.family, name))
	if err != nil {
		m.t.Fatalf("neither a pod nor an address: %q", name)
	}
	return address
}

// packet opens a connection.
type packet struct {
	from, to netip.Addr
	protocol string
	port     uint16
}

func (p packet) passes(t *testing.T, rules Ruleset) bool {
	for _, chain := range rules.Chains {
		own, other := p.to, p.from
		if chain.Direction == Egress {
			own, other = p.from, p.to
		}
		if own != chain.Address || other == chain.Address {
			continue
		}
		if !slices.ContainsFunc(chain.Rules, func(r Rule) bool { return p.matches(t, rules, r, other) }) {
			return false
		}
	}
	return true
}

func (p packet) matches(t *testing.T, rules Ruleset, r Rule, other netip.Addr) bool {
	if r.Protocol != "" && r.Protocol != p.protocol || r.Port != 0 && (p.port < r.Port || p.port > r.EndPort) {
		return false
	}
	if r.Set == "" {
		return true
	}
	i := slices.IndexFunc(rules.Sets, func(s Set) bool { return s.Name == r.Set })
	if i < 0 || rules.Sets[i].Kind != r.Kind || !rules.Sets[i].Family.Of(other) {
		t.Fatalf("rule %v names a set that there is not, or of another kind or family", r)
	}
	members := rules.Sets[i].Members
	switch r.Kind {
	case PortSet:
		return slices.Contains(members, fmt.Sprintf("%s,%s:%d", other, p.protocol, p.port))
	case NetSet:
		return mostSpecific(members, other)
	default:
		return slices.Contains(members, other.String())
	}
}

// mostSpecific is how an ipset of ranges decides: the narrowest range counts.
func mostSpecific(members []string, address netip.Addr) bool {
	bits, inside := -1, false
	for _, member := range members {
		text, cut := strings.CutSuffix(member, " nomatch")
		if prefix := netip.MustParsePrefix(text); prefix.Contains(address) && prefix.Bits() > bits {
			bits, inside = prefix.Bits(), !cut
		}
	}
	return inside
}
