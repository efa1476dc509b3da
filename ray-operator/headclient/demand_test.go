package headclient

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
)

const groupID = "161fe7f46599411bb04551abb00301000000"

func labelled(key string, operator rpc.LabelSelectorOperator, values ...string) *rpc.LabelSelector {
	return &rpc.LabelSelector{LabelConstraints: []*rpc.LabelSelectorConstraint{{LabelKey: key, Operator: operator, LabelValues: values}}}
}

func apart() []*autoscaler.PlacementConstraint {
	return []*autoscaler.PlacementConstraint{{AntiAffinity: &autoscaler.AntiAffinityConstraint{LabelName: "_PG_" + groupID}}}
}

// demanding is a state with something of everything, which a test may change.
func demanding(change func(*autoscaler.ClusterResourceState)) *autoscaler.ClusterResourceState {
	bundle := func() *autoscaler.ResourceRequest {
		return &autoscaler.ResourceRequest{ResourcesBundle: map[string]float64{"CPU": 2, "GPU": 1}, PlacementConstraints: apart()}
	}
	state := &autoscaler.ClusterResourceState{
		ClusterResourceStateVersion: 7, ClusterSessionName: []byte("session_1"),
		NodeStates: []*autoscaler.NodeState{
			{
				NodeId: bytes.Repeat([]byte("a"), 28), InstanceId: "uid", RayNodeTypeName: "cpu", Status: autoscaler.NodeStatus_RUNNING,
				TotalResources:     map[string]float64{"CPU": 2, "CPU_group_" + groupID: 1, "CPU_group_0_" + groupID: 1, "bundle_group_" + groupID: 1000},
				AvailableResources: map[string]float64{"CPU": 1, "CPU_group_" + groupID: 1, "memory": 1e18},
				Labels:             map[string]string{"zone": "a"}, DynamicLabels: map[string]string{"_PG_" + groupID: ""},
			},
			{NodeId: bytes.Repeat([]byte("b"), 28), Status: autoscaler.NodeStatus_DEAD},
		},
		PendingResourceRequests: []*autoscaler.ResourceRequestByCount{
			{Request: &autoscaler.ResourceRequest{ResourcesBundle: map[string]float64{"CPU": 1}, LabelSelectors: []*rpc.LabelSelector{{}}}, Count: 3},
			{Request: &autoscaler.ResourceRequest{ResourcesBundle: map[string]float64{"CPU_group_" + groupID: 1, "bundle_group_" + groupID: 0.001}}, Count: 2},
			{Request: &autoscaler.ResourceRequest{ResourcesBundle: map[string]float64{"GPU": 1}, LabelSelectors: []*rpc.LabelSelector{
				labelled("market", rpc.LabelSelectorOperator_LABEL_OPERATOR_IN, "spot", "reserved"),
				labelled("zone", rpc.LabelSelectorOperator_LABEL_OPERATOR_NOT_IN, "b"), {},
			}}, Count: 1},
			{Request: &autoscaler.ResourceRequest{}, Count: 0},
		},
		PendingGangResourceRequests: []*autoscaler.GangResourceRequest{{}, {
			Details: []byte(groupID + ":STRICT_SPREAD|PENDING"), Requests: []*autoscaler.ResourceRequest{bundle(), bundle(), bundle()},
		}},
		ClusterResourceConstraints: []*autoscaler.ClusterResourceConstraint{{ResourceRequests: []*autoscaler.ResourceRequestByCount{
			{Request: &autoscaler.ResourceRequest{ResourcesBundle: map[string]float64{"CPU": 1}}, Count: 5},
		}}},
	}
	if change != nil {
		change(state)
	}
	return state
}

// bare compares requests without what they were read from.
var bare = cmp.Comparer(func(a, b *autoscaler.ResourceRequest) bool { return true })

