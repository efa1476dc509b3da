package netpol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netns"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// wire is a node and its pods as the kernel knows them: a network namespace
// each, the pods' ones joined to the node's by a routed pair of interfaces. The
// namespaces have no name and go with the process, however it ends.
type wire struct {
	t      *testing.T
	spaces map[string]netns.NsHandle
}

// node is the namespace of the node, beside those of the pods.
const node = "node"

// The addresses of the pods on the wire. The last one stands for another node.
var wired = []struct{ name, address string }{
	{"shop/web", "10.244.1.2"}, {"shop/db", "10.244.1.3"}, {"out/web", "10.244.2.4"},
}

func newWire(t *testing.T) *wire {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces: run it as root, with sudo -E go test")
	}
	if err := requirePrograms(); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Fatalf("find ip, install it with \"apt-get install iproute2\": %v", err)
	}
	w := &wire{t: t, spaces: map[string]netns.NsHandle{}}
	w.make(node)
	w.in(node, func() error {
		return errors.Join(
			os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644),
			os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0o644),
		)
	})
	for i, p := range wired {
		w.make(p.name)
		inside := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), w.spaces[p.name])
		outside := fmt.Sprint("pod", i)
		w.ip(node, "link add "+outside+" type veth peer name eth0 netns "+inside)
		w.ip(node, "link set "+outside+" up")
		w.ip(p.name, "link set eth0 up")
		for _, family := range families {
			own, gateway := in(family, p.address), in(family, "10.89.0.11")
			w.ip(node, "addr add "+gateway+alone[family]+" dev "+outside)
			w.ip(node, "route add "+own+" dev "+outside)
			w.ip(p.name, "addr add "+own+alone[family]+" dev eth0")
			w.ip(p.name, "route add "+gateway+" dev eth0")
			w.ip(p.name, "route add default via "+gateway)
		}
	}
	return w
}

// alone is what follows an address that has no network: in IPv6 it is used without a question whether another one has it.
var alone = map[plan.Family]string{plan.IPv4: "/32", plan.IPv6: "/128 nodad"}

// make makes a network namespace with its loopback up.
func (w *wire) make(name string) {
	w.t.Helper()
	err := onThread(func() (err error) {
		w.spaces[name], err = netns.New()
		return err
	})
	if err != nil {
		w.t.Fatalf("make network namespace: %v", err)
	}
	w.t.Cleanup(func() {
		handle := w.spaces[name]
		_ = handle.Close()
	})
	w.ip(name, "link set lo up")
}

// ip runs the program ip inside a namespace.
func (w *wire) ip(space, args string) {
	w.t.Helper()
	w.in(space, func() error {
		_, err := run(context.Background(), "", "ip", strings.Fields(args)...)
		return err
	})
}

// in runs act inside a namespace; the programs that it starts are there as well.
func (w *wire) in(space string, act func() error) {
	w.t.Helper()
	err := onThread(func() error {
		if err := netns.Set(w.spaces[space]); err != nil {
			return err
		}
		return act()
	})
	if err != nil {
		w.t.Fatalf("in the namespace of %s: %v", space, err)
	}
}

// onThread runs act on a thread that ends with it, so that no other goroutine
// finds itself in the wrong namespace.
func onThread(act func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- act()
	}()
	return <-done
}

// echo answers on TCP and UDP in a pod's namespace until the test ends.
func (w *wire) echo(pod string, port int) {
	w.t.Helper()
	address := fmt.Sprintf(":%d", port)
	w.in(pod, func() error {
		tcp, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		w.t.Cleanup(func() { _ = tcp.Close() })
		go func() {
			for {
				conn, err := tcp.Accept()
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(conn, conn) }()
			}
		}()
		udp, err := net.ListenPacket("udp", address)
		if err != nil {
			return err
		}
		w.t.Cleanup(func() { _ = udp.Close() })
		go func() {
			buffer := make([]byte, 16)
			for {
				n, from, err := udp.ReadFrom(buffer)
				if err != nil {
					return
				}
				_, _ = udp.WriteTo(buffer[:n], from)
			}
		}()
		return nil
	})
}

