package wire

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

func fullSnapshot() protocol.Snapshot {
	snapshot := protocol.Snapshot{Head: "head", MaxNodes: 7, Pace: decision.Aggressive, Groups: []protocol.Group{
		{
			Name: "gpu", Min: 1, Max: 4, Hosts: 2, Priority: -3, IdleTimeout: time.Minute, CapacityTimeout: time.Hour,
			Resources: map[string]float64{"GPU": 0.5, "memory": 1 << 40}, Labels: map[string]string{"ray.io/zone": "a", "empty": ""},
		},
		{Name: "cpu", Max: MaxReplicas, Hosts: 1, Suspended: true, DetectsGPUs: true},
	}}
	for stage := protocol.Waiting; stage <= protocol.Leaving; stage++ {
		snapshot.Pods = append(snapshot.Pods, protocol.Pod{
			UID: fmt.Sprint("pod-", stage), Group: "gpu", Replica: 3, Host: 1, Stage: stage, Since: time.UnixMilli(1_700_000_000_123).UTC(), Why: "no node has GPU",
		})
	}
	snapshot.Pods[0].Since = time.Time{}
	return snapshot
}

func fullDecision() protocol.Decision {
	return protocol.Decision{
		Head: "head", Error: "the head does not answer",
		Targets: []protocol.Target{{Group: "gpu", Replicas: 4, Reason: "3 × {GPU: 1}"}, {Group: "cpu"}},
		Removals: []protocol.Removal{
			{Pod: "a", Node: "00ff", Reason: protocol.Idle, Drained: true}, {Pod: "b", Reason: protocol.NoCapacity}, {Pod: "c", Reason: protocol.Unneeded}, {Pod: "d", Reason: protocol.Late},
		},
		Infeasible: []protocol.Infeasible{{Shape: "{GPU: 9}", Count: 3, Reason: "the largest group has 8 GPU"}},
	}
}

// readSnapshot reads orders as a server does.
func readSnapshot(frame []byte) (protocol.Snapshot, error) {
	var message pb.Orders
	if err := (codec{}).Unmarshal(frame, &message); err != nil {
		return protocol.Snapshot{}, err
	}
	return DecodeSnapshot(&message)
}

func TestNothingIsLostOnTheWay(t *testing.T) {
	frame, err := EncodeSnapshot(fullSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := readSnapshot(frame)
	if diff := cmp.Diff(fullSnapshot(), snapshot); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for range 20 {
		if again, err := EncodeSnapshot(fullSnapshot()); err != nil || string(again) != string(frame) {
			t.Fatal("the same orders are other bytes", err)
		}
	}
	if frame, err = EncodeDecision(fullDecision()); err != nil {
		t.Fatal(err)
	}
	decision, err := DecodeDecision(frame)
	if diff := cmp.Diff(fullDecision(), decision); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// TestSnapshotsAreBounded: what is refused when it is written is what is refused when it is read.
func TestSnapshotsAreBounded(t *testing.T) {
	long := strings.Repeat("x", MaxName+1)
	for name, change := range map[string]func(*protocol.Snapshot){
		"no head":                 func(o *protocol.Snapshot) { o.Head = "" },
		"a long head":             func(o *protocol.Snapshot) { o.Head = long },
		"no pace of ours":         func(o *protocol.Snapshot) { o.Pace = "Reckless" },
		"no pace":                 func(o *protocol.Snapshot) { o.Pace = "" },
		"a negative limit":        func(o *protocol.Snapshot) { o.MaxNodes = -1 },
		"a high limit":            func(o *protocol.Snapshot) { o.MaxNodes = MaxNodes + 1 },
		"many groups":             func(o *protocol.Snapshot) { o.Groups = make([]protocol.Group, MaxGroups+1) },
		"a group twice":           func(o *protocol.Snapshot) { o.Groups[1] = o.Groups[0] },
		"a group without a name":  func(o *protocol.Snapshot) { o.Groups[0].Name = "" },
		"an unseen name":          func(o *protocol.Snapshot) { o.Groups[0].Name = "a\x1b[2J" },
		"broken UTF-8":            func(o *protocol.Snapshot) { o.Groups[0].Name = "a\xff" },
		"a negative minimum":      func(o *protocol.Snapshot) { o.Groups[0].Min = -1 },
		"a high maximum":          func(o *protocol.Snapshot) { o.Groups[0].Max = MaxReplicas + 1 },
		"no hosts":                func(o *protocol.Snapshot) { o.Groups[0].Hosts = 0 },
		"a high priority":         func(o *protocol.Snapshot) { o.Groups[0].Priority = math.MaxInt32 + 1 },
		"a negative idle time":    func(o *protocol.Snapshot) { o.Groups[0].IdleTimeout = -1 },
		"a long idle time":        func(o *protocol.Snapshot) { o.Groups[0].IdleTimeout = MaxTime + 1 },
		"a long capacity timeout": func(o *protocol.Snapshot) { o.Groups[0].CapacityTimeout = math.MaxInt64 },
		"a negative resource":     func(o *protocol.Snapshot) { o.Groups[0].Resources["GPU"] = -1 },
		"an infinite resource":    func(o *protocol.Snapshot) { o.Groups[0].Resources["GPU"] = math.Inf(1) },
		"no number":               func(o *protocol.Snapshot) { o.Groups[0].Resources["GPU"] = math.NaN() },
		"a long label":            func(o *protocol.Snapshot) { o.Groups[0].Labels["a"] = long },
		"a long resource":         func(o *protocol.Snapshot) { o.Groups[0].Resources[long] = 1 },
		"many resources":          func(o *protocol.Snapshot) { o.Groups[0].Resources = many(1.0) },
		"many labels":             func(o *protocol.Snapshot) { o.Groups[0].Labels = many("") },
		"many pods":               func(o *protocol.Snapshot) { o.Pods = make([]protocol.Pod, MaxPods+1) },
		"a pod twice":             func(o *protocol.Snapshot) { o.Pods[1].UID = o.Pods[0].UID },
		"a pod of no group":       func(o *protocol.Snapshot) { o.Pods[1].Group = "" },
		"no stage":                func(o *protocol.Snapshot) { o.Pods[1].Stage = protocol.Leaving + 1 },
		"a negative replica":      func(o *protocol.Snapshot) { o.Pods[1].Replica = -1 },
		"a high host":             func(o *protocol.Snapshot) { o.Pods[1].Host = math.MaxInt32 + 1 },
		"a time long ago":         func(o *protocol.Snapshot) { o.Pods[1].Since = time.Unix(-1, 0) },
		"a time far ahead":        func(o *protocol.Snapshot) { o.Pods[1].Since = time.UnixMilli(maxSince + 1) },
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := fullSnapshot()
			change(&snapshot)
			if _, err := EncodeSnapshot(snapshot); !errors.Is(err, ErrBounds) {
				t.Errorf("written: %v", err)
			}
		})
	}
}