func TestDemandIsRead(t *testing.T) {
	demand, err := readDemand(demanding(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := Demand{
		Version: 7, Session: "session_1",
		Nodes: []Node{{
			ID: NodeID(bytes.Repeat([]byte("a"), 28)), Instance: "uid", Type: "cpu", State: Running,
			Total: map[string]float64{"CPU": 2}, Available: map[string]float64{"CPU": 1, "memory": MaxAmount},
			Labels: map[string]string{"zone": "a", "_PG_" + groupID: ""},
		}},
		Requests: []Request{
			{Shape: map[string]float64{"CPU": 1}, Count: 3},
			{Shape: map[string]float64{"GPU": 1}, Count: 1, Selectors: []Selector{
				{{Label: "market", Values: []string{"spot", "reserved"}}}, {{Label: "zone", Not: true, Values: []string{"b"}}}, nil,
			}},
		},
		Gangs: []Gang{{Group: groupID, Strategy: StrictSpread, Bundles: []Request{{
			Shape: map[string]float64{"CPU": 2, "GPU": 1}, Constraints: []Constraint{{Label: "_PG_" + groupID, Apart: true}}, Count: 3,
		}}}},
		Floor: []Request{{Shape: map[string]float64{"CPU": 1}, Count: 5}},
	}
	anyGang := cmp.Comparer(func(a, b *autoscaler.GangResourceRequest) bool { return true })
	if diff := cmp.Diff(want, demand, cmp.AllowUnexported(Request{}, Gang{}), bare, anyGang); diff != "" {
		t.Error(diff)
	}
}

func TestDemandRefusesWhatIsNotPossible(t *testing.T) {
	node := func(change func(*autoscaler.NodeState)) func(*autoscaler.ClusterResourceState) {
		return func(s *autoscaler.ClusterResourceState) { change(s.NodeStates[0]) }
	}
	long := strings.Repeat("x", 600)
	for name, change := range map[string]func(*autoscaler.ClusterResourceState){
		"a version below 0":           func(s *autoscaler.ClusterResourceState) { s.ClusterResourceStateVersion = -1 },
		"a long session":              func(s *autoscaler.ClusterResourceState) { s.ClusterSessionName = []byte(long) },
		"a node twice":                func(s *autoscaler.ClusterResourceState) { s.NodeStates = append(s.NodeStates, s.NodeStates[0]) },
		"a dead node twice":           func(s *autoscaler.ClusterResourceState) { s.NodeStates = append(s.NodeStates, s.NodeStates[1]) },
		"a dead node with a short id": func(s *autoscaler.ClusterResourceState) { s.NodeStates[1].NodeId = s.NodeStates[1].NodeId[1:] },
		"a node with a short id":      node(func(n *autoscaler.NodeState) { n.NodeId = n.NodeId[1:] }),
		"a node without status":       node(func(n *autoscaler.NodeState) { n.Status = 0 }),
		"less than nothing free":      node(func(n *autoscaler.NodeState) { n.AvailableResources["CPU"] = -1 }),
		"no number free":              node(func(n *autoscaler.NodeState) { n.AvailableResources["CPU"] = math.NaN() }),
		"no number in total":          node(func(n *autoscaler.NodeState) { n.TotalResources["CPU"] = math.NaN() }),
		"a long label":                node(func(n *autoscaler.NodeState) { n.Labels["zone"] = long }),
		"a long label of a group":     node(func(n *autoscaler.NodeState) { n.DynamicLabels[long] = "" }),
		"too many shapes": func(s *autoscaler.ClusterResourceState) {
			s.PendingResourceRequests = make([]*autoscaler.ResourceRequestByCount, maxShapes+1)
		},
		"too many gangs": func(s *autoscaler.ClusterResourceState) {
			s.PendingGangResourceRequests = make([]*autoscaler.GangResourceRequest, maxGangs+1)
		},
		"two floors": func(s *autoscaler.ClusterResourceState) {
			s.ClusterResourceConstraints = append(s.ClusterResourceConstraints, s.ClusterResourceConstraints[0])
		},
		"a floor of too many shapes": func(s *autoscaler.ClusterResourceState) {
			s.ClusterResourceConstraints[0].ResourceRequests = make([]*autoscaler.ResourceRequestByCount, maxShapes+1)
		},
	} {
		if demand, err := readDemand(demanding(change)); err == nil {
			t.Errorf("%s: %+v", name, demand)
		}
	}
	if demand, err := readDemand(nil); !errors.Is(err, errNoState) {
		t.Errorf("no state: %+v, %v", demand, err)
	}
}

// TestOddDemandIsLeftOut: users can make Ray say such things, and must not keep others from
// being heard.
func TestOddDemandIsLeftOut(t *testing.T) {
	long := strings.Repeat("x", 600)
	for name, change := range map[string]func(*autoscaler.ResourceRequest){
		"less than nothing":       func(r *autoscaler.ResourceRequest) { r.ResourcesBundle["memory"] = -922337203685477.6 },
		"no number":               func(r *autoscaler.ResourceRequest) { r.ResourcesBundle["CPU"] = math.NaN() },
		"without end":             func(r *autoscaler.ResourceRequest) { r.ResourcesBundle["CPU"] = math.Inf(1) },
		"a resource with a novel": func(r *autoscaler.ResourceRequest) { r.ResourcesBundle[long] = 1 },
		"a resource of no name":   func(r *autoscaler.ResourceRequest) { r.ResourcesBundle[""] = 1 },
		"an unknown operator":     func(r *autoscaler.ResourceRequest) { r.LabelSelectors = []*rpc.LabelSelector{labelled("zone", 9, "a")} },
		"a long label":            func(r *autoscaler.ResourceRequest) { r.LabelSelectors = []*rpc.LabelSelector{labelled(long, 1, "a")} },
		"a long label, no value":  func(r *autoscaler.ResourceRequest) { r.LabelSelectors = []*rpc.LabelSelector{labelled(long, 1)} },
		"a long value": func(r *autoscaler.ResourceRequest) {
			r.LabelSelectors = []*rpc.LabelSelector{labelled("zone", 1, "a", long)}
		},
		"a long constraint": func(r *autoscaler.ResourceRequest) {
			r.PlacementConstraints = []*autoscaler.PlacementConstraint{{Affinity: &autoscaler.AffinityConstraint{LabelName: long}}}
		},
	} {
		request := &autoscaler.ResourceRequest{ResourcesBundle: map[string]float64{"CPU": 1}}
		change(request)
		demand, err := readDemand(demanding(func(s *autoscaler.ClusterResourceState) {
			s.PendingResourceRequests = append(s.PendingResourceRequests, &autoscaler.ResourceRequestByCount{Request: request, Count: 1})
			s.PendingGangResourceRequests[1].Requests = append(s.PendingGangResourceRequests[1].Requests, request)
			floor := s.ClusterResourceConstraints[0]
			floor.ResourceRequests = append(floor.ResourceRequests, &autoscaler.ResourceRequestByCount{Request: request, Count: 1})
		}))
		if err != nil || demand.Odd != 3 || len(demand.Requests) != 2 || len(demand.Gangs) != 0 || len(demand.Floor) != 1 {
			t.Errorf("%s: %+v, %v", name, demand, err)
		}
	}
	demand, err := readDemand(demanding(func(s *autoscaler.ClusterResourceState) {
		s.PendingResourceRequests[0].Count, s.PendingResourceRequests[2].Count = -1, math.MaxInt32+1
		s.PendingResourceRequests = append(s.PendingResourceRequests, &autoscaler.ResourceRequestByCount{Count: 1})
		s.PendingGangResourceRequests[1].BundleSelectors = []*autoscaler.BundleSelector{{
			ResourceRequests:    s.PendingGangResourceRequests[1].Requests,
			LocalityRequirement: &autoscaler.LocalityRequirement{LocalityConstraint: &autoscaler.LocalityConstraint{LabelName: "rack", PlacementStrategy: 9}},
		}}
	}))
	if err != nil || demand.Odd != 4 || len(demand.Requests) != 0 || len(demand.Gangs) != 0 {
		t.Errorf("counts that cannot be: %+v, %v", demand, err)
	}
}

// TestGangsOfSelectors: what selects counts, and not the list without selectors beside it.
func TestGangsOfSelectors(t *testing.T) {
	for strategy, number := range rpc.PlacementStrategy_value {
		demand, err := readDemand(demanding(func(s *autoscaler.ClusterResourceState) {
			bundle := &autoscaler.ResourceRequest{
				ResourcesBundle: map[string]float64{"GPU": 8}, LabelSelectors: []*rpc.LabelSelector{labelled("market", rpc.LabelSelectorOperator_LABEL_OPERATOR_IN, "spot")},
			}
			s.PendingGangResourceRequests[1].Details = []byte(groupID + ":SPREAD|RESCHEDULING")
			s.PendingGangResourceRequests[1].BundleSelectors = []*autoscaler.BundleSelector{
				{ResourceRequests: []*autoscaler.ResourceRequest{bundle}, LocalityRequirement: &autoscaler.LocalityRequirement{
					LocalityConstraint: &autoscaler.LocalityConstraint{LabelName: "rack", PlacementStrategy: rpc.PlacementStrategy(number)},
					LabelSelector:      labelled("zone", rpc.LabelSelectorOperator_LABEL_OPERATOR_IN, "a"),
				}},
				{},
			}
		}))
		if err != nil || len(demand.Gangs) != 1 {
			t.Fatalf("%+v, %v", demand, err)
		}
		want := Gang{
			Group: groupID, Strategy: Spread, Locality: Locality{Label: "rack", Strategy: Strategy(strategy), Selector: Selector{{Label: "zone", Values: []string{"a"}}}},
			Bundles: []Request{{Shape: map[string]float64{"GPU": 8}, Selectors: []Selector{{{Label: "market", Values: []string{"spot"}}}}, Count: 1}},
		}
		got := demand.Gangs[0]
		got.raw = nil
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Request{}, Gang{}), bare); diff != "" {
			t.Error(diff)
		}
	}
}

