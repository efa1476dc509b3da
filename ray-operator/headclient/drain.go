package headclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
)

// DrainReason is why a node is to leave.
type DrainReason string

const (
	// IdleTermination asks a node to leave if it is idle. Ray may refuse.
	IdleTermination DrainReason = "IDLE_TERMINATION"
	// Preemption tells a node to leave. Ray always accepts; what runs goes on, new work
	// goes elsewhere, and Serve and Train move away.
	Preemption DrainReason = "PREEMPTION"
)

// Drain is the wish that a node leaves.
type Drain struct {
	Node   NodeID
	Reason DrainReason
	// Message is for people; what is over 256 bytes is cut.
	Message string
	// Deadline is told to what runs on the node; nothing in Ray ends the node then. Zero is
	// none. Ray keeps it in milliseconds.
	Deadline time.Time
}

// Verdict is Ray's answer to a Drain. Ray accepts to drain a node that is dead, or that it
// does not know: whether a node leaves is seen in its State.
type Verdict struct {
	Accepted bool
	// Why is Ray's reason against it.
	Why string
}

// Drain asks a node to leave. It may be sent again: a node that drains goes on draining. A
// refusal is a verdict and no error.
func (c *Client) Drain(ctx context.Context, wish Drain) (Verdict, error) {
	const act = "drain a node of the head"
	request := &autoscaler.DrainNodeRequest{NodeId: wish.Node[:], ReasonMessage: text([]byte(wish.Message))}
	switch wish.Reason {
	case IdleTermination:
		request.Reason = autoscaler.DrainNodeReason_DRAIN_NODE_REASON_IDLE_TERMINATION
	case Preemption:
		request.Reason = autoscaler.DrainNodeReason_DRAIN_NODE_REASON_PREEMPTION
	default:
		return Verdict{}, c.fail(Invalid, act, fmt.Errorf("%q is no reason", wish.Reason))
	}
	if wish.Node == (NodeID{}) {
		return Verdict{}, c.fail(Invalid, act, errZeroID)
	}
	if !wish.Deadline.IsZero() {
		if request.DeadlineTimestampMs = wish.Deadline.UnixMilli(); request.DeadlineTimestampMs <= 0 {
			return Verdict{}, c.fail(Invalid, act, fmt.Errorf("the deadline %s is before 1970", wish.Deadline))
		}
	}
	if err := c.options.permits(true); err != nil {
		return Verdict{}, c.fail(Unavailable, act, err)
	}
	reply, done, err := call(ctx, c, act, c.autoscaler.DrainNode, request)
	if err != nil {
		return Verdict{}, err
	}
	defer done()
	return Verdict{Accepted: reply.GetIsAccepted(), Why: text(reply.GetRejectionReasonMessage())}, nil
}

// Resize sets how much a node has of some of Ray's resources, memory in bytes, and gives
// all that it has then: shrinking stops at what is free. Ray refuses resources that are
// counted one by one, such as GPU, and nodes that are not alive; before 2.56 it does not
// know the call.
func (c *Client) Resize(ctx context.Context, node NodeID, resources map[string]float64) (map[string]float64, error) {
	const act = "resize a node of the head"
	if node == (NodeID{}) {
		return nil, c.fail(Invalid, act, errZeroID)
	}
	if len(resources) == 0 {
		return nil, c.fail(Invalid, act, errors.New("no resource is named"))
	}
	if _, err := readResources(resources); err != nil {
		return nil, c.fail(Invalid, act, err)
	}
	if err := c.options.permits(true); err != nil {
		return nil, c.fail(Unavailable, act, err)
	}
	reply, done, err := call(ctx, c, act, c.autoscaler.ResizeRayletResourceInstances,
		&autoscaler.ResizeRayletResourceInstancesRequest{NodeId: node[:], Resources: resources})
	if err != nil {
		return nil, err
	}
	defer done()
	total, err := readResources(reply.GetTotalResources())
	if err != nil {
		return nil, c.fail(Protocol, act, err)
	}
	return total, nil
}
