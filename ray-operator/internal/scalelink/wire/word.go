package wire

import (
	"fmt"
	"math"
	"slices"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink"
)

// FromWord is a word on the wire. Of what can never fit, it holds as much as fits: a user who
// submits work may ask for what cannot be in as many ways as they like.
func FromWord(word scalelink.Word) (Frame, error) {
	word.Never = word.Never[:min(len(word.Never), MaxInfeasible)]
	if err := checkWord(word); err != nil {
		return nil, fmt.Errorf("write a word: %w", err)
	}
	message := &pb.Word{
		Head: word.Head, Trouble: Text(word.Trouble), Targets: make([]*pb.Target, len(word.Targets)),
		Leaving: make([]*pb.Leaver, len(word.Leaving)), Never: make([]*pb.Infeasible, len(word.Never)),
	}
	for i, target := range word.Targets {
		message.Targets[i] = &pb.Target{Group: target.Group, Replicas: int32(target.Replicas), Reason: Text(target.Reason)}
	}
	for i, leaver := range word.Leaving {
		message.Leaving[i] = &pb.Leaver{
			Pod: leaver.Pod, Node: leaver.Node, Reason: value[pb.LeaveReason](reasons, leaver.Reason), Drained: leaver.Drained,
		}
	}
	for i, never := range word.Never {
		message.Never[i] = &pb.Infeasible{Shape: Text(never.Shape), Count: int32(never.Count), Reason: Text(never.Reason)}
	}
	frame, err := marshal(message, MaxWord)
	if err != nil {
		return nil, fmt.Errorf("write a word: %w", err)
	}
	return frame, nil
}

// ToWord reads a word that somebody said.
func ToWord(frame Frame) (scalelink.Word, error) {
	var message pb.Word
	if err := unmarshal(frame, &message, MaxWord); err != nil {
		return scalelink.Word{}, fmt.Errorf("read a word: %w", err)
	}
	word := scalelink.Word{Head: message.GetHead(), Trouble: Text(message.GetTrouble())}
	for _, target := range message.GetTargets() {
		word.Targets = append(word.Targets, scalelink.Target{
			Group: target.GetGroup(), Replicas: int(target.GetReplicas()), Reason: Text(target.GetReason()),
		})
	}
	for _, leaver := range message.GetLeaving() {
		word.Leaving = append(word.Leaving, scalelink.Leaver{
			Pod: leaver.GetPod(), Node: leaver.GetNode(), Reason: meaning(reasons, leaver.GetReason()), Drained: leaver.GetDrained(),
		})
	}
	for _, never := range message.GetNever() {
		word.Never = append(word.Never, scalelink.Infeasible{
			Shape: Text(never.GetShape()), Count: int(never.GetCount()), Reason: Text(never.GetReason()),
		})
	}
	if err := checkWord(word); err != nil {
		return scalelink.Word{}, fmt.Errorf("read a word: %w", err)
	}
	return word, nil
}

func checkWord(word scalelink.Word) error {
	c := &check{}
	c.name("the head's UID", word.Head)
	c.atMost("targets", len(word.Targets), MaxGroups)
	c.atMost("workers that leave", len(word.Leaving), MaxPods)
	c.atMost("requests that never fit", len(word.Never), MaxInfeasible)
	seen := map[string]bool{}
	for _, target := range word.Targets {
		c.name("a target's group", target.Group)
		c.unique("the target of group", seen, target.Group)
		c.number("a target", int64(target.Replicas), 0, MaxReplicas)
	}
	for _, leaver := range word.Leaving {
		c.name("the pod of a worker that leaves", leaver.Pod)
		c.nameOrNone("the node of a worker that leaves", leaver.Node)
		if !slices.Contains(reasons, leaver.Reason) {
			c.fail("the reason %q to leave is none", Text(leaver.Reason))
		}
		if c.err != nil {
			break
		}
	}
	for _, never := range word.Never {
		c.number("how many never fit", int64(never.Count), 0, math.MaxInt32)
	}
	return c.err
}