// TestWhatNeverFitsIsEchoed: also what a later Ray adds to a request.
func TestWhatNeverFitsIsEchoed(t *testing.T) {
	from := demanding(func(s *autoscaler.ClusterResourceState) {
		added := protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "new")
		s.PendingResourceRequests[0].Request.ProtoReflect().SetUnknown(added)
		s.PendingResourceRequests[2].Request.ResourcesBundle["GPU"] = 1e17
		s.PendingGangResourceRequests[1].ProtoReflect().SetUnknown(added)
	})
	wire, err := proto.Marshal(&autoscaler.GetClusterResourceStateReply{ClusterResourceState: from})
	if err != nil {
		t.Fatal(err)
	}
	reply := &autoscaler.GetClusterResourceStateReply{}
	if err := (codec{parts: maxParts}).Unmarshal(wire, reply); err != nil {
		t.Fatal(err)
	}
	demand, err := readDemand(reply.GetClusterResourceState())
	if err != nil || demand.Requests[1].Shape["GPU"] != MaxAmount {
		t.Fatalf("%+v, %v", demand, err)
	}
	got, err := Report{Requests: demand.Requests, Gangs: demand.Gangs, Floor: demand.Floor}.write()
	if err != nil {
		t.Fatal(err)
	}
	want := &autoscaler.AutoscalingState{
		InfeasibleResourceRequests:           []*autoscaler.ResourceRequest{from.PendingResourceRequests[0].Request, from.PendingResourceRequests[2].Request},
		InfeasibleGangResourceRequests:       from.PendingGangResourceRequests[1:],
		InfeasibleClusterResourceConstraints: from.ClusterResourceConstraints,
	}
	if !proto.Equal(want, got) {
		t.Errorf("it sends %v, want %v", got, want)
	}
}

