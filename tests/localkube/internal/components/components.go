// Package components says which programs an instance is made of and how each is
// called.
//
// In: an instance and its state. Out: programs with their arguments, the files
// they read, the certificates they hold. The flags are those of a default
// Kubernetes; where one differs, a comment says why. Apart from Configure, which
// writes files, it must never touch the machine.
package components

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/imagestore"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/instance"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/network"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/process"
)

// path is where programs look for others: containerd for runc, kube-proxy for
// iptables, whatever PATH the command has that starts them.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Set is the programs of one instance.
type Set struct {
	Instance instance.Instance
	State    instance.State
}

// addresses are the instance's networks, one set for each family; the first one is of the family that comes first.
func (s Set) addresses() []plan.Addresses { return s.State.IPFamilies.Networks(s.State.Index) }

// list joins what is said of each family, as programs take it.
func list[T fmt.Stringer](all []plan.Addresses, of func(plan.Addresses) T) string {
	var texts []string
	for _, a := range all {
		texts = append(texts, of(a).String())
	}
	return strings.Join(texts, ",")
}

func (s Set) node(i int) instance.Node { return s.Instance.Node(plan.Node(i)) }

// Nodes are the instance's nodes in order.
func (s Set) Nodes() []instance.Node {
	var nodes []instance.Node
	for i := 1; i <= s.State.Nodes; i++ {
		nodes = append(nodes, s.node(i))
	}
	return nodes
}

// Network is the instance's network.
func (s Set) Network() network.Network {
	return network.Network{Names: s.Instance.Names, Addresses: s.addresses()}
}

// MemberCgroup holds the programs of a node or of the control plane.
func (s Set) MemberCgroup(member string) string { return s.Instance.Names.Cgroup("run", member) }

// PodsCgroup holds the pods of a node.
func (s Set) PodsCgroup(node string) string { return s.Instance.Names.Cgroup("pods", node) }

// Kubectl is the path of the instance's kubectl.
func (s Set) Kubectl() string { return s.kube("kubectl") }

// Agent is the instance's own copy of this program, which does the nodes' work
// that Kubernetes leaves to others.
func (s Set) Agent() string { return s.Instance.Path("localkube") }

func (s Set) kube(name string) string { return filepath.Join(s.State.Programs.Kube, name) }

func (s Set) controlPlane(file string, args ...string) process.Program {
	name := filepath.Base(file)
	return process.Program{
		Path: file, Args: args, Env: []string{path},
		Netns:  s.Network().File(plan.ControlPlane),
		Cgroup: s.MemberCgroup(plan.ControlPlane) + "/" + name,
		Log:    s.Instance.Log(name),
	}
}

