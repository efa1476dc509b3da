package realtest

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	serve = "echo hello >/tmp/index.html; exec httpd -f -p 8080 -h /tmp"
	idle  = "exec sleep 3600"
)

// probed gives a container a name for its port and a readiness probe, which
// comes from the pod's own node.
func probed(c *corev1.Container) {
	c.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/index.html", Port: intstr.FromString("web")}},
		PeriodSeconds: 1, FailureThreshold: 1,
	}
}

// reaches says whether the pod gets an answer from the address. The time is not
// limited by wget's own option: with it, Debian's static busybox crashes.
func (in *instance) reaches(pod, address string) (bool, string) {
	in.t.Helper()
	out, err := in.run(pod, "timeout", "1", "wget", "-q", "-O", "-", "http://"+net.JoinHostPort(address, "8080")+"/index.html")
	return err == nil && strings.TrimSpace(out) == "hello", fmt.Sprintf("%q, %v", out, err)
}

// path is a pod, an address, and whether the first reaches the second.
type path struct {
	from, to, address string
	open              bool
}

// paths are those to all addresses of one end.
func paths(from, to string, addresses []string, open bool) []path {
	var all []path
	for _, address := range addresses {
		all = append(all, path{from, to, address, open})
	}
	return all
}

// expect waits until each path is as it should be, closed ones first: they show
// that the policy has come into force. They then have to stay closed.
func (in *instance) expect(when string, paths []path) {
	in.t.Helper()
	for _, open := range []bool{false, true} {
		for _, p := range paths {
			if p.open != open {
				continue
			}
			in.eventually(fmt.Sprintf("%s %s reaches %s at %s: %v", when, p.from, p.to, p.address, p.open), func() (bool, string) {
				got, said := in.reaches(p.from, p.address)
				return got == p.open, said
			})
		}
	}
	for _, p := range paths {
		if got, _ := in.reaches(p.from, p.address); got && !p.open {
			in.t.Errorf("%s %s reaches %s at %s again", when, p.from, p.to, p.address)
		}
	}
}

func (in *instance) create(name, role string, spec networkingv1.NetworkPolicySpec) {
	in.t.Helper()
	spec.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{"role": role}}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := in.client.NetworkingV1().NetworkPolicies(in.namespace).Create(in.ctx, policy, metav1.CreateOptions{}); err != nil {
		in.t.Fatalf("create policy %s: %v", name, err)
	}
}

// pods with a role, as a policy's peer.
func pods(role string) []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": role}}}}
}

// expose makes a Service for the pods with a role and returns its addresses, one of each family.
func (in *instance) expose(role string) []string {
	in.t.Helper()
	both := corev1.IPFamilyPolicyRequireDualStack
	service, err := in.client.CoreV1().Services(in.namespace).Create(in.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		Spec: corev1.ServiceSpec{
			IPFamilyPolicy: &both,
			Selector:       map[string]string{"role": role},
			Ports:          []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromString("web")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		in.t.Fatalf("create service %s: %v", role, err)
	}
	return service.Spec.ClusterIPs
}

func TestAPolicyLetsInWhomItNames(t *testing.T) {
	t.Parallel()
	in := newInstance(t)
	here, there := in.nodes[0], in.nodes[1]
	in.start("server", here, "server", serve, probed)
	clients := []string{"friend-here", "friend-there", "stranger-here", "stranger-there"}
	for _, name := range clients {
		role, place, _ := strings.Cut(name, "-")
		in.start(name, map[string]string{"here": here, "there": there}[place], role, idle)
	}
	service, server := in.expose("server"), in.ready("server")
	var before, after []path
	for _, name := range clients {
		in.ready(name)
		for to, addresses := range map[string][]string{"server": server, "the service": service} {
			before = append(before, paths(name, to, addresses, true)...)
			after = append(after, paths(name, to, addresses, strings.HasPrefix(name, "friend"))...)
		}
	}
	in.expect("without a policy", before)
	for _, address := range service {
		in.eventually("DNS knows the service at "+address, func() (bool, string) {
			out, err := in.run("friend-here", "nslookup", "server."+in.namespace+".svc.cluster.local")
			return strings.Contains(out, address), fmt.Sprintf("%q, %v", out, err)
		})
	}

	in.create("friends", "server", networkingv1.NetworkPolicySpec{
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: pods("friend"), Ports: []networkingv1.NetworkPolicyPort{{Port: &web}}}},
	})
	in.expect("with the policy", after)

	// A node reaches its own pods: this one's probe has to pass the policy.
	in.start("late", there, "server", serve, probed)
	late := in.ready("late")
	var toLate []path
	for _, name := range clients {
		toLate = append(toLate, paths(name, "the late server", late, strings.HasPrefix(name, "friend"))...)
	}
	in.expect("with the policy", toLate)
}

// web is the name that probed gives to a port.
var web = intstr.FromString("web")

func TestAPolicyLetsOutWhereItSays(t *testing.T) {
	t.Parallel()
	in := newInstance(t)
	here, there := in.nodes[0], in.nodes[1]
	in.start("client", here, "client", idle)
	var chosen, open []path
	for _, role := range []string{"chosen", "other"} {
		for place, node := range map[string]string{"here": here, "there": there} {
			in.start(role+"-"+place, node, role, serve, probed)
		}
	}
	in.ready("client")
	var blocks []networkingv1.NetworkPolicyPeer
	for _, to := range []string{"chosen-here", "chosen-there", "other-here", "other-there"} {
		addresses := in.ready(to)
		open = append(open, paths("client", to, addresses, true)...)
		chosen = append(chosen, paths("client", to, addresses, strings.HasPrefix(to, "chosen"))...)
		if to == "other-there" {
			blocks = around(addresses)
		}
	}
	in.expect("without a policy", open)

	in.create("way-out", "client", networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		Egress:      []networkingv1.NetworkPolicyEgressRule{{To: pods("chosen"), Ports: []networkingv1.NetworkPolicyPort{{Port: &web}}}},
	})
	in.expect("with the policy", chosen)

	in.create("blocks", "client", networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		Egress:      []networkingv1.NetworkPolicyEgressRule{{To: blocks}},
	})
	for i := range chosen {
		chosen[i].open = chosen[i].to != "other-there"
	}
	in.expect("with blocks without one pod", chosen)

	for _, name := range []string{"way-out", "blocks"} {
		if err := in.client.NetworkingV1().NetworkPolicies(in.namespace).Delete(in.ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatalf("delete policy %s: %v", name, err)
		}
	}
	in.expect("after the policies", open)
}

// around are all addresses but the given ones, one of each family.
func around(addresses []string) []networkingv1.NetworkPolicyPeer {
	var all []networkingv1.NetworkPolicyPeer
	for _, text := range addresses {
		one, everything := netip.MustParseAddr(text), netip.IPv4Unspecified()
		if one.Is6() {
			everything = netip.IPv6Unspecified()
		}
		all = append(all, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{
			CIDR: netip.PrefixFrom(everything, 0).String(), Except: []string{netip.PrefixFrom(one, one.BitLen()).String()},
		}})
	}
	return all
}
