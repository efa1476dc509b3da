// Package network makes the network of an instance: a bridge on the host, a
// network namespace for each member, and the routes between host, members, pods
// and services.
//
// In: an instance's names and addresses. Out: interfaces, namespaces, routes;
// every Ensure may be repeated. It must never change a firewall, a setting of
// the host, or an interface that is not the instance's.
package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// netnsDir has the namespaces of all instances. It is not /run/netns, because the first "ip netns add" of the machine hides
// what is mounted there.
const netnsDir = "/run/localkube"

// inside is the name of a member's one interface in its own namespace.
const inside = "eth0"

// Network is the network of one instance.
type Network struct {
	Names     plan.Names
	Addresses []plan.Addresses // of each family, the first one first
}

// of returns an address of each family.
func (n Network) of(address func(plan.Addresses) netip.Addr) []netip.Addr {
	var all []netip.Addr
	for _, a := range n.Addresses {
		all = append(all, address(a))
	}
	return all
}

// Host returns the host's addresses, one of each family.
func (n Network) Host() []netip.Addr { return n.of(plan.Addresses.Host) }

// ControlPlane returns the addresses of the control plane, one of each family.
func (n Network) ControlPlane() []netip.Addr { return n.of(plan.Addresses.ControlPlane) }

// Node returns the addresses of a node, one of each family.
func (n Network) Node(i int) []netip.Addr {
	return n.of(func(a plan.Addresses) netip.Addr { return a.Node(i) })
}

// File is the file that holds a member's namespace.
func (n Network) File(member string) string { return filepath.Join(netnsDir, n.Names.Netns(member)) }

// HostRoutes are the destinations of all routes of the host.
func HostRoutes() ([]netip.Prefix, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list routes of the host: %w", err)
	}
	var all []netip.Prefix
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		if addr, ok := netip.AddrFromSlice(r.Dst.IP); ok {
			ones, _ := r.Dst.Mask.Size()
			all = append(all, netip.PrefixFrom(addr.Unmap(), ones))
		}
	}
	return all, nil
}

// EnsureBridge makes the host's end.
func (n Network) EnsureBridge() error {
	link, err := ensureLink(n.Names.Bridge(), func(a netlink.LinkAttrs) error {
		return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: a})
	})
	if err == nil {
		err = setAddresses(netlink.AddrReplace, link, n.Host())
	}
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("make bridge %s: %w", n.Names.Bridge(), err)
	}
	return nil
}

// setAddresses gives an interface its addresses in the network of host and members. Nothing else can have them: nobody is
// asked whether it does, which would take a second or two of IPv6.
func setAddresses(replace func(netlink.Link, *netlink.Addr) error, link netlink.Link, addrs []netip.Addr) error {
	for _, addr := range addrs {
		a := &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(addr, 24))}
		if addr.Is6() {
			a = &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(addr, 64)), Flags: unix.IFA_F_NODAD}
		}
		if err := replace(link, a); err != nil {
			return fmt.Errorf("set address %s (is its family off on this machine?): %w", addr, err)
		}
	}
	return nil
}

func ensureLink(name string, add func(netlink.LinkAttrs) error) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if err == nil {
		return link, nil
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	if err := add(attrs); err != nil {
		return nil, err
	}
	return netlink.LinkByName(name)
}