func many[V any](value V) map[string]V {
	all := map[string]V{}
	for i := range MaxKinds + 1 {
		all[fmt.Sprint("kind-", i)] = value
	}
	return all
}

func TestDecisionsAreBounded(t *testing.T) {
	for name, change := range map[string]func(*protocol.Decision){
		"no head":             func(w *protocol.Decision) { w.Head = "" },
		"many targets":        func(w *protocol.Decision) { w.Targets = make([]protocol.Target, MaxGroups+1) },
		"a target twice":      func(w *protocol.Decision) { w.Targets[1].Group = w.Targets[0].Group },
		"a negative target":   func(w *protocol.Decision) { w.Targets[0].Replicas = -1 },
		"a high target":       func(w *protocol.Decision) { w.Targets[0].Replicas = MaxReplicas + 1 },
		"a target of nobody":  func(w *protocol.Decision) { w.Targets[0].Group = "" },
		"many leave":          func(w *protocol.Decision) { w.Removals = make([]protocol.Removal, MaxPods+1) },
		"nobody leaves":       func(w *protocol.Decision) { w.Removals[0].Pod = "" },
		"no reason to leave":  func(w *protocol.Decision) { w.Removals[0].Reason = "Bored" },
		"a long node":         func(w *protocol.Decision) { w.Removals[0].Node = strings.Repeat("f", MaxName+1) },
		"fewer than no shape": func(w *protocol.Decision) { w.Infeasible[0].Count = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			decision := fullDecision()
			change(&decision)
			if _, err := EncodeDecision(decision); !errors.Is(err, ErrBounds) {
				t.Errorf("written: %v", err)
			}
		})
	}
}

