package sidecar

import (
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// input is what a decision depends on.
func (m *Memory) input(s *sight) decision.Input {
	in := decision.Input{
		MaxNodes: s.Snapshot.MaxNodes, Pace: s.Snapshot.Pace, MayShrink: m.settling.over && s.Listening,
		Demand: demands(s.Demand.Requests), Floor: demands(s.Demand.Floor),
		Gangs:  make([]decision.Gang, 0, len(s.Demand.Gangs)),
		Groups: make([]decision.Group, 0, len(s.Snapshot.Groups)),
	}
	if in.Pace == "" {
		in.Pace = decision.Default
	}
	for i, count := range m.recent.waiting(s) {
		in.Demand[i].Count = count
	}
	failing := m.failing(s)
	for _, ordered := range s.Snapshot.Groups {
		known := m.groups[ordered.Name]
		group := decision.Group{
			Name: ordered.Name, Min: ordered.Min, Max: ordered.Max, Hosts: max(1, ordered.Hosts), Priority: ordered.Priority,
			IdleTimeout: ordered.IdleTimeout, Closed: ordered.Suspended,
			PassedOver: known.capacity.passed(s.Now), Failing: failing[ordered.Name].how,
		}
		group.Resources, group.Labels = known.machine.offers(ordered)
		group.First, group.Numbered = ofSlice(group.Resources, group.Labels)
		in.Groups = append(in.Groups, group)
	}
	for _, gang := range s.Demand.Gangs {
		in.Gangs = append(in.Gangs, gangOf(gang))
	}
	for uid := range s.pods {
		if node := s.node(uid); node != nil {
			in.Nodes = append(in.Nodes, m.worker(s, uid, node))
		} else {
			in.Pods = append(in.Pods, m.coming(s, uid))
		}
	}
	in.Nodes = append(in.Nodes, m.loose(s)...)
	return in
}

func place(pod *protocol.Pod) decision.Place {
	return decision.Place{Key: pod.UID, Group: pod.Group, Replica: pod.Replica, Host: pod.Host}
}

// worker is a pod that is a node. Of two nodes in one pod nobody knows which one works: it
// does not count as idle.
func (m *Memory) worker(s *sight, uid string, node *headclient.Node) decision.Node {
	going, told := m.leaving.told[uid]
	worker := decision.Node{
		Place: place(s.pod(uid)), Available: node.Available, Total: node.Total, Labels: node.Labels,
		Draining: node.State == headclient.Draining || told && going.node == node.ID,
		Going:    s.pod(uid).Stage == protocol.Leaving,
	}
	if !s.twins[uid] {
		worker.Idle = m.leaving.idle(node, s.Now)
	}
	return worker
}

// coming is a pod that is no node. One whose node was drained will not become one.
func (m *Memory) coming(s *sight, uid string) decision.Pod {
	ordered, known := s.pod(uid), m.pods[uid]
	_, told := m.leaving.told[uid]
	since := ordered.Since
	if since.IsZero() {
		since = known.met
	}
	return decision.Pod{
		Place: place(ordered), Waiting: ordered.Stage == protocol.Waiting, Age: max(0, s.Now.Sub(since)),
		Late: m.late(s, uid), Replace: known.replace, Going: told || ordered.Stage == protocol.Leaving,
	}
}

// loose are the nodes of no ordered pod: the head's, and those that joined by other means.
// What runs there needs no room elsewhere; they belong to no group, and never go. Those
// whose pods are gone are dead, and Ray has not missed them yet.
func (m *Memory) loose(s *sight) []decision.Node {
	var all []decision.Node
	for _, i := range s.loose {
		node := &s.Demand.Nodes[i]
		if m.pods[node.Instance] != nil && !node.Head {
			continue
		}
		all = append(all, decision.Node{
			Place:     decision.Place{Key: "node " + node.ID.String()},
			Available: node.Available, Total: node.Total, Labels: node.Labels, Draining: node.State == headclient.Draining,
		})
	}
	return all
}

func demands(requests []headclient.Request) []decision.Demand {
	all := make([]decision.Demand, 0, len(requests))
	for _, request := range requests {
		all = append(all, demandOf(request))
	}
	return all
}

func demandOf(request headclient.Request) decision.Demand {
	demand := decision.Demand{Shape: request.Shape, Count: request.Count}
	for _, selector := range request.Selectors {
		demand.Selectors = append(demand.Selectors, selectorOf(selector))
	}
	for _, constraint := range request.Constraints {
		if constraint.Apart {
			demand.Apart = append(demand.Apart, decision.Label{Name: constraint.Label, Value: constraint.Value})
		}
	}
	return demand
}

func selectorOf(selector headclient.Selector) decision.Selector {
	terms := make(decision.Selector, 0, len(selector))
	for _, term := range selector {
		terms = append(terms, decision.Term{Label: term.Label, Not: term.Not, Values: term.Values})
	}
	return terms
}

// gangOf is a placement group that waits. A locality that is only preferred binds nobody.
func gangOf(gang headclient.Gang) decision.Gang {
	one := decision.Gang{Name: gang.Group, Bundles: demands(gang.Bundles), Together: gang.Strategy == headclient.StrictPack}
	if gang.Locality.Strategy == headclient.StrictPack {
		one.Within = gang.Locality.Label
	}
	if len(gang.Locality.Selector) > 0 {
		one.Selectors = []decision.Selector{selectorOf(gang.Locality.Selector)}
	}
	return one
}
