package sidecar

import (
	"bytes"
	"cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// sight is what is seen, with nodes matched to pods. A pod's UID is its node's instance.
type sight struct {
	Seen
	// pods are indices of the ordered pods by UID.
	pods map[string]int
	// nodes are indices of the nodes of those pods, by UID: of a raylet that was restarted
	// in its pod, and whose former node Ray has not missed yet, the livelier one.
	nodes map[string]int
	// twins are pods with several nodes that are alive, loose the nodes of no ordered pod,
	// the head's among them.
	twins map[string]bool
	loose []int
}

func look(seen Seen) *sight {
	s := &sight{Seen: seen, pods: make(map[string]int, len(seen.Snapshot.Pods)), nodes: make(map[string]int, len(seen.Snapshot.Pods)), twins: map[string]bool{}}
	for i := range seen.Snapshot.Pods {
		if uid := seen.Snapshot.Pods[i].UID; uid != "" {
			s.pods[uid] = i
		}
	}
	for i := range seen.Demand.Nodes {
		node := &seen.Demand.Nodes[i]
		if _, ordered := s.pods[node.Instance]; !ordered || node.Head {
			s.loose = append(s.loose, i)
			continue
		}
		other, second := s.nodes[node.Instance]
		if second {
			s.twins[node.Instance] = true
			if !livelier(node, &seen.Demand.Nodes[other]) {
				continue
			}
		}
		s.nodes[node.Instance] = i
	}
	return s
}

// livelier reports whether a node of a pod counts, and not another of the same pod. Of two
// that idle, the one that began later is the one that is there.
func livelier(a, b *headclient.Node) bool {
	return cmp.Or(cmp.Compare(liveliness(b), liveliness(a)), cmp.Compare(a.Idle, b.Idle), bytes.Compare(a.ID[:], b.ID[:])) < 0
}

func liveliness(node *headclient.Node) int {
	switch node.State {
	case headclient.Running:
		return 2
	case headclient.Idle:
		return 1
	default:
		return 0
	}
}

// pod is the ordered pod of a UID that is known to be ordered.
func (s *sight) pod(uid string) *protocol.Pod { return &s.Snapshot.Pods[s.pods[uid]] }

// node is the node of a pod, nil if it is none of Ray's.
func (s *sight) node(uid string) *headclient.Node {
	if i, joined := s.nodes[uid]; joined {
		return &s.Demand.Nodes[i]
	}
	return nil
}

// replica is where pods belong together.
type replica struct {
	group string
	index int
}

func replicaOf(pod *protocol.Pod) replica { return replica{pod.Group, pod.Replica} }