// TestMessagesOfOthersAreBounded: what we would not write is not read either.
func TestMessagesOfOthersAreBounded(t *testing.T) {
	for name, message := range map[string]*pb.Word{
		"no head":            {},
		"a negative target":  {Head: "head", Targets: []*pb.Target{{Group: "cpu", Replicas: -1}}},
		"many targets":       {Head: "head", Targets: make([]*pb.Target, MaxGroups+1)},
		"many never fit":     {Head: "head", Never: make([]*pb.Infeasible, MaxInfeasible+1)},
		"many leave":         {Head: "head", Leaving: make([]*pb.Leaver, MaxPods+1)},
		"a negative count":   {Head: "head", Never: []*pb.Infeasible{{Count: -1}}},
		"many parts at once": {Head: "head", Leaving: make([]*pb.Leaver, maxParts)},
		"too long":           {Head: "head", Trouble: strings.Repeat("x", MaxDecision)},
	} {
		frame, err := (codec{}).Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		if decision, err := DecodeDecision(frame); !errors.Is(err, ErrBounds) {
			t.Errorf("%s: read as %+v, %v", name, decision, err)
		}
	}
	for name, message := range map[string]*pb.Orders{
		"a long time":     {Head: "head", Groups: []*pb.Group{{Name: "cpu", Hosts: 1, IdleTimeoutMs: math.MaxInt64}}},
		"a negative time": {Head: "head", Groups: []*pb.Group{{Name: "cpu", Hosts: 1, CapacityTimeoutMs: -1}}},
		"a time long ago": {Head: "head", Pods: []*pb.Pod{{Uid: "a", Group: "cpu", SinceMs: -1}}},
		"a pod of nobody": {Head: "head", Pods: []*pb.Pod{{}}},
	} {
		if snapshot, err := DecodeSnapshot(message); !errors.Is(err, ErrBounds) {
			t.Errorf("%s: read as %+v, %v", name, snapshot, err)
		}
	}
}

// TestOtherVersions: what another version says is read as far as we know it.
func TestOtherVersions(t *testing.T) {
	frame, err := EncodeDecision(protocol.Decision{Head: "head"})
	if err != nil {
		t.Fatal(err)
	}
	frame = protowire.AppendString(protowire.AppendTag(frame, 99, protowire.BytesType), "what we do not know")
	if decision, err := DecodeDecision(frame); err != nil || decision.Head != "head" {
		t.Error(decision, err)
	}
	for _, unknown := range []int32{-1, 77} {
		snapshot, err := DecodeSnapshot(&pb.Orders{Head: "head", Pace: pb.Pace(unknown), Pods: []*pb.Pod{{Uid: "a", Group: "cpu", Stage: pb.Stage(unknown)}}})
		if err != nil || snapshot.Pace != decision.Default || snapshot.Pods[0].Stage != protocol.Starting {
			t.Error(snapshot, err)
		}
	}
}

// TestTextsAreCut: texts for people are never why a message is refused.
func TestTextsAreCut(t *testing.T) {
	for said, shown := range map[string]string{
		"as it is":                     "as it is",
		"in\ntwo\x1b[2Jlines":          "in two [2Jlines",
		"broken \xff UTF-8":            "broken  UTF-8",
		strings.Repeat("x", 600):       strings.Repeat("x", MaxText),
		"a" + strings.Repeat("é", 600): "a" + strings.Repeat("é", 255),
	} {
		if got := Text(said); got != shown || !utf8.ValidString(got) || Text(got) != got {
			t.Errorf("%q is shown as %q", said, got)
		}
	}
	decision := fullDecision()
	decision.Infeasible = make([]protocol.Infeasible, 3*MaxInfeasible)
	decision.Targets[0].Reason = strings.Repeat("\xff", 600)
	frame, err := EncodeDecision(decision)
	if err != nil {
		t.Fatal(err)
	}
	if decision, err = DecodeDecision(frame); err != nil || len(decision.Infeasible) != MaxInfeasible {
		t.Error(len(decision.Infeasible), err)
	}
}

// TestTheLargestClusterFits within the limits.
func TestTheLargestClusterFits(t *testing.T) {
	snapshot := protocol.Snapshot{Head: "head", Pace: decision.Default}
	decision := protocol.Decision{Head: "head"}
	for i := range MaxGroups {
		snapshot.Groups = append(snapshot.Groups, protocol.Group{Name: fmt.Sprint("group-", i), Hosts: 1, Resources: map[string]float64{"CPU": 1, "memory": 1}})
		decision.Targets = append(decision.Targets, protocol.Target{Group: fmt.Sprint("group-", i), Reason: strings.Repeat("x", MaxText)})
	}
	for i := range MaxPods {
		uid := fmt.Sprintf("9f3c4a6e-6f0e-4a63-a7c4-%012d", i)
		snapshot.Pods = append(snapshot.Pods, protocol.Pod{UID: uid, Group: "group-1", Why: strings.Repeat("x", MaxText), Since: time.UnixMilli(1e12)})
		decision.Removals = append(decision.Removals, protocol.Removal{Pod: uid, Node: strings.Repeat("f", 56), Reason: protocol.Idle, Drained: true})
	}
	if frame, err := EncodeSnapshot(snapshot); err != nil {
		t.Error(err)
	} else if _, err := readSnapshot(frame); err != nil {
		t.Error(err)
	}
	if frame, err := EncodeDecision(decision); err != nil {
		t.Error(err)
	} else if _, err := DecodeDecision(frame); err != nil {
		t.Error(err)
	}
}
