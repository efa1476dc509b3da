package netpol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netns"
)

// wire is a node and its pods as the kernel knows them: a network namespace
// each, the pods' ones joined to the node's by a routed pair of interfaces.
type wire struct {
	t     *testing.T
	node  string
	names map[string]string
}

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
	w := &wire{t: t, node: fmt.Sprintf("lknp%d", os.Getpid()), names: map[string]string{}}
	w.namespace(w.node)
	w.ip("-n", w.node, "link", "set", "lo", "up")
	w.in(w.node, func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644) })
	for i, p := range wired {
		ns, inside, outside := fmt.Sprint(w.node, "-", i), "eth0", fmt.Sprint("pod", i)
		w.names[p.name] = ns
		w.namespace(ns)
		w.ip("-n", w.node, "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", ns)
		w.ip("-n", w.node, "addr", "add", "10.89.0.11/32", "dev", outside)
		w.ip("-n", w.node, "link", "set", outside, "up")
		w.ip("-n", w.node, "route", "add", p.address, "dev", outside)
		w.ip("-n", ns, "addr", "add", p.address+"/32", "dev", inside)
		w.ip("-n", ns, "link", "set", inside, "up")
		w.ip("-n", ns, "link", "set", "lo", "up")
		w.ip("-n", ns, "route", "add", "10.89.0.11", "dev", inside)
		w.ip("-n", ns, "route", "add", "default", "via", "10.89.0.11")
	}
	return w
}

func (w *wire) namespace(name string) {
	w.t.Helper()
	w.ip("netns", "add", name)
	w.t.Cleanup(func() { w.ip("netns", "delete", name) })
}

