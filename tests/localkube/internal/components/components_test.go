package components

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/instance"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

func set(t *testing.T, nodes int) Set {
	t.Helper()
	base, err := os.MkdirTemp("", "lk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	i, err := instance.New(base, "x")
	if err != nil {
		t.Fatal(err)
	}
	return Set{Instance: i, State: instance.State{
		Spec:     instance.Spec{Nodes: nodes, GPUs: 2},
		Index:    3,
		Programs: instance.Programs{Kube: "/bin/kube", DNS: "/bin/coredns", Provisioner: "/bin/local-path-provisioner"},
	}}
}

func TestEachProgramIsAloneInItsCgroup(t *testing.T) {
	s := set(t, 2)
	cgroups, logs := map[string]bool{}, map[string]bool{}
	for member, programs := range s.Programs() {
		for _, p := range programs {
			if cgroups[p.Cgroup] || logs[p.Log] {
				t.Errorf("%s of %s shares %s or %s", p.Path, member, p.Cgroup, p.Log)
			}
			cgroups[p.Cgroup], logs[p.Log] = true, true
			if !strings.HasPrefix(p.Cgroup, s.MemberCgroup(member)+"/") {
				t.Errorf("%s is outside its member's control group: %s", p.Path, p.Cgroup)
			}
			if (p.Mounts != "") != (member != "cp") {
				t.Errorf("%s of %s has the mounts %q: a node's programs see the node's, others the host's", p.Path, member, p.Mounts)
			}
		}
	}
	if want := 6 + 2*4; len(cgroups) != want {
		t.Errorf("%d programs, want %d", len(cgroups), want)
	}
}

func TestControlPlaneAlone(t *testing.T) {
	s := set(t, 0)
	var names []string
	for _, p := range s.Programs()["cp"] {
		names = append(names, filepath.Base(p.Path))
	}
	want := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	if !slices.Equal(names, want) || len(s.Programs()) != 1 {
		t.Errorf("programs of a control plane alone: %v, want %v and no nodes", names, want)
	}
}

func TestPodGroups_AreOnWhereTheyAreAskedFor(t *testing.T) {
	const gates = "--feature-gates=GenericWorkload=true,GangScheduling=true"
	for _, asked := range []bool{false, true} {
		s := set(t, 0)
		s.State.PodGroups = asked
		server := s.APIServer().Args
		if served := slices.Contains(server, "--runtime-config=scheduling.k8s.io/v1alpha2=true"); served != asked {
			t.Errorf("asked for: %v; the API server has %q", asked, server)
		}
		for _, args := range [][]string{server, s.ControllerManager().Args, s.Scheduler().Args} {
			if slices.Contains(args, gates) != asked {
				t.Errorf("asked for: %v; the gates of %q", asked, args)
			}
		}
	}
}

func TestConfigure(t *testing.T) {
	s := set(t, 2)
	if err := s.Configure(); err != nil {
		t.Fatal(err)
	}
	node2 := s.Nodes()[1]
	kubelet := map[string]any{}
	parse(t, node2.Path("kubelet.yaml"), &kubelet)
	for key, want := range map[string]string{
		"cgroupRoot":               s.PodsCgroup("node2"),
		"containerRuntimeEndpoint": "unix://" + node2.Socket(),
	} {
		if kubelet[key] != want {
			t.Errorf("kubelet.yaml: %s is %v, want %s", key, kubelet[key], want)
		}
	}
	var volumes struct {
		StorageClassConfigs map[string]struct {
			NodePathMap          []struct{ Node string }
			SharedFileSystemPath string
		}
	}
	parse(t, s.Instance.Path("volumes.json"), &volumes)
	if len(volumes.StorageClassConfigs["local"].NodePathMap) != 2 || volumes.StorageClassConfigs["shared"].SharedFileSystemPath == "" {
		t.Errorf("volumes.json: %+v", volumes)
	}
}

func TestIPFamilies_AreSaidInTheirOrder(t *testing.T) {
	for families, want := range map[plan.Families]struct {
		nodes, services, server string
		pods                    []string
	}{
		"":          {"10.89.3.12", "10.195.0.0/16", "https://10.89.3.2:6443", []string{"10.131.2.0/24"}},
		"ipv4":      {"10.89.3.12", "10.195.0.0/16", "https://10.89.3.2:6443", []string{"10.131.2.0/24"}},
		"ipv6":      {"fd6c:6b:3::c", "fd6c:6b:3:2::/112", "https://[fd6c:6b:3::2]:6443", []string{"fd6c:6b:3:102::/64"}},
		"ipv4,ipv6": {"10.89.3.12,fd6c:6b:3::c", "10.195.0.0/16,fd6c:6b:3:2::/112", "https://10.89.3.2:6443", []string{"10.131.2.0/24", "fd6c:6b:3:102::/64"}},
		"ipv6,ipv4": {"fd6c:6b:3::c,10.89.3.12", "fd6c:6b:3:2::/112,10.195.0.0/16", "https://[fd6c:6b:3::2]:6443", []string{"fd6c:6b:3:102::/64", "10.131.2.0/24"}},
	} {
		s := set(t, 2)
		s.State.IPFamilies = families
		if err := s.Configure(); err != nil {
			t.Fatal(err)
		}
		if flag := "--node-ip=" + want.nodes; !slices.Contains(s.NodePrograms(2)[0].Args, flag) {
			t.Errorf("%q: the kubelet has no %s: %q", families, flag, s.NodePrograms(2)[0].Args)
		}
		if flag := "--service-cluster-ip-range=" + want.services; !slices.Contains(s.APIServer().Args, flag) {
			t.Errorf("%q: the API server has no %s: %q", families, flag, s.APIServer().Args)
		}
		if got := s.Authority().Server; got != want.server {
			t.Errorf("%q: the API server is at %s, want %s", families, got, want.server)
		}
		var cni struct {
			Plugins []struct {
				Type string
				IPAM struct{ Ranges [][]struct{ Subnet string } }
			}
		}
		parse(t, s.Nodes()[1].Path("cni", "10-localkube.conflist"), &cni)
		var pods []string
		for _, plugin := range cni.Plugins {
			for _, each := range plugin.IPAM.Ranges {
				pods = append(pods, each[0].Subnet)
			}
		}
		if !slices.Equal(pods, want.pods) {
			t.Errorf("%q: pods have %q, want %q", families, pods, want.pods)
		}
	}
}

func TestManifestsAreObjects(t *testing.T) {
	s := set(t, 2)
	s.State.IPFamilies = "ipv4,ipv6"
	if err := s.Configure(); err != nil {
		t.Fatal(err)
	}
	manifests, err := os.ReadFile(s.Manifests())
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]bool{}
	for doc := range strings.SplitSeq(string(manifests), "\n---\n") {
		var object struct{ Kind, AddressType string }
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil || object.Kind == "" {
			t.Errorf("object of kind %q: %v\n%s", object.Kind, err, doc)
		}
		types[object.AddressType] = true
	}
	if !types["IPv4"] || !types["IPv6"] {
		t.Errorf("the DNS server has endpoints of %v, want both families", types)
	}
}

func parse(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func TestIdentitiesAreDistinct(t *testing.T) {
	users := map[string]bool{}
	for _, id := range set(t, 2).Identities() {
		if users[id.User] {
			t.Errorf("two certificates for %s", id.User)
		}
		users[id.User] = true
		if slices.Contains(id.Groups, "system:masters") && id.File != "admin" {
			t.Errorf("%s is an administrator", id.User)
		}
	}
	for _, user := range []string{"system:kube-scheduler", "system:kube-controller-manager", "system:kube-proxy", "system:node:node1", "system:node:node2"} {
		if !users[user] {
			t.Errorf("no certificate for %s", user)
		}
	}
}