const (
	// silence is when a missing answer counts as refused: on an idle machine
	// one takes well below a millisecond.
	silence = 300 * time.Millisecond
	// patience is for an answer that has to come, on a busy machine.
	patience = 10 * time.Second
)

// ofNetwork are the families by the end of a network's name, as Go has it.
var ofNetwork = map[string]plan.Family{"4": plan.IPv4, "6": plan.IPv6}

// dial opens a connection of a network, such as "tcp6", from a namespace to a pod,
// or returns nil when the limit has passed, and leaves it open.
func (w *wire) dial(from, to, network string, port int, limit time.Duration) net.Conn {
	w.t.Helper()
	var target string
	for _, p := range wired {
		if p.name == to {
			target = net.JoinHostPort(in(ofNetwork[network[3:]], p.address), strconv.Itoa(port))
		}
	}
	var conn net.Conn
	w.in(from, func() error {
		var err error
		conn, err = net.DialTimeout(network, target, limit)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return nil
		}
		return err
	})
	if conn != nil {
		w.t.Cleanup(func() { _ = conn.Close() })
	}
	return conn
}

// answers says whether what is sent comes back within the limit.
func answers(conn net.Conn, limit time.Duration) bool {
	if conn == nil {
		return false
	}
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return false
	}
	if _, err := conn.Write([]byte("?")); err != nil {
		return false
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err == nil
}

func (w *wire) reaches(from, to, network string, port int, limit time.Duration) bool {
	w.t.Helper()
	return answers(w.dial(from, to, network, port, limit), limit)
}

// cluster has the pods of the wire, and the policies.
func cluster(policies []*networkingv1.NetworkPolicy) Cluster {
	out := Cluster{Policies: policies}
	for _, p := range testCluster().Pods {
		for _, w := range wired {
			if p.Namespace+"/"+p.Name == w.name {
				out.Pods = append(out.Pods, p)
			}
		}
	}
	out.Namespaces = testCluster().Namespaces
	return out
}

func (w *wire) apply(rules Ruleset) {
	w.t.Helper()
	w.in(node, func() error { return apply(context.Background(), families, rules) })
}

func TestTheKernelDoesWhatTheRulesSay(t *testing.T) {
	w := newWire(t)
	w.echo("shop/db", 5432)
	w.echo("shop/db", 5433)
	w.echo("out/web", 80)
	// As at the enforcer's start: from here on connections are tracked.
	w.apply(Ruleset{})
	old := map[string]net.Conn{}
	for end := range ofNetwork {
		if !w.reaches("out/web", "shop/db", "tcp"+end, 5432, patience) || !w.reaches("shop/web", "out/web", "udp"+end, 80, patience) {
			t.Fatalf("without policies the pods do not reach each other by IPv%s: the test's wiring is wrong", end)
		}
		old[end] = w.dial("out/web", "shop/db", "tcp"+end, 5432, patience)
		if !answers(old[end], patience) {
			t.Fatalf("no answer on a connection of IPv%s from before the policy", end)
		}
	}
	w.apply(Compile(cluster(policies(t, `{podSelector: {matchLabels: {role: db}}, policyTypes: [Ingress, Egress], ingress: [{from: [{podSelector: {matchLabels: {role: web}}}], ports: [{port: sql}, {port: 5432, protocol: UDP}]}]}
---
{podSelector: {matchLabels: {role: web}}, policyTypes: [Egress], egress: [{to: [{podSelector: {}}], ports: [{port: sql}]}, {to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.244.2.0/24]}}, {ipBlock: {cidr: "::/0", except: ["`+in(plan.IPv6, "10.244.2.0")+`/24"]}}], ports: [{port: 5400, endPort: 5500}, {port: 5432, protocol: UDP}]}]}`)), "north", families...))
	// Neighbours have to be found again while the policies are in force.
	for space := range w.spaces {
		w.ip(space, "neigh flush all")
		w.ip(space, "-6 neigh flush all")
	}
	for _, c := range []struct {
		from, to, network string
		port              int
		want              bool
		why               string
	}{
		{"shop/web", "shop/db", "tcp", 5432, true, "the allowed pod, by a name of a port on both ends"},
		{"shop/web", "shop/db", "udp", 5432, true, "the allowed pod, UDP"},
		{"shop/web", "shop/db", "tcp", 5433, false, "a port that the destination does not allow"},
		{"out/web", "shop/db", "tcp", 5432, false, "a stranger"},
		{"out/web", "shop/db", "udp", 5432, false, "a stranger, UDP"},
		{node, "shop/db", "tcp", 5433, true, "a node reaches its own pods"},
		{"shop/db", "shop/db", "tcp", 5433, true, "a pod reaches itself"},
		{"shop/db", "out/web", "tcp", 80, false, "a pod that nothing is allowed to leave"},
		{"shop/web", "out/web", "tcp", 80, false, "a port that the source does not allow"},
		{"out/web", "out/web", "tcp", 80, true, "a pod without policies"},
	} {
		limit := silence
		if c.want {
			limit = patience
		}
		for end := range ofNetwork {
			if got := w.reaches(c.from, c.to, c.network+end, c.port, limit); got != c.want {
				t.Errorf("%s > %s %s%s:%d passes: %v, want %v: %s", c.from, c.to, c.network, end, c.port, got, c.want, c.why)
			}
		}
	}
	for end, conn := range old {
		if !answers(conn, patience) {
			t.Errorf("a connection of IPv%s from before the policy was cut", end)
		}
	}
}