// EnsureMember makes a member's namespace with one interface on the bridge, and
// the given routes inside it. A partitioned member is joined again.
func (n Network) EnsureMember(member string, addrs []netip.Addr, routes []Route) error {
	if err := n.ensureNamespace(member); err != nil {
		return fmt.Errorf("make network namespace of %s: %w", member, err)
	}
	ns, err := netns.GetFromPath(n.File(member))
	if err != nil {
		return fmt.Errorf("open network namespace of %s: %w", member, err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return fmt.Errorf("open network namespace of %s: %w", member, err)
	}
	defer h.Close()
	if err := n.ensurePair(h, ns, member, addrs[0]); err != nil {
		return fmt.Errorf("connect %s to bridge %s: %w", member, n.Names.Bridge(), err)
	}
	if err := configure(h, addrs, routes); err != nil {
		return fmt.Errorf("configure the network of %s: %w", member, err)
	}
	return nil
}

// ensureNamespace replaces what a killed command has left half made: the file
// without the namespace on it.
func (n Network) ensureNamespace(member string) error {
	var st unix.Statfs_t
	err := unix.Statfs(n.File(member), &st)
	if err == nil && st.Type == unix.NSFS_MAGIC {
		return nil
	}
	if err == nil {
		if err := os.Remove(n.File(member)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(n.File(member), nil, 0o444); err != nil {
		return err
	}
	return onThread(func() error {
		ns, err := netns.New()
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := n.prepareNamespace(); err != nil {
			return err
		}
		return unix.Mount("/proc/thread-self/ns/net", n.File(member), "", unix.MS_BIND, "")
	})
}

// prepareNamespace makes the namespace of this thread that of a router. Its settings have their files in this thread's /proc.
// In IPv6 the ends of pods that a node will have are used at once, without a question whether another one has their address.
func (n Network) prepareNamespace() error {
	settings := map[plan.Family]map[string]string{
		plan.IPv4: {"ipv4/ip_forward": "1"},
		plan.IPv6: {"ipv6/conf/all/forwarding": "1", "ipv6/conf/default/accept_dad": "0", "ipv6/conf/default/accept_ra": "0"},
	}
	for _, a := range n.Addresses {
		for file, value := range settings[a.Family] {
			if err := os.WriteFile("/proc/sys/net/"+file, []byte(value), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// onThread runs f on a thread of its own, which ends with it: f may leave it in
// another namespace.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// ensurePair derives the hardware address from the other one: a node that boots
// again must be found where its neighbours remember it.
func (n Network) ensurePair(h *netlink.Handle, ns netns.NsHandle, member string, addr netip.Addr) error {
	outer := n.Names.Link(member)
	bridge, err := netlink.LinkByName(n.Names.Bridge())
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(outer)
	if _, missing := h.LinkByName(inside); err == nil && missing != nil {
		if err := netlink.LinkDel(link); err != nil {
			return err
		}
	}
	link, err = ensureLink(outer, func(a netlink.LinkAttrs) error {
		ip := addr.AsSlice()
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: a, PeerName: inside, PeerNamespace: netlink.NsFd(ns),
			PeerHardwareAddr: append(net.HardwareAddr{0x02, 0x6b}, ip[len(ip)-4:]...), // 02: locally administered
		})
	})
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMaster(link, bridge); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

func configure(h *netlink.Handle, addrs []netip.Addr, routes []Route) error {
	for _, name := range []string{"lo", inside} {
		link, err := h.LinkByName(name)
		if err != nil {
			return err
		}
		if name == inside {
			if err := setAddresses(h.AddrReplace, link, addrs); err != nil {
				return err
			}
		}
		if err := h.LinkSetUp(link); err != nil {
			return err
		}
	}
	link, err := h.LinkByName(inside)
	if err != nil {
		return err
	}
	return replaceRoutes(h, link, routes)
}

// Route leads to a network by way of a member; with no Via the network is
// taken to be on the link.
type Route struct {
	To  netip.Prefix
	Via netip.Addr
}

func replaceRoutes(h *netlink.Handle, link netlink.Link, routes []Route) error {
	for _, r := range routes {
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(r.To)}
		if r.Via.IsValid() {
			route.Gw = net.IP(r.Via.AsSlice())
		} else {
			route.Scope = netlink.SCOPE_LINK
		}
		if err := h.RouteReplace(route); err != nil {
			return fmt.Errorf("route to %s: %w", r.To, err)
		}
	}
	return nil
}

// Routes are the routes of one party: to the pods of all nodes but itself, and
// to the services. A party that is no node reaches services through node 1, whose
// kube-proxy rewrites them; a node rewrites them itself, on a route that only
// has to exist. Self is 0 for the host and for the control plane.
func (n Network) Routes(nodes, self int) []Route {
	var routes []Route
	for _, a := range n.Addresses {
		for i := 1; i <= nodes; i++ {
			if i != self {
				routes = append(routes, Route{To: a.NodePods(i), Via: a.Node(i)})
			}
		}
		services := Route{To: a.Services()}
		if self == 0 {
			services.Via = a.Node(1)
		}
		if nodes > 0 {
			routes = append(routes, services)
		}
	}
	return routes
}

// EnsureHostRoutes lets the host reach pods and services.
func (n Network) EnsureHostRoutes(nodes int) error {
	link, err := netlink.LinkByName(n.Names.Bridge())
	if err != nil {
		return fmt.Errorf("find bridge %s: %w", n.Names.Bridge(), err)
	}
	h, err := netlink.NewHandle()
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer h.Close()
	return replaceRoutes(h, link, n.Routes(nodes, 0))
}

// SetJoined cuts a member off, or joins it again.
func (n Network) SetJoined(member string, joined bool) error {
	link, err := netlink.LinkByName(n.Names.Link(member))
	if err == nil && joined {
		err = netlink.LinkSetUp(link)
	} else if err == nil {
		err = netlink.LinkSetDown(link)
	}
	if err != nil {
		return fmt.Errorf("set interface %s of %s: %w", n.Names.Link(member), member, err)
	}
	return nil
}

// Joined reports whether a member is there and not cut off.
func (n Network) Joined(member string) bool {
	link, err := netlink.LinkByName(n.Names.Link(member))
	return err == nil && link.Attrs().Flags&net.FlagUp != 0
}

// RemoveMember removes a member's namespace with all that is in it.
func (n Network) RemoveMember(member string) error {
	if link, err := netlink.LinkByName(n.Names.Link(member)); err == nil {
		if err := netlink.LinkDel(link); err != nil {
			return fmt.Errorf("remove interface %s: %w", n.Names.Link(member), err)
		}
	}
	return removeNamespace(n.File(member))
}

// removeNamespace also works for a file that no namespace is mounted on.
func removeNamespace(file string) error {
	if err := unix.Unmount(file, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount network namespace %s: %w", file, err)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove network namespace %s: %w", file, err)
	}
	return nil
}

// Remove removes every interface and namespace with one of the instance's
// names; routes go with the bridge.
func Remove(names plan.Names) error {
	var failed []error
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	for _, link := range links {
		if name := link.Attrs().Name; names.OwnsLink(name) {
			if err := netlink.LinkDel(link); err != nil {
				failed = append(failed, fmt.Errorf("remove interface %s: %w", name, err))
			}
		}
	}
	files, err := os.ReadDir(netnsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		failed = append(failed, fmt.Errorf("list network namespaces: %w", err))
	}
	for _, f := range files {
		if names.OwnsNetns(f.Name()) {
			failed = append(failed, removeNamespace(filepath.Join(netnsDir, f.Name())))
		}
	}
	return errors.Join(failed...)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: net.IP(p.Addr().AsSlice()), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
