package cluster

import (
	"net/netip"
	"path/filepath"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/cgroup"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/instance"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/process"
)

// What Status says of an instance or a member of it.
const (
	Running     = "running"     // everything that belongs to it runs
	Degraded    = "degraded"    // something has died; localkube up starts it
	Partitioned = "partitioned" // it runs but is cut off from the network
	Stopped     = "stopped"     // nothing of it runs
)

// Status describes an instance to people and tests.
type Status struct {
	Name         string         `json:"name"`
	State        string         `json:"state"`
	Checkout     string         `json:"checkout,omitempty"` // that brought it up
	Kubeconfig   string         `json:"kubeconfig"`
	Kubectl      string         `json:"kubectl"`
	AuditLog     string         `json:"auditLog"`
	Logs         string         `json:"logs"`     // directory
	CPUStat      string         `json:"cpuStat"`  // file: the CPU time of everything in the instance
	Families     []FamilyStatus `json:"families"` // the first one first
	ControlPlane MemberStatus   `json:"controlPlane"`
	Nodes        []NodeStatus   `json:"nodes"`
}

// FamilyStatus is what the instance has of one address family.
type FamilyStatus struct {
	Family   plan.Family  `json:"family"`
	HostIP   netip.Addr   `json:"hostIP"`  // the host as pods reach it
	Network  netip.Prefix `json:"network"` // of host and nodes
	Pods     netip.Prefix `json:"pods"`
	Services netip.Prefix `json:"services"`
}

// MemberStatus describes the control plane or a node.
type MemberStatus struct {
	IP    string   `json:"ip"`    // of the first family
	Netns string   `json:"netns"` // file
	State string   `json:"state"`
	Dead  []string `json:"dead,omitempty"` // programs that do not run
}

// NodeStatus describes a node.
type NodeStatus struct {
	Name string `json:"name"`
	MemberStatus
	Containerd string `json:"containerd"` // socket
	Mounts     string `json:"mounts"`     // file of the mount namespace
	Zone       string `json:"zone"`
}

// Status looks at what runs; it needs no lock.
func (c *Cluster) Status() (Status, error) {
	if err := c.existing(); err != nil {
		return Status{}, err
	}
	groups, err := cgroup.Find()
	if err != nil {
		return Status{}, err
	}
	a, programs := c.set.Network().Addresses, c.set.Programs()
	s := Status{
		Name: c.Instance.Name, Checkout: c.set.State.Checkout, Kubeconfig: c.Instance.Kubeconfig(), Kubectl: c.set.Kubectl(),
		AuditLog: c.Instance.AuditLog(), Logs: c.Instance.Path("log"),
		CPUStat:      groups.CPUStat(c.Instance.Names.Cgroup()),
		ControlPlane: c.member(plan.ControlPlane, a[0].ControlPlane().String(), programs[plan.ControlPlane]),
		Nodes:        []NodeStatus{},
	}
	for _, a := range a {
		s.Families = append(s.Families, FamilyStatus{Family: a.Family, HostIP: a.Host(), Network: a.Network(), Pods: a.Pods(), Services: a.Services()})
	}
	s.State = s.ControlPlane.State
	for i, n := range c.set.Nodes() {
		node := c.nodeStatus(i+1, n, a[0], programs[n.Name])
		if node.State != Running && s.State == Running {
			s.State = Degraded
		}
		s.Nodes = append(s.Nodes, node)
	}
	return s, nil
}

func (c *Cluster) nodeStatus(i int, n instance.Node, a plan.Addresses, programs []process.Program) NodeStatus {
	return NodeStatus{
		Name: n.Name, MemberStatus: c.member(n.Name, a.Node(i).String(), programs),
		Containerd: n.Socket(), Mounts: n.MountNamespace(), Zone: c.set.Zone(i),
	}
}

func (c *Cluster) member(name, ip string, programs []process.Program) MemberStatus {
	m := MemberStatus{IP: ip, Netns: c.set.Network().File(name), State: Running}
	for _, p := range programs {
		if !p.Running(c.groups) {
			m.Dead = append(m.Dead, filepath.Base(p.Path))
		}
	}
	switch {
	case len(m.Dead) == len(programs):
		m.State = Stopped
	case len(m.Dead) > 0:
		m.State = Degraded
	case !c.set.Network().Joined(name):
		m.State = Partitioned
	}
	return m
}
