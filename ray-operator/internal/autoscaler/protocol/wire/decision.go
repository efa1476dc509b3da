package wire

import (
	"fmt"
	"math"
	"slices"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// EncodeDecision returns a decision as it is sent. Of what can never fit, it holds as much as fits: a user who
// submits work may ask for what cannot be in as many ways as they like.
func EncodeDecision(decision protocol.Decision) (Frame, error) {
	decision.Infeasible = decision.Infeasible[:min(len(decision.Infeasible), MaxInfeasible)]
	if err := checkDecision(decision); err != nil {
		return nil, fmt.Errorf("encode a decision: %w", err)
	}
	message := &pb.Word{
		Head: decision.Head, Trouble: Text(decision.Error), Targets: make([]*pb.Target, len(decision.Targets)),
		Leaving: make([]*pb.Leaver, len(decision.Removals)), Never: make([]*pb.Infeasible, len(decision.Infeasible)),
	}
	for i, target := range decision.Targets {
		message.Targets[i] = &pb.Target{Group: target.Group, Replicas: int32(target.Replicas), Reason: Text(target.Reason)}
	}
	for i, removal := range decision.Removals {
		message.Leaving[i] = &pb.Leaver{
			Pod: removal.Pod, Node: removal.Node, Reason: value[pb.LeaveReason](reasons, removal.Reason), Drained: removal.Drained,
		}
	}
	for i, never := range decision.Infeasible {
		message.Never[i] = &pb.Infeasible{Shape: Text(never.Shape), Count: int32(never.Count), Reason: Text(never.Reason)}
	}
	frame, err := marshal(message, MaxDecision)
	if err != nil {
		return nil, fmt.Errorf("encode a decision: %w", err)
	}
	return frame, nil
}

// DecodeDecision reads a decision that somebody sent.
func DecodeDecision(frame Frame) (protocol.Decision, error) {
	var message pb.Word
	if err := unmarshal(frame, &message, MaxDecision); err != nil {
		return protocol.Decision{}, fmt.Errorf("decode a decision: %w", err)
	}
	decision := protocol.Decision{Head: message.GetHead(), Error: Text(message.GetTrouble())}
	for _, target := range message.GetTargets() {
		decision.Targets = append(decision.Targets, protocol.Target{
			Group: target.GetGroup(), Replicas: int(target.GetReplicas()), Reason: Text(target.GetReason()),
		})
	}
	for _, removal := range message.GetLeaving() {
		decision.Removals = append(decision.Removals, protocol.Removal{
			Pod: removal.GetPod(), Node: removal.GetNode(), Reason: meaning(reasons, removal.GetReason()), Drained: removal.GetDrained(),
		})
	}
	for _, never := range message.GetNever() {
		decision.Infeasible = append(decision.Infeasible, protocol.Infeasible{
			Shape: Text(never.GetShape()), Count: int(never.GetCount()), Reason: Text(never.GetReason()),
		})
	}
	if err := checkDecision(decision); err != nil {
		return protocol.Decision{}, fmt.Errorf("decode a decision: %w", err)
	}
	return decision, nil
}

func checkDecision(decision protocol.Decision) error {
	c := &check{}
	c.name("the head's UID", decision.Head)
	c.atMost("targets", len(decision.Targets), MaxGroups)
	c.atMost("workers that leave", len(decision.Removals), MaxPods)
	c.atMost("requests that never fit", len(decision.Infeasible), MaxInfeasible)
	seen := map[string]bool{}
	for _, target := range decision.Targets {
		c.name("a target's group", target.Group)
		c.unique("the target of group", seen, target.Group)
		c.number("a target", int64(target.Replicas), 0, MaxReplicas)
	}
	for _, removal := range decision.Removals {
		c.name("the pod of a worker that leaves", removal.Pod)
		c.nameOrNone("the node of a worker that leaves", removal.Node)
		if !slices.Contains(reasons, removal.Reason) {
			c.fail("unknown reason %q to leave", Text(removal.Reason))
		}
		if c.err != nil {
			break
		}
	}
	for _, never := range decision.Infeasible {
		c.number("how many never fit", int64(never.Count), 0, math.MaxInt32)
	}
	return c.err
}
