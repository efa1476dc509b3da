package headclient

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
)

// NodeID names a Ray node. Ray's ids have exactly this size; GCS dies of another.
type NodeID [28]byte

// String is the id as Ray's tools print it.
func (id NodeID) String() string { return hex.EncodeToString(id[:]) }

// ParseNodeID reads an id as Ray's tools print it.
func ParseNodeID(printed string) (NodeID, error) {
	raw, err := hex.DecodeString(printed)
	if err != nil {
		return NodeID{}, fmt.Errorf("parse the node id %q: %w", text([]byte(printed)), err)
	}
	return nodeID(raw)
}

var errZeroID = errors.New("the node id is all zero")

func nodeID(raw []byte) (NodeID, error) {
	if len(raw) != len(NodeID{}) {
		return NodeID{}, fmt.Errorf("a node id has %d bytes instead of %d", len(raw), len(NodeID{}))
	}
	id := NodeID(raw)
	if id == (NodeID{}) {
		return NodeID{}, errZeroID
	}
	return id, nil
}

// NodeState is what a node is doing, in Ray's words.
type NodeState string

// The states of a node.
const (
	Running  NodeState = "RUNNING"
	Idle     NodeState = "IDLE"
	Draining NodeState = "DRAINING"
	Dead     NodeState = "DEAD"
)

// Node is one that GCS knows. Dead ones stay listed, about a thousand of them, with ids,
// instance and type alone.
type Node struct {
	ID NodeID
	// Instance is the node's RAY_CLOUD_INSTANCE_ID, which the operator sets to its pod's
	// UID. A raylet that was restarted in its pod has another ID and the same Instance.
	Instance string
	// Type is its RAY_NODE_TYPE_NAME: the group.
	Type  string
	State NodeState
	// Head reports whether it is the head's node.
	Head bool
	// Idle is for how long it has been idle; zero in other states.
	Idle time.Duration
	// Activity says to people why it is not idle: up to eight lines.
	Activity []string
	// Total is what the node has of each of Ray's resources; memory in bytes. Available is
	// what of that is free, where Demand was asked for.
	Total, Available map[string]float64
	// Labels are its own and, where Demand was asked for, those that tell of which placement
	// groups it hosts a part.
	Labels map[string]string
	// Death is why a dead node died, where it was asked for.
	Death Death
}

// Death is why a node is dead.
type Death struct {
	Reason  DeathReason
	Message string
	// At is the head's time, zero if unknown.
	At time.Time
}

// DeathReason is Ray's word for why a node is dead.
type DeathReason string

// The reasons of death that Ray tells apart.
const (
	Unspecified DeathReason = "UNSPECIFIED"
	Expected    DeathReason = "EXPECTED_TERMINATION"
	Unexpected  DeathReason = "UNEXPECTED_TERMINATION"
	// Preempted and DrainedIdle end a drain for one reason and the other.
	Preempted   DeathReason = "AUTOSCALER_DRAIN_PREEMPTED"
	DrainedIdle DeathReason = "AUTOSCALER_DRAIN_IDLE"
)

// State is what GCS knows of nodes, and of what waits for room on them.
type State struct {
	Nodes []Node
	// Pending is how many tasks and actors wait, Gangs how many placement groups.
	Pending int64
	Gangs   int
}

// State asks for the nodes and the demand, without reasons of death. Ray's cost grows with
// the number of nodes: once a second is safe.
func (c *Client) State(ctx context.Context) (State, error) {
	const act = "list the nodes of the head"
	// The request stays empty: 0 is the only state version that never kills GCS.
	reply, done, err := call(ctx, c, act, c.survey, &autoscaler.GetClusterResourceStateRequest{})
	if err != nil {
		return State{}, err
	}
	defer done()
	state, err := readState(reply.GetClusterResourceState())
	if err != nil {
		return State{}, c.fail(Protocol, act, err)
	}
	return state, nil
}

// survey reads of the state only what State tells.
func (c *Client) survey(ctx context.Context, request *autoscaler.GetClusterResourceStateRequest, options ...grpc.CallOption) (*autoscaler.ClusterSurveyReply, error) {
	reply := &autoscaler.ClusterSurveyReply{}
	return reply, c.connection.Invoke(ctx, autoscaler.AutoscalerStateService_GetClusterResourceState_FullMethodName, request, reply, options...)
}

