package fakehead

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// maxTombstones is how many dead nodes GCS remembers.
const maxTombstones = 1000

// Member is a node that joins.
type Member struct {
	// Instance and Type are its RAY_CLOUD_INSTANCE_ID and RAY_NODE_TYPE_NAME.
	Instance, Type string
	// Head reports whether it is the head's node.
	Head bool
	// IP is its address, 127.0.0.1 where none is given.
	IP string
	// Total is what it has; memory in bytes.
	Total  map[string]float64
	Labels map[string]string
}

type node struct {
	Member
	id headclient.NodeID
	// used is what tasks and bundles take, hosted how many bundles there are of a placement
	// group, extra what the node has for their tasks.
	used, extra map[string]float64
	hosted      map[string]int
	// away tells that a GCS that started again has not heard of it yet.
	away      bool
	busy      int
	idleSince time.Time
	draining  autoscaler.DrainNodeReason
	dead      bool
	death     rpc.NodeDeathInfo_Reason
	diedAt    time.Time
}

// cluster is the nodes of a head, and what runs on them or waits for room.
type cluster struct {
	*shared
	rpc.UnimplementedNodeInfoGcsServiceServer
	nodes []*node
	// own is the node of a head for which a test has made none.
	own     *node
	asks    []*asked
	groups  []*group
	pending int64
}

// Join adds an idle node.
func (c *cluster) Join(member Member) headclient.NodeID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	joined := &node{Member: member, idleSince: c.clock.Now(), used: map[string]float64{}, extra: map[string]float64{}, hosted: map[string]int{}}
	joined.Total = maps.Clone(member.Total)
	if member.Head {
		if joined.Total == nil {
			joined.Total = map[string]float64{}
		}
		joined.Total["node:__internal_head__"] = 1
	}
	binary.BigEndian.PutUint64(joined.id[:], uint64(c.made))
	joined.Labels = maps.Clone(member.Labels)
	if joined.Labels == nil {
		joined.Labels = map[string]string{}
	}
	joined.Labels["ray.io/node-id"] = joined.id.String()
	c.nodes = append(c.nodes, joined)
	return joined.id
}

// Occupy runs something on a node that takes all of its CPUs that are free, until finish is
// called.
func (c *cluster) Occupy(id headclient.NodeID) (finish func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.find(id[:])
	if found == nil {
		return func() {}
	}
	taken := map[string]float64{"CPU": found.Total["CPU"] - found.used["CPU"]}
	found.take(taken)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		found.give(taken, c.clock.Now())
	}
}

// take runs something on a node, give ends it.
func (n *node) take(shape map[string]float64) {
	n.busy++
	for name, amount := range shape {
		n.used[name] += amount
	}
}

func (n *node) give(shape map[string]float64, now time.Time) {
	n.busy--
	n.idleSince = now
	for name, amount := range shape {
		n.used[name] -= amount
	}
}

// Kill ends a node without warning.
func (c *cluster) Kill(id headclient.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.find(id[:]); found != nil {
		c.bury(found, rpc.NodeDeathInfo_UNEXPECTED_TERMINATION)
	}
}

// Demand makes so many tasks wait.
func (c *cluster) Demand(tasks int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = tasks
}

// Rejoin brings nodes back that a Recover took away, or all where none is named.
func (c *cluster) Rejoin(ids ...headclient.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.nodes {
		if len(ids) == 0 || slices.Contains(ids, one.id) {
			one.away = false
		}
	}
}

// find gives the node of an id; nil if GCS knows none. The caller holds the lock.
func (c *cluster) find(id []byte) *node {
	for _, one := range c.nodes {
		if !one.away && string(one.id[:]) == string(id) {
			return one
		}
	}
	return nil
}

// hosts are the nodes that Serve knows: those that a test has made, or else the head's own, on which jobs run too.
func (c *cluster) hosts() []*node {
	if len(c.nodes) > 0 {
		return c.nodes
	}
	return []*node{c.own}
}

