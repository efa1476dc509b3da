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

// Join adds an idle node.
func (h *Head) Join(member Member) headclient.NodeID {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made++
	joined := &node{Member: member, idleSince: h.clock.Now(), used: map[string]float64{}, extra: map[string]float64{}, hosted: map[string]int{}}
	joined.Total = maps.Clone(member.Total)
	if member.Head {
		if joined.Total == nil {
			joined.Total = map[string]float64{}
		}
		joined.Total["node:__internal_head__"] = 1
	}
	binary.BigEndian.PutUint64(joined.id[:], uint64(h.made))
	joined.Labels = maps.Clone(member.Labels)
	if joined.Labels == nil {
		joined.Labels = map[string]string{}
	}
	joined.Labels["ray.io/node-id"] = joined.id.String()
	h.nodes = append(h.nodes, joined)
	return joined.id
}

// Occupy runs something on a node that takes all of its CPUs that are free, until finish is
// called.
func (h *Head) Occupy(id headclient.NodeID) (finish func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := h.find(id[:])
	if found == nil {
		return func() {}
	}
	taken := map[string]float64{"CPU": found.Total["CPU"] - found.used["CPU"]}
	found.take(taken)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		found.give(taken, h.clock.Now())
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
func (h *Head) Kill(id headclient.NodeID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if found := h.find(id[:]); found != nil {
		h.bury(found, rpc.NodeDeathInfo_UNEXPECTED_TERMINATION)
	}
}

// Demand makes so many tasks wait.
func (h *Head) Demand(tasks int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = tasks
}

// find gives the node of an id; nil if GCS knows none. The caller holds the lock.
func (h *Head) find(id []byte) *node {
	for _, one := range h.nodes {
		if !one.away && string(one.id[:]) == string(id) {
			return one
		}
	}
	return nil
}

func (h *Head) bury(n *node, reason rpc.NodeDeathInfo_Reason) {
	if !n.dead {
		n.dead, n.death, n.diedAt = true, reason, h.clock.Now()
	}
}

// settle lets nodes that drain and have nothing to do leave, and forgets the oldest dead.
// The caller holds the lock.
func (h *Head) settle() {
	dead := 0
	for _, one := range h.nodes {
		if one.draining != 0 && one.busy == 0 {
			reason := rpc.NodeDeathInfo_AUTOSCALER_DRAIN_PREEMPTED
			if one.draining == autoscaler.DrainNodeReason_DRAIN_NODE_REASON_IDLE_TERMINATION {
				reason = rpc.NodeDeathInfo_AUTOSCALER_DRAIN_IDLE
			}
			h.bury(one, reason)
		}
		if one.dead {
			one.used, one.extra, one.hosted, one.busy = map[string]float64{}, map[string]float64{}, map[string]int{}, 0
			dead++
		}
	}
	h.nodes = slices.DeleteFunc(h.nodes, func(one *node) bool {
		if one.dead && dead > maxTombstones {
			dead--
			return true
		}
		return false
	})
	h.house()
}

// GetClusterResourceState lists the nodes and the demand.
func (h *Head) GetClusterResourceState(_ context.Context, request *autoscaler.GetClusterResourceStateRequest) (*autoscaler.GetClusterResourceStateReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if seen := request.GetLastSeenClusterResourceStateVersion(); seen > h.version {
		return nil, h.die("it was told of state version %d while it was at %d", seen, h.version)
	}
	h.version++
	return &autoscaler.GetClusterResourceStateReply{ClusterResourceState: h.state()}, nil
}

// state is all that an autoscaler may know. The caller holds the lock.
func (h *Head) state() *autoscaler.ClusterResourceState {
	h.settle()
	state := &autoscaler.ClusterResourceState{
		ClusterResourceStateVersion: h.version, ClusterSessionName: []byte(h.job.session.name),
	}
	for _, one := range h.nodes {
		if !one.away {
			state.NodeStates = append(state.NodeStates, one.state(h.clock.Now()))
		}
	}
	if h.heard() {
		state.PendingResourceRequests, state.PendingGangResourceRequests = h.waitingTasks(), h.waitingGroups()
	}
	if h.scaling.floor != nil {
		state.ClusterResourceConstraints = []*autoscaler.ClusterResourceConstraint{h.scaling.floor}
	}
	return state
}

// heard reports whether GCS knows the head's node, from which all demand comes here.
func (h *Head) heard() bool {
	return !slices.ContainsFunc(h.nodes, func(one *node) bool { return one.Head && one.away })
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

// DrainNode takes a node's leave.
func (h *Head) DrainNode(ctx context.Context, request *autoscaler.DrainNodeRequest) (*autoscaler.DrainNodeReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(request.GetNodeId()); n != 0 && n != len(headclient.NodeID{}) {
		return nil, h.die("it was asked to drain a node whose id has %d bytes", n)
	}
	if request.GetDeadlineTimestampMs() < 0 {
		return nil, refuse(ctx, "Invalid", "Draining deadline must be non-negative")
	}
	found := h.find(request.GetNodeId())
	if found == nil || found.dead {
		return &autoscaler.DrainNodeReply{IsAccepted: true}, nil
	}
	if request.GetReason() == autoscaler.DrainNodeReason_DRAIN_NODE_REASON_IDLE_TERMINATION && found.busy > 0 {
		return &autoscaler.DrainNodeReply{RejectionReasonMessage: []byte("The node to be idle terminated is no longer idle.")}, nil
	}
	found.draining = request.GetReason()
	return &autoscaler.DrainNodeReply{IsAccepted: true}, nil
}

// ResizeRayletResourceInstances sets what a node has.
func (h *Head) ResizeRayletResourceInstances(ctx context.Context, request *autoscaler.ResizeRayletResourceInstancesRequest) (*autoscaler.ResizeRayletResourceInstancesReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(request.GetNodeId()) != len(headclient.NodeID{}) {
		return nil, refuse(ctx, "InvalidArgument", "Invalid node id")
	}
	found := h.find(request.GetNodeId())
	if found == nil || found.dead {
		return nil, refuse(ctx, "NotFound", "Raylet is not alive.")
	}
	if _, whole := request.GetResources()["GPU"]; whole {
		return nil, refuse(ctx, "InvalidArgument", "Cannot resize unit instance resource 'GPU'.")
	}
	if found.Total == nil {
		found.Total = map[string]float64{}
	}
	maps.Copy(found.Total, request.GetResources())
	return &autoscaler.ResizeRayletResourceInstancesReply{TotalResources: maps.Clone(found.Total)}, nil
}

// CheckAlive says that it lives.
func (h *Head) CheckAlive(context.Context, *rpc.CheckAliveRequest) (*rpc.CheckAliveReply, error) {
	return &rpc.CheckAliveReply{Status: &rpc.GcsStatus{}, RayVersion: Version}, nil
}

// GetAllNodeInfo lists nodes by state.
func (h *Head) GetAllNodeInfo(_ context.Context, request *rpc.GetAllNodeInfoRequest) (*rpc.GetAllNodeInfoReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settle()
	reply := &rpc.GetAllNodeInfoReply{Status: &rpc.GcsStatus{}}
	for _, one := range h.nodes {
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
