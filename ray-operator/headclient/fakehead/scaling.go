package fakehead

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
)

// scaling is what an autoscaler, and the holders of floors, reported to GCS.
type scaling struct {
	reported *autoscaler.AutoscalingState
	floor    *autoscaler.ClusterResourceConstraint
	stored   map[entry]string
}

// entry is the name of a value in the key-value store.
type entry struct{ namespace, key string }

// Where GCS keeps what nodes there could be.
var configured = entry{"__autoscaler", "__autoscaler_cluster_config"}

// Floor is what request_resources asks for; with nothing it asks for nothing.
func (h *Head) Floor(asks ...Ask) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.scaling.floor = &autoscaler.ClusterResourceConstraint{}
	for _, ask := range asks {
		h.scaling.floor.ResourceRequests = append(h.scaling.floor.ResourceRequests,
			&autoscaler.ResourceRequestByCount{Request: ask.request(), Count: int64(ask.Count)})
	}
}

// Reported is the report that counts; nil if there is none.
func (h *Head) Reported() *autoscaler.AutoscalingState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return proto.CloneOf(h.scaling.reported)
}

// Stored is a value of the key-value store.
func (h *Head) Stored(namespace, key string) (value string, there bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	value, there = h.scaling.stored[entry{namespace, key}]
	return value, there
}

// Configured is which nodes there could be; nil if nobody said.
func (h *Head) Configured() *autoscaler.ClusterConfig {
	value, there := h.Stored(configured.namespace, configured.key)
	config := &autoscaler.ClusterConfig{}
	if !there || proto.Unmarshal([]byte(value), config) != nil {
		return nil
	}
	return config
}

// ReportAutoscalingState keeps a report, unless it is older than the last.
func (h *Head) ReportAutoscalingState(_ context.Context, request *autoscaler.ReportAutoscalingStateRequest) (*autoscaler.ReportAutoscalingStateReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if told := request.GetAutoscalingState(); told.GetAutoscalerStateVersion() >= h.scaling.reported.GetAutoscalerStateVersion() {
		h.scaling.reported = told
	}
	return &autoscaler.ReportAutoscalingStateReply{}, nil
}

// ReportClusterConfig keeps which nodes there could be.
func (h *Head) ReportClusterConfig(_ context.Context, request *autoscaler.ReportClusterConfigRequest) (*autoscaler.ReportClusterConfigReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wire, err := proto.Marshal(request.GetClusterConfig())
	if err != nil {
		return nil, status.Error(codes.Internal, fmt.Sprintf("keep the cluster's config: %v", err))
	}
	h.store(configured, wire)
	return &autoscaler.ReportClusterConfigReply{}, nil
}

// RequestClusterResourceConstraint sets the one floor.
func (h *Head) RequestClusterResourceConstraint(_ context.Context, request *autoscaler.RequestClusterResourceConstraintRequest) (*autoscaler.RequestClusterResourceConstraintReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.scaling.floor = request.GetClusterResourceConstraint()
	return &autoscaler.RequestClusterResourceConstraintReply{}, nil
}

// GetClusterStatus is what "ray status" reads. It counts as an answer about the state.
func (h *Head) GetClusterStatus(context.Context, *autoscaler.GetClusterStatusRequest) (*autoscaler.GetClusterStatusReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	return &autoscaler.GetClusterStatusReply{AutoscalingState: h.scaling.reported, ClusterResourceState: h.state()}, nil
}

// InternalKVPut keeps a value.
func (h *Head) InternalKVPut(_ context.Context, request *rpc.InternalKVPutRequest) (*rpc.InternalKVPutReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := entry{string(request.GetNamespace()), string(request.GetKey())}
	_, there := h.scaling.stored[at]
	if !there || request.GetOverwrite() {
		h.store(at, request.GetValue())
	}
	return &rpc.InternalKVPutReply{Status: &rpc.GcsStatus{}, Added: !there}, nil
}

func (h *Head) store(at entry, value []byte) {
	if h.scaling.stored == nil {
		h.scaling.stored = map[entry]string{}
	}
	h.scaling.stored[at] = string(value)
}

// InternalKVGet reads a value.
func (h *Head) InternalKVGet(_ context.Context, request *rpc.InternalKVGetRequest) (*rpc.InternalKVGetReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	value, there := h.scaling.stored[entry{string(request.GetNamespace()), string(request.GetKey())}]
	if !there {
		return &rpc.InternalKVGetReply{Status: &rpc.GcsStatus{Code: notFound, Message: []byte("Failed to find the key")}}, nil
	}
	return &rpc.InternalKVGetReply{Status: &rpc.GcsStatus{}, Value: []byte(value)}, nil
}