func (c *cluster) bury(n *node, reason rpc.NodeDeathInfo_Reason) {
	if !n.dead {
		n.dead, n.death, n.diedAt = true, reason, c.clock.Now()
	}
}

// settle lets nodes that drain and have nothing to do leave, and forgets the oldest dead.
// The caller holds the lock.
func (c *cluster) settle() {
	dead := 0
	for _, one := range c.nodes {
		if one.draining != 0 && one.busy == 0 {
			reason := rpc.NodeDeathInfo_AUTOSCALER_DRAIN_PREEMPTED
			if one.draining == autoscaler.DrainNodeReason_DRAIN_NODE_REASON_IDLE_TERMINATION {
				reason = rpc.NodeDeathInfo_AUTOSCALER_DRAIN_IDLE
			}
			c.bury(one, reason)
		}
		if one.dead {
			one.used, one.extra, one.hosted, one.busy = map[string]float64{}, map[string]float64{}, map[string]int{}, 0
			dead++
		}
	}
	c.nodes = slices.DeleteFunc(c.nodes, func(one *node) bool {
		if one.dead && dead > maxTombstones {
			dead--
			return true
		}
		return false
	})
	c.house()
}

// heard reports whether GCS knows the head's node, from which all demand comes here.
func (c *cluster) heard() bool {
	return !slices.ContainsFunc(c.nodes, func(one *node) bool { return one.Head && one.away })
}

func (n *node) state(now time.Time) *autoscaler.NodeState {
	state := &autoscaler.NodeState{NodeId: n.id[:], InstanceId: n.Instance, RayNodeTypeName: n.Type}
	if n.dead {
		state.Status = autoscaler.NodeStatus_DEAD
		return state
	}
	state.TotalResources, state.Labels, state.NodeIpAddress = maps.Clone(n.Total), maps.Clone(n.Labels), "127.0.0.1"
	if state.TotalResources == nil {
		state.TotalResources = map[string]float64{}
	}
	state.AvailableResources, state.DynamicLabels = n.free(), map[string]string{}
	maps.Copy(state.TotalResources, n.extra)
	maps.Copy(state.AvailableResources, n.extra)
	for label := range n.hosted {
		state.DynamicLabels[label] = ""
	}
	switch {
	case n.draining != 0:
		state.Status = autoscaler.NodeStatus_DRAINING
	case n.busy > 0:
		state.Status = autoscaler.NodeStatus_RUNNING
		state.NodeActivity = [][]byte{[]byte("Busy workers on node.")}
	default:
		state.Status = autoscaler.NodeStatus_IDLE
		state.IdleDurationMs = max(1, now.Sub(n.idleSince).Milliseconds())
	}
	return state
}

// CheckAlive says that it lives.
func (c *cluster) CheckAlive(context.Context, *rpc.CheckAliveRequest) (*rpc.CheckAliveReply, error) {
	return &rpc.CheckAliveReply{Status: &rpc.GcsStatus{}, RayVersion: Version}, nil
}

// GetAllNodeInfo lists nodes by state.
func (c *cluster) GetAllNodeInfo(_ context.Context, request *rpc.GetAllNodeInfoRequest) (*rpc.GetAllNodeInfoReply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	reply := &rpc.GetAllNodeInfoReply{Status: &rpc.GcsStatus{}}
	for _, one := range c.nodes {
		listed := &rpc.GcsNodeInfo{NodeId: one.id[:]}
		if one.dead {
			listed.State, listed.EndTimeMs = rpc.GcsNodeInfo_DEAD, uint64(one.diedAt.UnixMilli())
			listed.DeathInfo = &rpc.NodeDeathInfo{Reason: one.death}
		}
		if !one.away && (request.StateFilter == nil || request.GetStateFilter() == listed.GetState()) {
			reply.NodeInfoList = append(reply.NodeInfoList, listed)
		}
	}
	return reply, nil
}
