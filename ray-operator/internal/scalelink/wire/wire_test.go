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
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink"
)

func fullOrders() scalelink.Orders {
	orders := scalelink.Orders{Head: "head", MaxNodes: 7, Pace: scalelink.Aggressive, Groups: []scalelink.Group{
		{
			Name: "gpu", Min: 1, Max: 4, Hosts: 2, Priority: -3, IdleTimeout: time.Minute, CapacityTimeout: time.Hour,
			Resources: map[string]float64{"GPU": 0.5, "memory": 1 << 40}, Labels: map[string]string{"ray.io/zone": "a", "empty": ""},
		},
		{Name: "cpu", Max: MaxReplicas, Hosts: 1, Suspended: true, DetectsGPUs: true},
	}}
	for stage := scalelink.Waiting; stage <= scalelink.Leaving; stage++ {
		orders.Pods = append(orders.Pods, scalelink.Pod{
			UID: fmt.Sprint("pod-", stage), Group: "gpu", Replica: 3, Host: 1, Stage: stage, Since: time.UnixMilli(1_700_000_000_123).UTC(), Why: "no node has GPU",
		})
	}
	orders.Pods[0].Since = time.Time{}
	return orders
}

func fullWord() scalelink.Word {
	return scalelink.Word{
		Head: "head", Trouble: "the head does not answer",
		Targets: []scalelink.Target{{Group: "gpu", Replicas: 4, Reason: "3 × {GPU: 1}"}, {Group: "cpu"}},
		Leaving: []scalelink.Leaver{
			{Pod: "a", Node: "00ff", Reason: scalelink.Idle, Drained: true}, {Pod: "b", Reason: scalelink.NoCapacity}, {Pod: "c", Reason: scalelink.Unneeded}, {Pod: "d", Reason: scalelink.Late},
		},
		Never: []scalelink.Infeasible{{Shape: "{GPU: 9}", Count: 3, Reason: "the largest group has 8 GPU"}},
	}
}

// readOrders reads orders as a server does.
func readOrders(frame []byte) (scalelink.Orders, error) {
	var message pb.Orders
	if err := (codec{}).Unmarshal(frame, &message); err != nil {
		return scalelink.Orders{}, err
	}
	return ToOrders(&message)
}

