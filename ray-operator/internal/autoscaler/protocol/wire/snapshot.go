package wire

import (
	"fmt"
	"math"
	"slices"
	"time"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// EncodeSnapshot returns a snapshot as it is sent.
func EncodeSnapshot(snapshot protocol.Snapshot) (Frame, error) {
	if err := checkSnapshot(snapshot); err != nil {
		return nil, fmt.Errorf("encode a snapshot: %w", err)
	}
	message := &pb.Orders{
		Head: snapshot.Head, MaxNodes: int32(snapshot.MaxNodes), Pace: value[pb.Pace](paces, snapshot.Pace),
		Groups: make([]*pb.Group, len(snapshot.Groups)), Pods: make([]*pb.Pod, len(snapshot.Pods)),
	}
	for i, group := range snapshot.Groups {
		message.Groups[i] = &pb.Group{
			Name: group.Name, Min: int32(group.Min), Max: int32(group.Max), Hosts: int32(group.Hosts), Priority: int32(group.Priority),
			IdleTimeoutMs: group.IdleTimeout.Milliseconds(), CapacityTimeoutMs: group.CapacityTimeout.Milliseconds(),
			Resources: group.Resources, Labels: group.Labels, DetectsGpus: group.DetectsGPUs, Suspended: group.Suspended,
		}
	}
	for i, pod := range snapshot.Pods {
		message.Pods[i] = &pb.Pod{
			Uid: pod.UID, Group: pod.Group, Replica: int32(pod.Replica), Host: int32(pod.Host),
			Stage: value[pb.Stage](stages, pod.Stage), Why: Text(pod.Why),
		}
		if !pod.Since.IsZero() {
			message.Pods[i].SinceMs = pod.Since.UnixMilli()
		}
	}
	frame, err := marshal(message, MaxSnapshot)
	if err != nil {
		return nil, fmt.Errorf("encode a snapshot: %w", err)
	}
	return frame, nil
}

// DecodeSnapshot reads a snapshot that somebody sent.
func DecodeSnapshot(message *pb.Orders) (protocol.Snapshot, error) {
	snapshot := protocol.Snapshot{Head: message.GetHead(), MaxNodes: int(message.GetMaxNodes()), Pace: meaning(paces, message.GetPace())}
	c := &check{}
	for _, group := range message.GetGroups() {
		snapshot.Groups = append(snapshot.Groups, protocol.Group{
			Name: group.GetName(), Min: int(group.GetMin()), Max: int(group.GetMax()), Hosts: int(group.GetHosts()),
			Priority: int(group.GetPriority()), Resources: group.GetResources(), Labels: group.GetLabels(), Suspended: group.GetSuspended(),
			DetectsGPUs:     group.GetDetectsGpus(),
			IdleTimeout:     c.milliseconds("an idle timeout", group.GetIdleTimeoutMs()),
			CapacityTimeout: c.milliseconds("a capacity timeout", group.GetCapacityTimeoutMs()),
		})
	}
	for _, pod := range message.GetPods() {
		read := protocol.Pod{
			UID: pod.GetUid(), Group: pod.GetGroup(), Replica: int(pod.GetReplica()), Host: int(pod.GetHost()),
			Stage: meaning(stages, pod.GetStage()), Why: Text(pod.GetWhy()),
		}
		if since := pod.GetSinceMs(); since != 0 {
			c.number("the time of a pod", since, 0, maxSince)
			read.Since = time.UnixMilli(since).UTC()
		}
		snapshot.Pods = append(snapshot.Pods, read)
	}
	if c.err == nil {
		c.err = checkSnapshot(snapshot)
	}
	if c.err != nil {
		return protocol.Snapshot{}, fmt.Errorf("decode a snapshot: %w", c.err)
	}
	return snapshot, nil
}

// maxSince is the end of the year 9999 in milliseconds.
const maxSince = 253_402_300_799_999

// milliseconds is a duration that is not too long to be one.
func (c *check) milliseconds(what string, value int64) time.Duration {
	c.number(what, value, 0, MaxTime.Milliseconds())
	return time.Duration(min(value, MaxTime.Milliseconds())) * time.Millisecond
}

func checkSnapshot(snapshot protocol.Snapshot) error {
	c := &check{}
	c.name("the head's UID", snapshot.Head)
	c.number("the most nodes", int64(snapshot.MaxNodes), 0, MaxNodes)
	if !slices.Contains(paces, snapshot.Pace) {
		c.fail("unknown pace %q", Text(string(snapshot.Pace)))
	}
	c.atMost("groups", len(snapshot.Groups), MaxGroups)
	c.atMost("pods", len(snapshot.Pods), MaxPods)
	seen := map[string]bool{}
	for _, group := range snapshot.Groups {
		c.unique("group", seen, group.Name)
		c.group(group)
	}
	clear(seen)
	for _, pod := range snapshot.Pods {
		c.unique("pod", seen, pod.UID)
		c.pod(pod)
		if c.err != nil {
			break
		}
	}
	return c.err
}

func (c *check) group(group protocol.Group) {
	c.name("a group's name", group.Name)
	c.number("a minimum", int64(group.Min), 0, MaxReplicas)
	c.number("a maximum", int64(group.Max), 0, MaxReplicas)
	c.number("the hosts of a replica", int64(group.Hosts), 1, MaxReplicas)
	c.number("a priority", int64(group.Priority), math.MinInt32, math.MaxInt32)
	c.duration("an idle timeout", group.IdleTimeout)
	c.duration("a capacity timeout", group.CapacityTimeout)
	c.atMost("resources of a group", len(group.Resources), MaxKinds)
	c.atMost("labels of a group", len(group.Labels), MaxKinds)
	for name, amount := range group.Resources {
		c.name("a resource's name", name)
		c.amount("a resource", amount)
	}
	for name, value := range group.Labels {
		c.name("a label's name", name)
		c.nameOrNone("a label", value)
	}
}

func (c *check) pod(pod protocol.Pod) {
	c.name("a pod's UID", pod.UID)
	c.name("a pod's group", pod.Group)
	c.number("a pod's replica", int64(pod.Replica), 0, math.MaxInt32)
	c.number("a pod's host", int64(pod.Host), 0, math.MaxInt32)
	c.number("a pod's stage", int64(pod.Stage), int64(protocol.Waiting), int64(protocol.Leaving))
	if !pod.Since.IsZero() {
		c.number("the time of a pod", pod.Since.UnixMilli(), 0, maxSince)
	}
}

// What the values of the wire's enums stand for. A value that is missing here is of another
// version, and taken for the first.
var (
	paces = []decision.Pace{
		pb.Pace_PACE_DEFAULT: decision.Default, pb.Pace_PACE_CONSERVATIVE: decision.Conservative,
		pb.Pace_PACE_AGGRESSIVE: decision.Aggressive,
	}
	stages = []protocol.Stage{
		pb.Stage_STAGE_STARTING: protocol.Starting, pb.Stage_STAGE_WAITING: protocol.Waiting,
		pb.Stage_STAGE_READY: protocol.Ready, pb.Stage_STAGE_LEAVING: protocol.Leaving,
	}
	reasons = []string{
		pb.LeaveReason_LEAVE_REASON_UNNEEDED: protocol.Unneeded, pb.LeaveReason_LEAVE_REASON_IDLE: protocol.Idle,
		pb.LeaveReason_LEAVE_REASON_NO_CAPACITY: protocol.NoCapacity, pb.LeaveReason_LEAVE_REASON_LATE: protocol.Late,
	}
)

// meaning is what a value of an enum stands for.
func meaning[Enum ~int32, Meaning any](table []Meaning, value Enum) Meaning {
	if value < 0 || int(value) >= len(table) {
		return table[0]
	}
	return table[value]
}

// value is the value of an enum that stands for something, which is in the table.
func value[Enum ~int32, Meaning comparable](table []Meaning, meaning Meaning) Enum {
	return Enum(max(0, slices.Index(table, meaning)))
}