func TestReportsAreInOrder(t *testing.T) {
	client := &Client{}
	last := int64(0)
	for _, at := range []int64{100, 100, 50, 200, 200, math.MaxInt64 - 1} {
		version := client.surpass(at)
		if version <= last || version < at {
			t.Errorf("the report of %d has version %d after %d", at, version, last)
		}
		last = version
	}
}

func FuzzDemand(f *testing.F) {
	seeds(f, &autoscaler.GetClusterResourceStateReply{ClusterResourceState: demanding(nil)},
		&autoscaler.GetClusterResourceStateReply{ClusterResourceState: demanding(func(s *autoscaler.ClusterResourceState) {
			s.PendingGangResourceRequests[1].BundleSelectors = []*autoscaler.BundleSelector{{
				ResourceRequests:    s.PendingGangResourceRequests[1].Requests,
				LocalityRequirement: &autoscaler.LocalityRequirement{LocalityConstraint: &autoscaler.LocalityConstraint{LabelName: "rack", PlacementStrategy: 2}},
			}}
			s.PendingResourceRequests[0].Count, s.PendingResourceRequests[1].Request.ResourcesBundle["memory"] = -1, math.NaN()
		})})
	f.Fuzz(func(t *testing.T, wire []byte) {
		reply := &autoscaler.GetClusterResourceStateReply{}
		if (codec{parts: maxParts}).Unmarshal(wire, reply) != nil {
			return
		}
		demand, err := readDemand(reply.GetClusterResourceState())
		if err != nil {
			return
		}
		checkDemand(t, demand, len(wire))
		if _, err := (Report{At: time.Unix(1, 0), Requests: demand.Requests, Gangs: demand.Gangs, Floor: demand.Floor}).write(); err != nil {
			t.Errorf("what was read cannot be echoed: %v", err)
		}
	})
}