// leaveHalf returns the commands that leave what a killed attempt leaves: a half-filled twin of a set, and an unknown chain.
func leaveHalf(set Set) [][]string {
	twin := set.Name + "t"
	commands := [][]string{
		{"ipset", "create", twin, string(AddressSet), "family", ofSets[set.Family]},
		{"ipset", "add", twin, in(set.Family, "192.0.2.1")},
		{"ipset", "create", "other-set", "hash:ip"},
	}
	for _, filter := range filters {
		commands = append(commands, []string{filter, "-t", "mangle", "-N", "LK-I-stale"}, []string{filter, "-t", "mangle", "-A", "LK-I-stale", "-j", "DROP"},
			[]string{filter, "-t", "mangle", "-N", "OTHER"}, []string{filter, "-t", "mangle", "-A", "FORWARD", "-j", "OTHER"})
	}
	return commands
}

func TestApplyingAgainLeavesNothingOld(t *testing.T) {
	w := newWire(t)
	first := Compile(cluster(policies(t, mixed)), "north", families...)
	second := Compile(cluster(policies(t, `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{podSelector: {}}]}]}`)), "north", families...)
	w.in(node, func() error {
		for _, command := range leaveHalf(second.Sets[0]) {
			if _, err := run(context.Background(), "", command[0], command[1:]...); err != nil {
				return err
			}
		}
		return nil
	})
	w.apply(first)
	w.apply(second)
	w.apply(second)
	var got []string
	w.in(node, func() error {
		text, err := run(context.Background(), "", "ipset", "save")
		if err != nil {
			return err
		}
		for _, filter := range filters {
			chains, err := run(context.Background(), "", filter+"-save", "-t", "mangle")
			if err != nil {
				return err
			}
			text += chains
		}
		for line := range strings.Lines(text) {
			fields := strings.Fields(line)
			switch fields[0] {
			case ":INPUT", ":OUTPUT", ":FORWARD", ":PREROUTING", ":POSTROUTING", "#", "*mangle", "COMMIT":
			case "-A":
				if fields[1] == "FORWARD" {
					got = append(got, strings.TrimSpace(line))
				}
			case "create", "add":
				got = append(got, strings.Join(fields[:3], " "))
			default:
				got = append(got, fields[0])
			}
		}
		return nil
	})
	want := []string{"create other-set hash:ip"}
	for i := range families {
		want = append(want, ":"+entryChain, ":"+second.Chains[i].Name(), ":OTHER", "-A FORWARD -j "+entryChain, "-A FORWARD -j OTHER",
			"create "+second.Sets[i].Name+" hash:ip")
		for _, member := range second.Sets[i].Members {
			want = append(want, "add "+second.Sets[i].Name+" "+member)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("chains, jumps and sets (-want +got):\n%s", diff)
	}
}
