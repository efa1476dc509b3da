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

// Addresses are the networks of the instance with one index.
type Addresses struct{ Index int }

// Network joins the host, the control plane and the nodes.
func (a Addresses) Network() netip.Prefix { return prefix(89, a.Index, 24) }

// Host is the host's address in Network: pods reach programs of the host by it.
func (a Addresses) Host() netip.Addr { return a.inNetwork(1) }

// ControlPlane is where the API server and the DNS server listen.
func (a Addresses) ControlPlane() netip.Addr { return a.inNetwork(2) }

// Node is the address of node i, counted from 1.
func (a Addresses) Node(i int) netip.Addr { return a.inNetwork(10 + i) }

// Pods holds the pods of all nodes.
func (a Addresses) Pods() netip.Prefix { return prefix(128+a.Index, 0, 16) }

// NodePods holds the pods of node i.
func (a Addresses) NodePods(i int) netip.Prefix { return prefix(128+a.Index, i, 24) }

// Services holds the cluster addresses of Services.
func (a Addresses) Services() netip.Prefix { return prefix(192+a.Index, 0, 16) }

// APIService is the address of the Service "kubernetes".
func (a Addresses) APIService() netip.Addr { return inside(a.Services(), 1) }

// DNSService is the address of the Service "kube-dns".
func (a Addresses) DNSService() netip.Addr { return inside(a.Services(), 10) }

func (a Addresses) inNetwork(last int) netip.Addr { return inside(a.Network(), last) }

func prefix(second, third, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(second), byte(third), 0}), bits)
}

func inside(p netip.Prefix, last int) netip.Addr {
	a := p.Addr().As4()
	a[3] = byte(last)
	return netip.AddrFrom4(a)
}

// FreeIndex is the lowest index that no other instance has and none of whose
// networks meets one that the host already has a route to.
func FreeIndex(taken map[int]bool, routes []netip.Prefix) (int, error) {
	for i := range MaxInstances {
		if !taken[i] && !(Addresses{Index: i}).meet(routes) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("find free networks: all %d are taken by instances or by routes of the host (see: ip route); take an instance down", MaxInstances)
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