// Deaths asks why nodes died, of those that GCS still knows.
func (c *Client) Deaths(ctx context.Context) (map[NodeID]Death, error) {
	const act = "list the dead nodes of the head"
	dead := rpc.GcsNodeInfo_DEAD
	reply, done, err := call(ctx, c, act, c.nodes.GetAllNodeInfo, &rpc.GetAllNodeInfoRequest{StateFilter: &dead})
	if err != nil {
		return nil, err
	}
	defer done()
	deaths, err := readDeaths(reply)
	if err != nil {
		return nil, c.fail(Protocol, act, err)
	}
	return deaths, nil
}

// Nodes asks for the nodes, dead ones with the reason of their death. It takes two calls
// where there are dead ones.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	state, err := c.State(ctx)
	if err != nil {
		return nil, err
	}
	var deaths map[NodeID]Death
	for i := range state.Nodes {
		node := &state.Nodes[i]
		if node.State != Dead {
			continue
		}
		if deaths == nil {
			if deaths, err = c.Deaths(ctx); err != nil {
				return nil, err
			}
		}
		node.Death = deaths[node.ID]
	}
	return state.Nodes, nil
}

var errNoState = errors.New("the answer has no state") // nothing is not the same as no nodes

func readState(from *autoscaler.ClusterSurvey) (State, error) {
	if from == nil {
		return State{}, errNoState
	}
	state := State{Nodes: make([]Node, 0, len(from.GetNodeStates()))}
	seen := make(map[NodeID]bool, len(from.GetNodeStates()))
	for _, one := range from.GetNodeStates() {
		node, err := readNode(one)
		if err != nil {
			return State{}, err
		}
		if seen[node.ID] {
			return State{}, fmt.Errorf("node %s is listed twice", node.ID)
		}
		seen[node.ID] = true
		state.Nodes = append(state.Nodes, node)
	}
	for _, demand := range from.GetPendingResourceRequests() {
		if demand.GetCount() < 0 || demand.GetCount() > math.MaxInt32 {
			return State{}, fmt.Errorf("%d requests of one shape wait", demand.GetCount())
		}
		state.Pending += demand.GetCount()
	}
	for _, gang := range from.GetPendingGangResourceRequests() {
		if len(gang.GetRequests()) > 0 { // Ray lists groups that wait for nothing, too
			state.Gangs++
		}
	}
	return state, nil
}

// internalHead is the resource that Ray gives the head's node alone.
const internalHead = "node:__internal_head__"

// described is a node as GCS lists it, in whole or in part.
type described interface {
	GetNodeId() []byte
	GetInstanceId() string
	GetRayNodeTypeName() string
	GetStatus() autoscaler.NodeStatus
	GetIdleDurationMs() int64
	GetTotalResources() map[string]float64
	GetLabels() map[string]string
	GetNodeActivity() [][]byte
}

func readNode(from described) (Node, error) {
	id, err := nodeID(from.GetNodeId())
	if err != nil {
		return Node{}, err
	}
	node := Node{ID: id, Instance: from.GetInstanceId(), Type: from.GetRayNodeTypeName()}
	if len(node.Instance) > maxName || len(node.Type) > maxName {
		return Node{}, fmt.Errorf("node %s has an instance or a type of %d bytes", id, max(len(node.Instance), len(node.Type)))
	}
	if node.State, err = readNodeState(from.GetStatus()); err != nil {
		return Node{}, fmt.Errorf("node %s: %w", id, err)
	}
	if node.Idle, err = milliseconds(from.GetIdleDurationMs()); err != nil {
		return Node{}, fmt.Errorf("how long node %s was idle: %w", id, err)
	}
	if node.State != Idle {
		node.Idle = 0
	}
	if node.Total, err = readResources(from.GetTotalResources()); err != nil {
		return Node{}, fmt.Errorf("node %s: %w", id, err)
	}
	_, node.Head = node.Total[internalHead]
	if node.Labels, err = readLabels(from.GetLabels()); err != nil {
		return Node{}, fmt.Errorf("node %s: %w", id, err)
	}
	for _, line := range from.GetNodeActivity()[:min(8, len(from.GetNodeActivity()))] {
		node.Activity = append(node.Activity, text(line))
	}
	return node, nil
}