func TestNothingIsLostOnTheWay(t *testing.T) {
	frame, err := FromOrders(fullOrders())
	if err != nil {
		t.Fatal(err)
	}
	orders, err := readOrders(frame)
	if diff := cmp.Diff(fullOrders(), orders); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for range 20 {
		if again, err := FromOrders(fullOrders()); err != nil || string(again) != string(frame) {
			t.Fatal("the same orders are other bytes", err)
		}
	}
	if frame, err = FromWord(fullWord()); err != nil {
		t.Fatal(err)
	}
	word, err := ToWord(frame)
	if diff := cmp.Diff(fullWord(), word); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// TestOrdersAreBounded: what is refused when it is written is what is refused when it is read.
func TestOrdersAreBounded(t *testing.T) {
	long := strings.Repeat("x", MaxName+1)
	for name, change := range map[string]func(*scalelink.Orders){
		"no head":                 func(o *scalelink.Orders) { o.Head = "" },
		"a long head":             func(o *scalelink.Orders) { o.Head = long },
		"no pace of ours":         func(o *scalelink.Orders) { o.Pace = "Reckless" },
		"no pace":                 func(o *scalelink.Orders) { o.Pace = "" },
		"a negative limit":        func(o *scalelink.Orders) { o.MaxNodes = -1 },
		"a high limit":            func(o *scalelink.Orders) { o.MaxNodes = MaxNodes + 1 },
		"many groups":             func(o *scalelink.Orders) { o.Groups = make([]scalelink.Group, MaxGroups+1) },
		"a group twice":           func(o *scalelink.Orders) { o.Groups[1] = o.Groups[0] },
		"a group without a name":  func(o *scalelink.Orders) { o.Groups[0].Name = "" },
		"an unseen name":          func(o *scalelink.Orders) { o.Groups[0].Name = "a\x1b[2J" },
		"broken UTF-8":            func(o *scalelink.Orders) { o.Groups[0].Name = "a\xff" },
		"a negative minimum":      func(o *scalelink.Orders) { o.Groups[0].Min = -1 },
		"a high maximum":          func(o *scalelink.Orders) { o.Groups[0].Max = MaxReplicas + 1 },
		"no hosts":                func(o *scalelink.Orders) { o.Groups[0].Hosts = 0 },
		"a high priority":         func(o *scalelink.Orders) { o.Groups[0].Priority = math.MaxInt32 + 1 },
		"a negative idle time":    func(o *scalelink.Orders) { o.Groups[0].IdleTimeout = -1 },
		"a long idle time":        func(o *scalelink.Orders) { o.Groups[0].IdleTimeout = MaxTime + 1 },
		"a long capacity timeout": func(o *scalelink.Orders) { o.Groups[0].CapacityTimeout = math.MaxInt64 },
		"a negative resource":     func(o *scalelink.Orders) { o.Groups[0].Resources["GPU"] = -1 },
		"an infinite resource":    func(o *scalelink.Orders) { o.Groups[0].Resources["GPU"] = math.Inf(1) },
		"no number":               func(o *scalelink.Orders) { o.Groups[0].Resources["GPU"] = math.NaN() },
		"a long label":            func(o *scalelink.Orders) { o.Groups[0].Labels["a"] = long },
		"a long resource":         func(o *scalelink.Orders) { o.Groups[0].Resources[long] = 1 },
		"many resources":          func(o *scalelink.Orders) { o.Groups[0].Resources = many(1.0) },
		"many labels":             func(o *scalelink.Orders) { o.Groups[0].Labels = many("") },
		"many pods":               func(o *scalelink.Orders) { o.Pods = make([]scalelink.Pod, MaxPods+1) },
		"a pod twice":             func(o *scalelink.Orders) { o.Pods[1].UID = o.Pods[0].UID },
		"a pod of no group":       func(o *scalelink.Orders) { o.Pods[1].Group = "" },
		"no stage":                func(o *scalelink.Orders) { o.Pods[1].Stage = scalelink.Leaving + 1 },
		"a negative replica":      func(o *scalelink.Orders) { o.Pods[1].Replica = -1 },
		"a high host":             func(o *scalelink.Orders) { o.Pods[1].Host = math.MaxInt32 + 1 },
		"a time long ago":         func(o *scalelink.Orders) { o.Pods[1].Since = time.Unix(-1, 0) },
		"a time far ahead":        func(o *scalelink.Orders) { o.Pods[1].Since = time.UnixMilli(maxSince + 1) },
	} {
		t.Run(name, func(t *testing.T) {
			orders := fullOrders()
			change(&orders)
			if _, err := FromOrders(orders); !errors.Is(err, ErrBounds) {
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

func TestWordsAreBounded(t *testing.T) {
	for name, change := range map[string]func(*scalelink.Word){
		"no head":             func(w *scalelink.Word) { w.Head = "" },
		"many targets":        func(w *scalelink.Word) { w.Targets = make([]scalelink.Target, MaxGroups+1) },
		"a target twice":      func(w *scalelink.Word) { w.Targets[1].Group = w.Targets[0].Group },
		"a negative target":   func(w *scalelink.Word) { w.Targets[0].Replicas = -1 },
		"a high target":       func(w *scalelink.Word) { w.Targets[0].Replicas = MaxReplicas + 1 },
		"a target of nobody":  func(w *scalelink.Word) { w.Targets[0].Group = "" },
		"many leave":          func(w *scalelink.Word) { w.Leaving = make([]scalelink.Leaver, MaxPods+1) },
		"nobody leaves":       func(w *scalelink.Word) { w.Leaving[0].Pod = "" },
		"no reason to leave":  func(w *scalelink.Word) { w.Leaving[0].Reason = "Bored" },
		"a long node":         func(w *scalelink.Word) { w.Leaving[0].Node = strings.Repeat("f", MaxName+1) },
		"fewer than no shape": func(w *scalelink.Word) { w.Never[0].Count = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			word := fullWord()
			change(&word)
			if _, err := FromWord(word); !errors.Is(err, ErrBounds) {
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
		"too long":           {Head: "head", Trouble: strings.Repeat("x", MaxWord)},
	} {
		frame, err := (codec{}).Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		if word, err := ToWord(frame); !errors.Is(err, ErrBounds) {
			t.Errorf("%s: read as %+v, %v", name, word, err)
		}
	}
	for name, message := range map[string]*pb.Orders{
		"a long time":     {Head: "head", Groups: []*pb.Group{{Name: "cpu", Hosts: 1, IdleTimeoutMs: math.MaxInt64}}},
		"a negative time": {Head: "head", Groups: []*pb.Group{{Name: "cpu", Hosts: 1, CapacityTimeoutMs: -1}}},
		"a time long ago": {Head: "head", Pods: []*pb.Pod{{Uid: "a", Group: "cpu", SinceMs: -1}}},
		"a pod of nobody": {Head: "head", Pods: []*pb.Pod{{}}},
	} {
		if orders, err := ToOrders(message); !errors.Is(err, ErrBounds) {
			t.Errorf("%s: read as %+v, %v", name, orders, err)
		}
	}
}

// TestOtherVersions: what another version says is read as far as we know it.
func TestOtherVersions(t *testing.T) {
	frame, err := FromWord(scalelink.Word{Head: "head"})
	if err != nil {
		t.Fatal(err)
	}
	frame = protowire.AppendString(protowire.AppendTag(frame, 99, protowire.BytesType), "what we do not know")
	if word, err := ToWord(frame); err != nil || word.Head != "head" {
		t.Error(word, err)
	}
	for _, unknown := range []int32{-1, 77} {
		orders, err := ToOrders(&pb.Orders{Head: "head", Pace: pb.Pace(unknown), Pods: []*pb.Pod{{Uid: "a", Group: "cpu", Stage: pb.Stage(unknown)}}})
		if err != nil || orders.Pace != scalelink.Default || orders.Pods[0].Stage != scalelink.Starting {
			t.Error(orders, err)
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
	word := fullWord()
	word.Never = make([]scalelink.Infeasible, 3*MaxInfeasible)
	word.Targets[0].Reason = strings.Repeat("\xff", 600)
	frame, err := FromWord(word)
	if err != nil {
		t.Fatal(err)
	}
	if word, err = ToWord(frame); err != nil || len(word.Never) != MaxInfeasible {
		t.Error(len(word.Never), err)
	}
}

// TestTheLargestClusterFits within the limits.
func TestTheLargestClusterFits(t *testing.T) {
	orders := scalelink.Orders{Head: "head", Pace: scalelink.Default}
	word := scalelink.Word{Head: "head"}
	for i := range MaxGroups {
		orders.Groups = append(orders.Groups, scalelink.Group{Name: fmt.Sprint("group-", i), Hosts: 1, Resources: map[string]float64{"CPU": 1, "memory": 1}})
		word.Targets = append(word.Targets, scalelink.Target{Group: fmt.Sprint("group-", i), Reason: strings.Repeat("x", MaxText)})
	}
	for i := range MaxPods {
		uid := fmt.Sprintf("9f3c4a6e-6f0e-4a63-a7c4-%012d", i)
		orders.Pods = append(orders.Pods, scalelink.Pod{UID: uid, Group: "group-1", Why: strings.Repeat("x", MaxText), Since: time.UnixMilli(1e12)})
		word.Leaving = append(word.Leaving, scalelink.Leaver{Pod: uid, Node: strings.Repeat("f", 56), Reason: scalelink.Idle, Drained: true})
	}
	if frame, err := FromOrders(orders); err != nil {
		t.Error(err)
	} else if _, err := readOrders(frame); err != nil {
		t.Error(err)
	}
	if frame, err := FromWord(word); err != nil {
		t.Error(err)
	} else if _, err := ToWord(frame); err != nil {
		t.Error(err)
	}
}
