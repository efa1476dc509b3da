package sidecar

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

const (
	// dither is for how long a node may go on as if it had not been told to go: Ray was seen
	// to show it after half a second. Then its leave is void.
	dither = 10 * time.Second
	// most is how many nodes are told to go in a round, so that it stays short.
	most = 100
)

// leaving is which workers were told to go, and which would not.
type leaving struct {
	// told are those that go, by the UID of their pod.
	told map[string]leave
	// refused is when a node last would not go.
	refused map[headclient.NodeID]time.Time
}

// leave is that of a worker: the node that was told to go, of whose pod, and when.
type leave struct {
	node headclient.NodeID
	at   time.Time
	// drained tells that the node is no more.
	drained bool
}

// victim is a worker that nothing needs.
type victim struct {
	pod  string
	node headclient.NodeID
	idle time.Duration
}

// victims are the workers that must be told to go: those of a decision, whole replicas,
// and what is left of a replica of which a part has gone. There are none while nobody would
// hear that they went.
func (m *Memory) victims(s *sight, result decision.Result) [][]victim {
	if !s.Listening || !m.settling.over {
		return nil
	}
	var all [][]victim
	at := map[replica]int{}
	count := 0
	for _, uid := range slices.Concat(m.leaving.rest(s), result.Drain) {
		node := s.node(uid)
		if node == nil {
			continue
		}
		of := replicaOf(s.pod(uid))
		i, begun := at[of]
		if !begun {
			if count >= most {
				break
			}
			i = len(all)
			at[of], all = i, append(all, nil)
		}
		count++
		all[i] = append(all[i], victim{uid, node.ID, m.leaving.idle(node, s.Now)})
	}
	return all
}

// rest are the workers of replicas of which a part was told to go, and of which all others
// idle for long enough by now. A decision does not count such replicas.
func (l *leaving) rest(s *sight) []string {
	limits := make(map[string]time.Duration, len(s.Snapshot.Groups))
	for _, ordered := range s.Snapshot.Groups {
		limits[ordered.Name] = ordered.IdleTimeout
	}
	idle := make(map[replica]bool, len(l.told))
	for uid := range l.told {
		idle[replicaOf(s.pod(uid))] = true
	}
	var others []string
	for uid, i := range s.nodes {
		node, pod := &s.Demand.Nodes[i], s.pod(uid)
		of := replicaOf(pod)
		if _, told := l.told[uid]; told || !idle[of] || pod.Stage == protocol.Leaving {
			continue
		}
		idle[of] = !s.twins[uid] && node.State == headclient.Idle && l.idle(node, s.Now) >= limits[pod.Group]
		others = append(others, uid)
	}
	others = slices.DeleteFunc(others, func(uid string) bool { return !idle[replicaOf(s.pod(uid))] })
	slices.Sort(others)
	return others
}

// took notes that a worker goes, or may go because nothing was heard of what it was told.
func (l *leaving) took(v victim, now time.Time) { l.told[v.pod] = leave{node: v.node, at: now} }

// balked notes that a worker would not go.
func (l *leaving) balked(v victim, now time.Time) { l.refused[v.node] = now }

// idle is for how long a node was idle since it last would not go.
func (l *leaving) idle(node *headclient.Node, now time.Time) time.Duration {
	if at, refused := l.refused[node.ID]; refused {
		return min(node.Idle, now.Sub(at))
	}
	return node.Idle
}

// learn brings up to date who goes. What it knows of the head is from the round before.
func (l *leaving) learn(s *sight, head *settling) {
	l.forget(s)
	if head.renewed(s) {
		// Another head need not know of a drain: who is not gone yet is a worker again.
		maps.DeleteFunc(l.told, func(_ string, going leave) bool { return !going.drained })
	}
	l.adopt(s)
	maps.DeleteFunc(l.told, func(uid string, going leave) bool {
		_, ordered := s.pods[uid]
		return !ordered || going.stays(s, uid)
	})
	for uid, going := range l.told {
		// A head that does not know all of its nodes yet says nothing of this one's end.
		going.drained = s.node(uid) == nil && (going.drained || head.over)
		l.told[uid] = going
	}
}