func checkDemand(t *testing.T, demand Demand, size int) {
	t.Helper()
	for _, node := range demand.Nodes {
		checkNode(t, node)
		checkAmounts(t, node.Total, node.Available)
		if node.State == Dead {
			t.Errorf("dead node %s is listed", node.ID)
		}
	}
	checkRequests(t, demand.Requests, demand.Floor)
	for _, gang := range demand.Gangs {
		if len(gang.Bundles) == 0 || gang.Strategy == "" || (gang.Locality.Label == "") != (gang.Locality.Strategy == "") {
			t.Errorf("%+v", gang)
		}
		checkRequests(t, gang.Bundles)
	}
	if n := len(demand.Nodes) + len(demand.Gangs) + len(demand.Requests) + demand.Odd; demand.Version < 0 || n > size {
		t.Errorf("%d bytes are read as %+v", size, demand)
	}
}

func checkRequests(t *testing.T, lists ...[]Request) {
	t.Helper()
	for _, list := range lists {
		for _, request := range list {
			checkAmounts(t, request.Shape)
			if request.Count <= 0 || request.Count > math.MaxInt32 {
				t.Errorf("%+v", request)
			}
		}
	}
}

func checkAmounts(t *testing.T, lists ...map[string]float64) {
	t.Helper()
	for _, list := range lists {
		for name, amount := range list {
			if !(amount >= 0 && amount <= MaxAmount) || name == "" || len(name) > maxName { // also for NaN
				t.Errorf("resource %q of %v", name, amount)
			}
		}
	}
}

// BenchmarkDemand reads what a head of 2,000 nodes says, of which 500 host placement groups.
func BenchmarkDemand(b *testing.B) {
	state := demanding(nil)
	full, gang, request := state.NodeStates[0], state.PendingGangResourceRequests[1], state.PendingResourceRequests[2]
	state.NodeStates, state.PendingGangResourceRequests, state.PendingResourceRequests = nil, nil, nil
	for i := range 2000 {
		node := proto.CloneOf(full)
		node.NodeId[0], node.NodeId[1] = byte(i>>8), byte(i)
		if i >= 500 {
			node.TotalResources, node.AvailableResources, node.DynamicLabels = map[string]float64{"CPU": 8}, map[string]float64{"CPU": 8}, nil
		}
		state.NodeStates = append(state.NodeStates, node)
	}
	for range 100 {
		state.PendingGangResourceRequests = append(state.PendingGangResourceRequests, gang)
	}
	for range 50 {
		state.PendingResourceRequests = append(state.PendingResourceRequests, request)
	}
	wire, err := proto.Marshal(&autoscaler.GetClusterResourceStateReply{ClusterResourceState: state})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(wire)))
	b.ReportAllocs()
	for b.Loop() {
		reply := &autoscaler.GetClusterResourceStateReply{}
		if err := (codec{parts: maxParts}).Unmarshal(wire, reply); err != nil {
			b.Fatal(err)
		}
		if _, err := readDemand(reply.GetClusterResourceState()); err != nil {
			b.Fatal(err)
		}
	}
}
