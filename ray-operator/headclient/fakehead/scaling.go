package fakehead

import (
	"context"
	"fmt"
	"maps"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// scaling is what GCS and an autoscaler tell each other: the state of the cluster, reports, and floors.
type scaling struct {
	*shared
	autoscaler.UnimplementedAutoscalerStateServiceServer
	rpc.UnimplementedInternalKVGcsServiceServer
	gate     *gate
	cluster  *cluster
	version  int64
	reported *autoscaler.AutoscalingState
	floor    *autoscaler.ClusterResourceConstraint
	stored   map[entry]string
}

// entry is the name of a value in the key-value store.
type entry struct{ namespace, key string }

// Where GCS keeps what nodes there could be.
var configured = entry{"__autoscaler", "__autoscaler_cluster_config"}

// Floor is what request_resources asks for; with nothing it asks for nothing.
func (s *scaling) Floor(asks ...Ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floor = &autoscaler.ClusterResourceConstraint{}
	for _, ask := range asks {
		s.floor.ResourceRequests = append(s.floor.ResourceRequests,
			&autoscaler.ResourceRequestByCount{Request: ask.request(), Count: int64(ask.Count)})
	}
}

// Reported is the report that counts; nil if there is none.
func (s *scaling) Reported() *autoscaler.AutoscalingState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return proto.CloneOf(s.reported)
}

// Stored is a value of the key-value store.
func (s *scaling) Stored(namespace, key string) (value string, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, there = s.stored[entry{namespace, key}]
	return value, there
}

// Store keeps a value in the key-value store, as any code on the cluster can.
func (s *scaling) Store(namespace, key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(entry{namespace, key}, []byte(value))
}

// Configured is which nodes there could be; nil if nobody said.
func (s *scaling) Configured() *autoscaler.ClusterConfig {
	value, there := s.Stored(configured.namespace, configured.key)
	config := &autoscaler.ClusterConfig{}
	if !there || proto.Unmarshal([]byte(value), config) != nil {
		return nil
	}
	return config
}

// GetClusterResourceState lists the nodes and the demand.
func (s *scaling) GetClusterResourceState(_ context.Context, request *autoscaler.GetClusterResourceStateRequest) (*autoscaler.GetClusterResourceStateReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen := request.GetLastSeenClusterResourceStateVersion(); seen > s.version {
		return nil, s.gate.die("it was told of state version %d while it was at %d", seen, s.version)
	}
	s.version++
	return &autoscaler.GetClusterResourceStateReply{ClusterResourceState: s.state()}, nil
}

// state is all that an autoscaler may know. The caller holds the lock.
func (s *scaling) state() *autoscaler.ClusterResourceState {
	s.cluster.settle()
	state := &autoscaler.ClusterResourceState{
		ClusterResourceStateVersion: s.version, ClusterSessionName: []byte(s.session.name),
	}
	for _, one := range s.cluster.nodes {
		if !one.away {
			state.NodeStates = append(state.NodeStates, one.state(s.clock.Now()))
		}
	}
	if s.cluster.heard() {
		state.PendingResourceRequests, state.PendingGangResourceRequests = s.cluster.waitingTasks(s.version), s.cluster.waitingGroups()
	}
	if s.floor != nil {
		state.ClusterResourceConstraints = []*autoscaler.ClusterResourceConstraint{s.floor}
	}
	return state
}

// DrainNode takes a node's leave.
func (s *scaling) DrainNode(ctx context.Context, request *autoscaler.DrainNodeRequest) (*autoscaler.DrainNodeReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(request.GetNodeId()); n != 0 && n != len(headclient.NodeID{}) {
		return nil, s.gate.die("it was asked to drain a node whose id has %d bytes", n)
	}
	if request.GetDeadlineTimestampMs() < 0 {
		return nil, refuse(ctx, "Invalid", "Draining deadline must be non-negative")
	}
	found := s.cluster.find(request.GetNodeId())
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
func (s *scaling) ResizeRayletResourceInstances(ctx context.Context, request *autoscaler.ResizeRayletResourceInstancesRequest) (*autoscaler.ResizeRayletResourceInstancesReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(request.GetNodeId()) != len(headclient.NodeID{}) {
		return nil, refuse(ctx, "InvalidArgument", "Invalid node id")
	}
	found := s.cluster.find(request.GetNodeId())
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

// ReportAutoscalingState keeps a report, unless it is older than the last.
func (s *scaling) ReportAutoscalingState(_ context.Context, request *autoscaler.ReportAutoscalingStateRequest) (*autoscaler.ReportAutoscalingStateReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if told := request.GetAutoscalingState(); told.GetAutoscalerStateVersion() >= s.reported.GetAutoscalerStateVersion() {
		s.reported = told
	}
	return &autoscaler.ReportAutoscalingStateReply{}, nil
}

// ReportClusterConfig keeps which nodes there could be.
func (s *scaling) ReportClusterConfig(_ context.Context, request *autoscaler.ReportClusterConfigRequest) (*autoscaler.ReportClusterConfigReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wire, err := proto.Marshal(request.GetClusterConfig())
	if err != nil {
		return nil, status.Error(codes.Internal, fmt.Sprintf("keep the cluster's config: %v", err))
	}
	s.keep(configured, wire)
	return &autoscaler.ReportClusterConfigReply{}, nil
}

// RequestClusterResourceConstraint sets the one floor.
func (s *scaling) RequestClusterResourceConstraint(_ context.Context, request *autoscaler.RequestClusterResourceConstraintRequest) (*autoscaler.RequestClusterResourceConstraintReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floor = request.GetClusterResourceConstraint()
	return &autoscaler.RequestClusterResourceConstraintReply{}, nil
}

// GetClusterStatus is what "ray status" reads. It counts as an answer about the state.
func (s *scaling) GetClusterStatus(context.Context, *autoscaler.GetClusterStatusRequest) (*autoscaler.GetClusterStatusReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	return &autoscaler.GetClusterStatusReply{AutoscalingState: s.reported, ClusterResourceState: s.state()}, nil
}

// InternalKVPut keeps a value.
func (s *scaling) InternalKVPut(_ context.Context, request *rpc.InternalKVPutRequest) (*rpc.InternalKVPutReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := entry{string(request.GetNamespace()), string(request.GetKey())}
	_, there := s.stored[at]
	if !there || request.GetOverwrite() {
		s.keep(at, request.GetValue())
	}
	return &rpc.InternalKVPutReply{Status: &rpc.GcsStatus{}, Added: !there}, nil
}

func (s *scaling) keep(at entry, value []byte) {
	if s.stored == nil {
		s.stored = map[entry]string{}
	}
	s.stored[at] = string(value)
}

// InternalKVGet reads a value.
func (s *scaling) InternalKVGet(_ context.Context, request *rpc.InternalKVGetRequest) (*rpc.InternalKVGetReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, there := s.stored[entry{string(request.GetNamespace()), string(request.GetKey())}]
	if !there {
		return &rpc.InternalKVGetReply{Status: &rpc.GcsStatus{Code: notFound, Message: []byte("Failed to find the key")}}, nil
	}
	return &rpc.InternalKVGetReply{Status: &rpc.GcsStatus{}, Value: []byte(value)}, nil
}

// InternalKVDel deletes a value.
func (s *scaling) InternalKVDel(_ context.Context, request *rpc.InternalKVDelRequest) (*rpc.InternalKVDelReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stored, entry{string(request.GetNamespace()), string(request.GetKey())})
	return &rpc.InternalKVDelReply{Status: &rpc.GcsStatus{}}, nil
}
