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
	// Head tells whether it is the head's node.
	Head bool
	// Total is what it has; memory in bytes.
	Total  map[string]float64
	Labels map[string]string
}

type node struct {
	Member
	id        headclient.NodeID
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
	joined := &node{Member: member, idleSince: h.clock.Now()}
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

// Occupy runs something on a node, until finish is called.
func (h *Head) Occupy(id headclient.NodeID) (finish func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := h.find(id[:])
	if found == nil {
		return func() {}
	}
	found.busy++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		found.busy--
		found.idleSince = h.clock.Now()
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

// find gives the node of an id; nil if there is none. The caller holds the lock.
func (h *Head) find(id []byte) *node {
	for _, one := range h.nodes {
		if string(one.id[:]) == string(id) {
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
}

// GetClusterResourceState lists the nodes.
func (h *Head) GetClusterResourceState(_ context.Context, request *autoscaler.GetClusterResourceStateRequest) (*autoscaler.GetClusterResourceStateReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if seen := request.GetLastSeenClusterResourceStateVersion(); seen > h.version {
		return nil, h.die("it was told of state version %d while it was at %d", seen, h.version)
	}
	h.settle()
	h.version++
	state := &autoscaler.ClusterResourceState{ClusterResourceStateVersion: h.version}
	for _, one := range h.nodes {
		state.NodeStates = append(state.NodeStates, one.state(h.clock.Now()))
	}
	if h.pending > 0 {
		state.PendingResourceRequests = append(state.PendingResourceRequests, &autoscaler.ResourceRequestByCount{
			Request: &autoscaler.ResourceRequest{ResourcesBundle: map[string]float64{"CPU": 1}}, Count: h.pending,
		})
	}
	// GCS is seen to list a group that waits for nothing.
	state.PendingGangResourceRequests = append(state.PendingGangResourceRequests, &autoscaler.GangResourceRequest{})
	return &autoscaler.GetClusterResourceStateReply{ClusterResourceState: state}, nil
}

func (n *node) state(now time.Time) *autoscaler.NodeState {
	state := &autoscaler.NodeState{NodeId: n.id[:], InstanceId: n.Instance, RayNodeTypeName: n.Type}
	if n.dead {
		state.Status = autoscaler.NodeStatus_DEAD
		return state
	}
	state.TotalResources, state.Labels, state.NodeIpAddress = maps.Clone(n.Total), maps.Clone(n.Labels), "127.0.0.1"
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
		if request.StateFilter == nil || request.GetStateFilter() == listed.GetState() {
			reply.NodeInfoList = append(reply.NodeInfoList, listed)
		}
	}
	return reply, nil
}