// forget drops refusals of nodes that are gone, or were at work since.
func (l *leaving) forget(s *sight) {
	idle := make(map[headclient.NodeID]time.Duration, len(l.refused))
	for i := range s.Demand.Nodes {
		node := &s.Demand.Nodes[i]
		if _, known := l.refused[node.ID]; known {
			idle[node.ID] = node.Idle
		}
	}
	maps.DeleteFunc(l.refused, func(id headclient.NodeID, at time.Time) bool {
		since, there := idle[id]
		return !there || since < s.Now.Sub(at)
	})
}

// adopt takes over nodes that drain although nobody here told them to: that was before this
// process began, or by hand. They go as well.
func (l *leaving) adopt(s *sight) {
	for uid, i := range s.nodes {
		node := &s.Demand.Nodes[i]
		if _, known := l.told[uid]; !known && node.State == headclient.Draining && s.pod(uid).Stage != protocol.Leaving {
			l.told[uid] = leave{node: node.ID, at: s.Now}
		}
	}
}

// stays reports whether a worker that was told to go does not: it came back as another node,
// or goes on as if nothing had been.
func (going leave) stays(s *sight, uid string) bool {
	node := s.node(uid)
	return node != nil &&
		(node.ID != going.node || s.twins[uid] || node.State != headclient.Draining && s.Now.Sub(going.at) >= dither)
}

// parting is who goes, replica by replica.
type parting struct {
	// back are pods that are given back and never were a worker.
	back map[string]bool
	// gone tells of each replica of which something goes whether all of its pods that are not
	// on their way out have gone or are given back: only then may one of them be taken.
	gone map[replica]bool
}

// parting finds who goes. The pods that are on their way to a replica of which a part was
// told to go are given back with it.
func (m *Memory) parting(s *sight, release []string) parting {
	p := parting{back: make(map[string]bool, len(release)), gone: make(map[replica]bool, len(m.leaving.told)+len(release))}
	for uid := range m.leaving.told {
		p.gone[replicaOf(s.pod(uid))] = true
	}
	for uid := range s.pods {
		if m.returnable(s, uid) && p.gone[replicaOf(s.pod(uid))] {
			p.back[uid] = true
		}
	}
	for _, uid := range release {
		if _, ordered := s.pods[uid]; ordered && m.returnable(s, uid) {
			p.back[uid], p.gone[replicaOf(s.pod(uid))] = true, true
		}
	}
	for uid := range s.pods {
		pod := s.pod(uid)
		if of := replicaOf(pod); p.gone[of] {
			p.gone[of] = pod.Stage == protocol.Leaving || p.back[uid] || m.leaving.told[uid].drained
		}
	}
	return p
}

// returnable reports whether a pod may be given back: it never was a node, or has been none for so long that it is
// late, and is not on its way out.
func (m *Memory) returnable(s *sight, uid string) bool {
	_, told := m.leaving.told[uid]
	return !told && s.node(uid) == nil && (!m.worked(uid) || m.late(s, uid)) && s.pod(uid).Stage != protocol.Leaving
}

// removals are the workers that go, drained or not, and the pods that are given back.
func (m *Memory) removals(s *sight, p parting) []protocol.Removal {
	var all []protocol.Removal
	for uid, going := range m.leaving.told {
		all = append(all, protocol.Removal{
			Pod: uid, Node: going.node.String(), Reason: protocol.Idle, Drained: going.drained && p.gone[replicaOf(s.pod(uid))],
		})
	}
	for uid := range p.back {
		of := replicaOf(s.pod(uid))
		reason := protocol.Unneeded
		if known := m.groups[of.group]; known != nil && known.capacity.passed(s.Now) {
			reason = protocol.NoCapacity
		}
		if m.pods[uid].replace {
			reason = protocol.Late
		}
		removal := protocol.Removal{Pod: uid, Reason: reason, Drained: p.gone[of]}
		if m.worked(uid) {
			removal.Node = m.pods[uid].node.String()
		}
		all = append(all, removal)
	}
	slices.SortFunc(all, func(a, b protocol.Removal) int { return cmp.Compare(a.Pod, b.Pod) })
	return all
}

// draining reports whether a worker is on its way out and not gone yet.
func (l *leaving) draining() bool {
	for _, going := range l.told {
		if !going.drained {
			return true
		}
	}
	return false
}