// Etcd forgets what it did when the machine crashes, as the whole instance does.
func (s Set) Etcd() process.Program {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return s.controlPlane(s.kube("etcd"),
		"--data-dir="+s.Instance.Path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster=default="+peer, "--quota-backend-bytes=8589934592", "--log-level=warn")
}

// APIServer writes the audit log while it answers, so that a test that has its
// answer finds the request in the log.
func (s Set) APIServer() process.Program {
	f := s.Authority().Path
	server := s.controlPlane(s.kube("kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:2379",
		"--secure-port=6443", "--advertise-address="+s.addresses()[0].ControlPlane().String(),
		"--tls-cert-file="+f("apiserver.crt"), "--tls-private-key-file="+f("apiserver.key"),
		"--client-ca-file="+f("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+f("service-accounts.key"),
		"--service-account-signing-key-file="+f("service-accounts.key"),
		"--service-cluster-ip-range="+list(s.addresses(), plan.Addresses.Services),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--kubelet-certificate-authority="+f("ca.crt"),
		"--kubelet-client-certificate="+f("kubelet-api.crt"), "--kubelet-client-key="+f("kubelet-api.key"),
		"--kubelet-preferred-address-types=InternalIP", // names of nodes are not in DNS
		"--requestheader-client-ca-file="+f("front.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+f("front-client.crt"), "--proxy-client-key-file="+f("front-client.key"),
		"--audit-policy-file="+s.Instance.Path("audit.yaml"), "--audit-log-path="+s.Instance.AuditLog(),
		"--audit-log-mode=blocking", "--audit-log-maxsize=4096", "--audit-log-maxbackup=1")
	server.Args = append(server.Args, s.podGroups("--runtime-config=scheduling.k8s.io/v1alpha2=true")...)
	return server
}

// podGroups turn on Kubernetes' own gang scheduling, where the instance has it. A PodGroup has a finalizer from the API
// server on, which the controller manager takes away.
func (s Set) podGroups(more ...string) []string {
	if !s.State.PodGroups {
		return nil
	}
	return append(more, "--feature-gates=GenericWorkload=true,GangScheduling=true")
}

// ControllerManager misses a dead node after 15 s instead of 50 s.
func (s Set) ControllerManager() process.Program {
	f := s.Authority().Path
	config := f("controller-manager.kubeconfig")
	manager := s.controlPlane(s.kube("kube-controller-manager"),
		"--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--service-account-private-key-file="+f("service-accounts.key"), "--root-ca-file="+f("ca.crt"),
		"--cluster-signing-cert-file="+f("ca.crt"), "--cluster-signing-key-file="+f("ca.key"),
		"--use-service-account-credentials", "--leader-elect=false", "--node-monitor-grace-period=15s",
		// The default of 20 requests a second makes the start of its 40 controllers last 5 s.
		"--kube-api-qps=200", "--kube-api-burst=400")
	manager.Args = append(manager.Args, s.podGroups()...)
	return manager
}

// Scheduler is the default scheduler.
func (s Set) Scheduler() process.Program {
	config := s.Authority().Path("scheduler.kubeconfig")
	scheduler := s.controlPlane(s.kube("kube-scheduler"),
		"--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--leader-elect=false")
	scheduler.Args = append(scheduler.Args, s.podGroups()...)
	return scheduler
}

// DNS is CoreDNS on the control plane's address.
func (s Set) DNS() process.Program {
	return s.controlPlane(s.State.Programs.DNS, "-conf", s.Instance.Path("Corefile"))
}

// Volumes provisions the volumes of both storage classes.
func (s Set) Volumes() process.Program {
	return s.controlPlane(s.State.Programs.Provisioner, "start",
		"--kubeconfig", s.Authority().Path("volumes.kubeconfig"),
		"--config", s.Instance.Path("volumes.json"), "--helper-pod-file", s.Instance.Path("volume-pod.yaml"),
		"--provisioner-name", "localkube/volumes", "--namespace", "localkube-volumes",
		"--configmap-name", "volumes", "--service-account-name", "volumes")
}

// Controllers are the programs that need a ready API server.
func (s Set) Controllers() []process.Program {
	all := []process.Program{s.ControllerManager(), s.Scheduler()}
	if s.State.Nodes > 0 {
		all = append(all, s.DNS(), s.Volumes())
	}
	return all
}

func (s Set) onNode(i int, file string, args ...string) process.Program {
	name, n := filepath.Base(file), s.node(i)
	return process.Program{
		Path: file, Args: args,
		// Mounts that a killed program leaves must be among the node's files.
		Env:    []string{path, "TMPDIR=" + n.Path("tmp")},
		Netns:  s.Network().File(n.Name),
		Mounts: n.MountNamespace(),
		Cgroup: s.MemberCgroup(n.Name) + "/" + name,
		Log:    s.Instance.Log(n.Name + "-" + name),
	}
}

// Containerd is the container runtime of node i.
func (s Set) Containerd(i int) process.Program {
	return s.onNode(i, imagestore.Runtime, "--config", s.node(i).Path("containerd.toml"))
}

// Zone is what node i says about where it stands: every node in its own zone.
func (s Set) Zone(i int) string { return fmt.Sprintf("zone-%d", i) }

// NodePrograms are those of node i that need its containerd.
func (s Set) NodePrograms(i int) []process.Program {
	n, f := s.node(i), s.Authority().Path
	return []process.Program{
		s.onNode(i, s.kube("kubelet"),
			"--config="+n.Path("kubelet.yaml"), "--kubeconfig="+f(n.Name+".kubeconfig"),
			"--hostname-override="+n.Name, "--node-ip="+list(s.addresses(), func(a plan.Addresses) netip.Addr { return a.Node(i) }),
			"--node-labels=topology.kubernetes.io/zone="+s.Zone(i)),
		s.onNode(i, s.kube("kube-proxy"), "--config="+n.Path("kube-proxy.yaml")),
		s.onNode(i, s.Agent(), "agent", "--node="+n.Name,
			"--kubeconfig="+f("policies.kubeconfig"), "--gpus="+fmt.Sprint(s.State.GPUs), "--ip-families="+string(s.State.IPFamilies)),
	}
}

// Programs are all programs of the instance by the member they belong to.
func (s Set) Programs() map[string][]process.Program {
	all := map[string][]process.Program{
		plan.ControlPlane: append([]process.Program{s.Etcd(), s.APIServer()}, s.Controllers()...),
	}
	for i, n := range s.Nodes() {
		all[n.Name] = append([]process.Program{s.Containerd(i + 1)}, s.NodePrograms(i+1)...)
	}
	return all
}
