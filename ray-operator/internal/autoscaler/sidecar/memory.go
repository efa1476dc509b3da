package sidecar

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// Seen is what a round knows.
type Seen struct {
	Snapshot protocol.Snapshot
	// Listening tells that an operator is there to hear the decision.
	Listening bool
	Demand    headclient.Demand
	Now       time.Time
}

// Memory is what former rounds leave to the next ones. All of it may be lost at any time: it
// makes rounds more careful and words steadier, and no worker goes because of it alone.
type Memory struct {
	settling settling
	// pods are remembered by their UID while they are ordered or have a node.
	pods map[string]*pod
	// groups are remembered by their name while they are ordered.
	groups  map[string]*group
	leaving leaving
	// recent is what was free and what waited a moment ago.
	recent recent
}

// pod is what is remembered of a pod.
type pod struct {
	// met is when it was first ordered, started when it last was seen to wait for a machine, joined when
	// it was last seen to be a node of Ray's, and node that node.
	met, started, joined time.Time
	node                 headclient.NodeID
	// replace reports that it goes because it is late.
	replace bool
}

// group is what is remembered of a group of workers.
type group struct {
	capacity capacity
	renewal  renewal
	machine  machine
	target   protocol.Target
	// since is when the target became what it is, failing how its newest workers failed then.
	since   time.Time
	failing string
}

// NewMemory is that of a process that has just begun.
func NewMemory() *Memory {
	return &Memory{
		pods: map[string]*pod{}, groups: map[string]*group{},
		leaving: leaving{told: map[string]leave{}, refused: map[headclient.NodeID]time.Time{}},
	}
}

// Failed is told of a round in which the head did not answer: it may have been another one
// that answers next.
func (m *Memory) Failed() { m.settling.doubt() }

// learn brings what is remembered up to what is seen. It is called once a round, first.
func (m *Memory) learn(s *sight) {
	for uid, i := range s.pods {
		if m.pods[uid] == nil {
			m.pods[uid] = &pod{met: s.Now}
		}
		if s.Snapshot.Pods[i].Stage == protocol.Waiting {
			m.pods[uid].started = s.Now
		}
	}
	m.recent.learn(s)
	news := m.join(s)
	m.forget(s)
	m.leaving.learn(s, &m.settling)
	m.settling.settle(s, m.leaving.told)
	waiting := s.waiting()
	for _, ordered := range s.Snapshot.Groups {
		known := m.groups[ordered.Name]
		if known == nil {
			known = &group{}
			m.groups[ordered.Name] = known
		}
		known.capacity.learn(ordered, waiting[ordered.Name], news[ordered.Name], s.Now)
		known.renewal.learn(news[ordered.Name], s.Now)
		known.machine.order(ordered, s.Now)
	}
	m.observe(s)
	m.renew(s)
}

// join notes which pods are nodes, and tells which groups have one more that was waited for.
func (m *Memory) join(s *sight) map[string]bool {
	news := map[string]bool{}
	for uid := range s.nodes {
		known := m.pods[uid]
		if known.joined.IsZero() && known.met.Before(s.Now) {
			news[s.pod(uid).Group] = true
		}
		known.joined, known.node, known.replace = s.Now, s.node(uid).ID, false
	}
	return news
}

// forget drops what nothing seen is about.
func (m *Memory) forget(s *sight) {
	listed := make(map[string]bool, len(s.Demand.Nodes))
	for i := range s.Demand.Nodes {
		listed[s.Demand.Nodes[i].Instance] = true
	}
	for uid := range m.pods {
		if _, ordered := s.pods[uid]; !ordered && !listed[uid] {
			delete(m.pods, uid)
		}
	}
	ordered := make(map[string]bool, len(s.Snapshot.Groups))
	for _, one := range s.Snapshot.Groups {
		ordered[one.Name] = true
	}
	for name := range m.groups {
		if !ordered[name] {
			delete(m.groups, name)
		}
	}
}