func readNodeState(status autoscaler.NodeStatus) (NodeState, error) {
	switch status {
	case autoscaler.NodeStatus_RUNNING:
		return Running, nil
	case autoscaler.NodeStatus_IDLE:
		return Idle, nil
	case autoscaler.NodeStatus_DRAINING:
		return Draining, nil
	case autoscaler.NodeStatus_DEAD:
		return Dead, nil
	default:
		return "", fmt.Errorf("unknown status %d", status)
	}
}

// milliseconds reads a duration of up to 100 years, which Ray cannot reach.
func milliseconds(n int64) (time.Duration, error) {
	const century = 100 * 366 * 24 * time.Hour
	if n < 0 || n > century.Milliseconds() {
		return 0, fmt.Errorf("%d ms is not possible", n)
	}
	return time.Duration(n) * time.Millisecond, nil
}

func readResources(from map[string]float64) (map[string]float64, error) {
	for name, amount := range from {
		if err := checkResource(name, amount); err != nil {
			return nil, err
		}
	}
	return from, nil
}

func checkResource(name string, amount float64) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("the name of a resource has %d bytes", len(name))
	case math.IsNaN(amount) || math.IsInf(amount, 0) || amount < 0:
		return fmt.Errorf("resource %s of %v is not possible", text([]byte(name)), amount)
	}
	return nil
}

func readLabels(from map[string]string) (map[string]string, error) {
	for name, value := range from {
		if err := checkLabel(name, value); err != nil {
			return nil, err
		}
	}
	return from, nil
}

func checkLabel(name, value string) error {
	if len(name) > 2*maxName || len(value) > maxName {
		return fmt.Errorf("a label has %d and %d bytes", len(name), len(value))
	}
	return nil
}

func readDeaths(reply *rpc.GetAllNodeInfoReply) (map[NodeID]Death, error) {
	deaths := make(map[NodeID]Death, len(reply.GetNodeInfoList()))
	for _, node := range reply.GetNodeInfoList() {
		id, err := nodeID(node.GetNodeId())
		if err != nil {
			return nil, err
		}
		if node.GetState() != rpc.GcsNodeInfo_DEAD {
			continue // a Ray that does not know the filter
		}
		at, err := instant(node.GetEndTimeMs())
		if err != nil {
			return nil, fmt.Errorf("when node %s died: %w", id, err)
		}
		deaths[id] = Death{Reason: readDeath(node.GetDeathInfo().GetReason()), Message: text(node.GetDeathInfo().GetReasonMessage()), At: at}
	}
	return deaths, nil
}

// readDeath keeps a reason that is not known from being an error: nothing depends on it.
func readDeath(reason rpc.NodeDeathInfo_Reason) DeathReason {
	switch reason {
	case rpc.NodeDeathInfo_EXPECTED_TERMINATION:
		return Expected
	case rpc.NodeDeathInfo_UNEXPECTED_TERMINATION:
		return Unexpected
	case rpc.NodeDeathInfo_AUTOSCALER_DRAIN_PREEMPTED:
		return Preempted
	case rpc.NodeDeathInfo_AUTOSCALER_DRAIN_IDLE:
		return DrainedIdle
	default:
		return Unspecified
	}
}

// instant reads a time since the epoch, which Ray gives in milliseconds here and in
// seconds there. Zero is no time.
func instant(n uint64) (time.Time, error) {
	const (
		seconds = 1e11 // in seconds it is the year 5138, in milliseconds 1973
		last    = 1e14 // in milliseconds the year 5138
	)
	switch {
	case n == 0:
		return time.Time{}, nil
	case n < seconds:
		return time.Unix(int64(n), 0), nil
	case n < last:
		return time.UnixMilli(int64(n)), nil
	default:
		return time.Time{}, fmt.Errorf("%d is no time", n)
	}
}