func (w *wire) ip(args ...string) {
	w.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		w.t.Fatalf("run ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// in runs act inside a network namespace; the programs that it starts are there
// as well.
func (w *wire) in(name string, act func() error) {
	w.t.Helper()
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and no other
		// goroutine finds itself in the wrong namespace.
		runtime.LockOSThread()
		handle, err := netns.GetFromName(name)
		if err == nil {
			err = errors.Join(netns.Set(handle), handle.Close())
		}
		if err == nil {
			err = act()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		w.t.Fatalf("in network namespace %s: %v", name, err)
	}
}

// echo answers on TCP and UDP in a pod's namespace until the test ends.
func (w *wire) echo(pod string, port int) {
	w.t.Helper()
	address := fmt.Sprintf(":%d", port)
	w.in(w.names[pod], func() error {
		tcp, err := net.Listen("tcp4", address)
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
		udp, err := net.ListenPacket("udp4", address)
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

// dial opens a connection from a namespace to a pod, or returns nil when the
// limit has passed, and leaves it open.
func (w *wire) dial(from, to, network string, port int, limit time.Duration) net.Conn {
	w.t.Helper()
	i := slices.IndexFunc(cluster(nil).Pods, func(p *corev1.Pod) bool { return p.Namespace+"/"+p.Name == to })
	target := netip.AddrPortFrom(netip.MustParseAddr(cluster(nil).Pods[i].Status.PodIPs[1].IP), uint16(port))
	var conn net.Conn
	w.in(from, func() error {
		var err error
		conn, err = net.DialTimeout(network, target.String(), limit)
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
	w.in(w.node, func() error { return apply(context.Background(), rules) })
}

func TestTheKernelDoesWhatTheRulesSay(t *testing.T) {
	w := newWire(t)
	w.echo("shop/db", 5432)
	w.echo("shop/db", 5433)
	w.echo("out/web", 80)
	// As at the enforcer's start: from here on connections are tracked.
	w.apply(Ruleset{})
	web, db, stranger := w.names["shop/web"], w.names["shop/db"], w.names["out/web"]
	if !w.reaches(stranger, "shop/db", "tcp4", 5432, patience) || !w.reaches(web, "out/web", "udp4", 80, patience) {
		t.Fatal("without policies the pods do not reach each other: the test's wiring is wrong")
	}
	old := w.dial(stranger, "shop/db", "tcp4", 5432, patience)
	if !answers(old, patience) {
		t.Fatal("no answer on a connection from before the policy")
	}
	w.apply(Compile(cluster(policies(t, `{podSelector: {matchLabels: {role: db}}, policyTypes: [Ingress, Egress], ingress: [{from: [{podSelector: {matchLabels: {role: web}}}], ports: [{port: sql}, {port: 5432, protocol: UDP}]}]}
---
{podSelector: {matchLabels: {role: web}}, policyTypes: [Egress], egress: [{to: [{podSelector: {}}], ports: [{port: sql}]}, {to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.244.2.0/24]}}], ports: [{port: 5400, endPort: 5500}, {port: 5432, protocol: UDP}]}]}`)), "north"))
	for _, c := range []struct {
		from, to, network string
		port              int
		want              bool
		why               string
	}{
		{web, "shop/db", "tcp4", 5432, true, "the allowed pod, by a name of a port on both ends"},
		{web, "shop/db", "udp4", 5432, true, "the allowed pod, UDP"},
		{web, "shop/db", "tcp4", 5433, false, "a port that the destination does not allow"},
		{stranger, "shop/db", "tcp4", 5432, false, "a stranger"},
		{stranger, "shop/db", "udp4", 5432, false, "a stranger, UDP"},
		{w.node, "shop/db", "tcp4", 5433, true, "a node reaches its own pods"},
		{db, "shop/db", "tcp4", 5433, true, "a pod reaches itself"},
		{db, "out/web", "tcp4", 80, false, "a pod that nothing is allowed to leave"},
		{web, "out/web", "tcp4", 80, false, "a port that the source does not allow"},
		{stranger, "out/web", "tcp4", 80, true, "a pod without policies"},
	} {
		limit := silence
		if c.want {
			limit = patience
		}
		if got := w.reaches(c.from, c.to, c.network, c.port, limit); got != c.want {
			t.Errorf("%s > %s %s:%d passes: %v, want %v: %s", c.from, c.to, c.network, c.port, got, c.want, c.why)
		}
	}
	if !answers(old, patience) {
		t.Error("a connection from before the policy was cut")
	}
}

func TestApplyingAgainLeavesNothingOld(t *testing.T) {
	w := newWire(t)
	first := Compile(cluster(policies(t, mixed)), "north")
	second := Compile(cluster(policies(t, `{podSelector: {matchLabels: {role: db}}, ingress: [{from: [{podSelector: {}}]}]}`)), "north")
	w.in(w.node, func() error {
		// What a killed attempt leaves: a half-filled twin, an unknown chain.
		leftover := second.Sets[0].Name + "t"
		setup := [][]string{
			{"ipset", "create", leftover, string(AddressSet)}, {"ipset", "add", leftover, "192.0.2.1"},
			{"ipset", "create", "other-set", "hash:ip"},
			{"iptables", "-t", "mangle", "-N", "LK-I-stale"}, {"iptables", "-t", "mangle", "-A", "LK-I-stale", "-j", "DROP"},
			{"iptables", "-t", "mangle", "-N", "OTHER"}, {"iptables", "-t", "mangle", "-A", "FORWARD", "-j", "OTHER"},
		}
		for _, command := range setup {
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
	w.in(w.node, func() error {
		chains, err := run(context.Background(), "", "iptables-save", "-t", "mangle")
		if err != nil {
			return err
		}
		sets, err := run(context.Background(), "", "ipset", "save")
		for line := range strings.Lines(chains + sets) {
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
		return err
	})
	want := []string{
		":" + entryChain, ":" + second.Chains[0].Name(), ":OTHER",
		"-A FORWARD -j " + entryChain, "-A FORWARD -j OTHER",
		"create other-set hash:ip", "create " + second.Sets[0].Name + " hash:ip",
	}
	for _, member := range second.Sets[0].Members {
		want = append(want, "add "+second.Sets[0].Name+" "+member)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("chains, jumps and sets (-want +got):\n%s", diff)
	}
}
