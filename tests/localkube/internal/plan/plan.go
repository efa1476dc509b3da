// Package plan says what the parts of a local cluster are called and which
// addresses they have.
//
// In: the directory of all instances, an instance's name and its index. Out:
// names and addresses, always the same for the same input, so that whatever is
// left of an instance can be found again when its own files are gone. Two
// instances never share a name or an address. Pure: it must never look at the
// machine.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// MaxNodes is the most nodes an instance can have; MaxInstances how many
// instances fit side by side. Both follow from the addresses below.
const (
	MaxNodes     = 50
	MaxInstances = 32
)

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$`)

// Names are what the parts of one instance are called. Tag holds a dot and a
// hash, neither of which a name can hold or forge: no tag is a prefix of
// another one's.
type Names struct {
	Tag  string
	link string
}

// NewNames names the parts of the instance called name whose files are under
// base. The error says what a name may look like.
func NewNames(base, name string) (Names, error) {
	if !validName.MatchString(name) {
		return Names{}, fmt.Errorf("name instance %q: use 1 to 20 of a-z, 0-9 and -, with a letter or digit at both ends", name)
	}
	sum := sha256.Sum256([]byte(base + "\x00" + name))
	hash := hex.EncodeToString(sum[:4])
	return Names{Tag: name + "." + hash, link: "lk" + hash}, nil
}

// ControlPlane is the name of the network namespace's owner that runs etcd, the
// API server and the controllers.
const ControlPlane = "cp"

// Node is the name of node i, counted from 1.
func Node(i int) string { return fmt.Sprintf("node%d", i) }

// Bridge is the host's end of the instance's network.
func (n Names) Bridge() string { return n.link + "br" }

// Link is the host's interface that leads to a node or to the control plane. It
// is at most 15 bytes, the kernel's limit.
func (n Names) Link(member string) string {
	return n.link + "-" + strings.TrimPrefix(member, "node")
}

// OwnsLink reports whether an interface of the host belongs to the instance.
func (n Names) OwnsLink(link string) bool {
	return link == n.Bridge() || strings.HasPrefix(link, n.link+"-")
}

// Netns is the name of a member's network namespace.
func (n Names) Netns(member string) string { return "lk." + n.Tag + "." + member }

// OwnsNetns reports whether a network namespace's name belongs to the instance.
func (n Names) OwnsNetns(netns string) bool { return strings.HasPrefix(netns, "lk."+n.Tag+".") }

// Cgroup is the path, in every hierarchy, under which all of the instance's
// processes are; parts lead further down.
func (n Names) Cgroup(parts ...string) string {
	return strings.Join(append([]string{"/localkube", n.Tag}, parts...), "/")
}

// Family is a family of IP addresses.
type Family string

// The two families.
const (
	IPv4 Family = "ipv4"
	IPv6 Family = "ipv6"
)

// Of reports whether an address is of the family.
func (f Family) Of(a netip.Addr) bool { return a.Is4() == (f == IPv4) }

// Everything holds all addresses of the family.
func (f Family) Everything() netip.Prefix {
	if f == IPv6 {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}

// Families are the families that an instance has, separated by a comma. The first is that of what has one address alone.
// Empty, as in the state of an older instance, is IPv4.
type Families string

// NewFamilies reads what a user asks for.
func NewFamilies(text string) (Families, error) {
	switch f := Families(text); f {
	case "ipv4", "ipv6", "ipv4,ipv6", "ipv6,ipv4":
		return f, nil
	default:
		return "", fmt.Errorf("read address families %q: use ipv4, ipv6, ipv4,ipv6 or ipv6,ipv4", text)
	}
}

// List returns the families in order.
func (f Families) List() []Family {
	if f == "" {
		return []Family{IPv4}
	}
	var all []Family
	for name := range strings.SplitSeq(string(f), ",") {
		all = append(all, Family(name))
	}
	return all
}

// Networks returns the addresses of the instance with an index, for each family in order.
func (f Families) Networks(index int) []Addresses {
	var all []Addresses
	for _, family := range f.List() {
		all = append(all, Addresses{Index: index, Family: family})
	}
	return all
}

// Addresses are the networks of the instance with one index, in one family.
type Addresses struct {
	Index  int
	Family Family
}

// Network joins the host, the control plane and the nodes.
func (a Addresses) Network() netip.Prefix { return a.prefix(89, a.Index, 24, 0, 64) }

// Host is the host's address in Network: pods reach programs of the host by it.
func (a Addresses) Host() netip.Addr { return a.inNetwork(1) }

// ControlPlane is where the API server and the DNS server listen.
func (a Addresses) ControlPlane() netip.Addr { return a.inNetwork(2) }

// Node is the address of node i, counted from 1.
func (a Addresses) Node(i int) netip.Addr { return a.inNetwork(10 + i) }

// Pods holds the pods of all nodes.
func (a Addresses) Pods() netip.Prefix { return a.prefix(128+a.Index, 0, 16, pods6, 56) }

// NodePods holds the pods of node i.
func (a Addresses) NodePods(i int) netip.Prefix {
	return a.prefix(128+a.Index, i, 24, pods6+uint16(i), 64)
}

// Services holds the cluster addresses of Services.
func (a Addresses) Services() netip.Prefix { return a.prefix(192+a.Index, 0, 16, services6, 112) }

// APIService is the address of the Service "kubernetes".
func (a Addresses) APIService() netip.Addr { return inside(a.Services(), 1) }

// DNSService is the address of the Service "kube-dns".
func (a Addresses) DNSService() netip.Addr { return inside(a.Services(), 10) }

func (a Addresses) inNetwork(last int) netip.Addr { return inside(a.Network(), last) }

// In IPv6 an instance has fd6c:6b:INDEX::/48, and in that the subnet 0 for host and nodes and these:
const (
	services6 uint16 = 0x2   // an API server takes at most 20 bits for Services
	pods6     uint16 = 0x100 // and the number of the node
)

// prefix returns 10.second.third.0 or, in IPv6, a subnet of the instance's own network.
func (a Addresses) prefix(second, third, bits int, subnet uint16, bits6 int) netip.Prefix {
	if a.Family == IPv6 {
		return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x6c, 0, 0x6b, 0, byte(a.Index), byte(subnet >> 8), byte(subnet)}), bits6)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(second), byte(third), 0}), bits)
}

func inside(p netip.Prefix, last int) netip.Addr {
	a := p.Addr().AsSlice()
	a[len(a)-1] = byte(last)
	out, _ := netip.AddrFromSlice(a) // as long as before
	return out
}

// FreeIndex is the lowest index that no other instance has and none of whose
// networks, in either family, meets one that the host already has a route to.
func FreeIndex(taken map[int]bool, routes []netip.Prefix) (int, error) {
	for i := range MaxInstances {
		if !taken[i] && !(Addresses{i, IPv4}).meet(routes) && !(Addresses{i, IPv6}).meet(routes) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("find free networks: all %d are taken by instances or by routes of the host (see: ip route; ip -6 route); take an instance down", MaxInstances)
}

func (a Addresses) meet(routes []netip.Prefix) bool {
	for _, r := range routes {
		if r.Bits() == 0 {
			continue
		}
		for _, own := range []netip.Prefix{a.Network(), a.Pods(), a.Services()} {
			if own.Overlaps(r) {
				return true
			}
		}
	}
	return false
}
