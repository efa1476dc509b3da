package components

import (
	"bytes"
	"embed"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"text/template"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/baseimage"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/instance"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/pki"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

//go:embed files
var files embed.FS

// settings are what the files under files/ can refer to.
type settings struct {
	set  Set
	node int
}

func (s settings) instanceNode() instance.Node { return s.set.node(s.node) }

func (s settings) Name() string               { return plan.Node(s.node) }
func (s settings) Node() int                  { return s.node }
func (s settings) Images() string             { return s.instanceNode().Images() }
func (s settings) Socket() string             { return s.instanceNode().Socket() }
func (s settings) CNI() string                { return s.instanceNode().Path("cni") }
func (s settings) Families() []plan.Addresses { return s.set.addresses() }
func (s settings) HasIPv6() bool              { return slices.Contains(s.set.State.IPFamilies.List(), plan.IPv6) }
func (s settings) AllPods() string            { return list(s.set.addresses(), plan.Addresses.Pods) }
func (s settings) PKI(file string) string     { return s.set.Authority().Path(file) }
func (s settings) ResolvConf() string         { return s.set.Instance.Path("resolv.conf") }
func (s settings) Shared() string             { return s.set.Instance.Path("shared") }
func (s settings) PodsCgroup() string         { return s.set.PodsCgroup(s.Name()) }
func (s settings) PauseImage() string         { return baseimage.Pause }
func (s settings) BusyboxImage() string       { return baseimage.Busybox }
func (s settings) Nodes() []instance.Node     { return s.set.Nodes() }

func (s settings) render(file string) ([]byte, error) {
	t, err := template.ParseFS(files, "files/"+file)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", file, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, s); err != nil {
		return nil, fmt.Errorf("render %s: %w", file, err)
	}
	return out.Bytes(), nil
}

// Configure writes the configuration files of the control plane and the nodes.
func (s Set) Configure() error {
	if err := s.write(0, map[string]string{
		"audit.yaml":      s.Instance.Path("audit.yaml"),
		"Corefile":        s.Instance.Path("Corefile"),
		"volumes.json":    s.Instance.Path("volumes.json"),
		"volume-pod.yaml": s.Instance.Path("volume-pod.yaml"),
		"system.yaml":     s.Manifests(),
	}); err != nil {
		return err
	}
	resolv := fmt.Sprintf("nameserver %s\n", s.addresses()[0].ControlPlane())
	if err := instance.WriteFile(s.Instance.Path("resolv.conf"), []byte(resolv)); err != nil {
		return err
	}
	for i, n := range s.Nodes() {
		if err := s.write(i+1, map[string]string{
			"containerd.toml": n.Path("containerd.toml"),
			"cni.conflist":    n.Path("cni", "10-localkube.conflist"),
			"kubelet.yaml":    n.Path("kubelet.yaml"),
			"kube-proxy.yaml": n.Path("kube-proxy.yaml"),
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s Set) write(node int, targets map[string]string) error {
	for file, target := range targets {
		data, err := settings{set: s, node: node}.render(file)
		if err != nil {
			return err
		}
		if err := instance.WriteFile(target, data); err != nil {
			return err
		}
	}
	return nil
}

// Manifests is the file of the objects that a new cluster needs.
func (s Set) Manifests() string { return s.Instance.Path("system.yaml") }

// Authority is where the instance's certificates are.
func (s Set) Authority() pki.Authority {
	return pki.Authority{
		Dir:    filepath.Dir(s.Instance.Kubeconfig()),
		Server: "https://" + netip.AddrPortFrom(s.addresses()[0].ControlPlane(), 6443).String(),
	}
}

// Identities are the holders of certificates.
func (s Set) Identities() []pki.Identity {
	local := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}
	server := slices.Clone(local)
	for _, a := range s.addresses() {
		server = append(server, a.ControlPlane(), a.APIService())
	}
	ids := []pki.Identity{
		{File: "admin", User: "localkube-admin", Groups: []string{"system:masters"}, Client: true},
		{
			File: "apiserver", User: "kube-apiserver",
			DNS: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
			IPs: server,
		},
		{File: "kubelet-api", User: "localkube:kubelet-api"},
		{File: "controller-manager", User: "system:kube-controller-manager", Client: true},
		{File: "scheduler", User: "system:kube-scheduler", Client: true},
		{File: "proxy", User: "system:kube-proxy", Client: true},
		{File: "dns", User: "localkube:dns", Client: true},
		{File: "volumes", User: "localkube:volumes", Client: true},
		{File: "policies", User: "localkube:policies", Client: true},
	}
	for i, n := range s.Nodes() {
		ids = append(ids, pki.Identity{
			File: n.Name, User: "system:node:" + n.Name, Groups: []string{"system:nodes"},
			DNS: []string{n.Name}, IPs: append(s.Network().Node(i+1), local...), Client: true,
		})
	}
	return ids
}
