package headclient

import (
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

func nodeState(change func(*autoscaler.NodeSurvey)) *autoscaler.ClusterSurveyReply {
	node := &autoscaler.NodeSurvey{
		NodeId: []byte(strings.Repeat("a", 28)), InstanceId: "uid", RayNodeTypeName: "cpu", Status: autoscaler.NodeStatus_IDLE,
		IdleDurationMs: 1500, TotalResources: map[string]float64{"CPU": 1}, Labels: map[string]string{"zone": "a"},
	}
	if change != nil {
		change(node)
	}
	return &autoscaler.ClusterSurveyReply{ClusterResourceState: &autoscaler.ClusterSurvey{NodeStates: []*autoscaler.NodeSurvey{node}}}
}

func TestStateRefusesWhatIsNotPossible(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, change := range map[string]func(*autoscaler.NodeSurvey){
		"no id":                  func(n *autoscaler.NodeSurvey) { n.NodeId = nil },
		"a short id":             func(n *autoscaler.NodeSurvey) { n.NodeId = n.NodeId[1:] },
		"a long id":              func(n *autoscaler.NodeSurvey) { n.NodeId = append(n.NodeId, 1) },
		"an id of zeros":         func(n *autoscaler.NodeSurvey) { n.NodeId = make([]byte, 28) },
		"no status":              func(n *autoscaler.NodeSurvey) { n.Status = autoscaler.NodeStatus_UNSPECIFIED },
		"an unknown status":      func(n *autoscaler.NodeSurvey) { n.Status = 9 },
		"idle for less than 0":   func(n *autoscaler.NodeSurvey) { n.IdleDurationMs = -1 },
		"idle for ever":          func(n *autoscaler.NodeSurvey) { n.IdleDurationMs = math.MaxInt64 },
		"a long instance":        func(n *autoscaler.NodeSurvey) { n.InstanceId = long },
		"a long type":            func(n *autoscaler.NodeSurvey) { n.RayNodeTypeName = long },
		"a resource of NaN":      func(n *autoscaler.NodeSurvey) { n.TotalResources["CPU"] = math.NaN() },
		"a resource without end": func(n *autoscaler.NodeSurvey) { n.TotalResources["CPU"] = math.Inf(1) },
		"a negative resource":    func(n *autoscaler.NodeSurvey) { n.TotalResources["CPU"] = -1 },
		"a resource of no name":  func(n *autoscaler.NodeSurvey) { n.TotalResources[""] = 1 },
		"a long label":           func(n *autoscaler.NodeSurvey) { n.Labels["zone"] = long },
	} {
		if state, err := readState(nodeState(change).GetClusterResourceState()); err == nil {
			t.Errorf("%s: %+v", name, state)
		}
	}
	twice := nodeState(nil).GetClusterResourceState()
	twice.NodeStates = append(twice.NodeStates, twice.NodeStates[0])
	negative := &autoscaler.ClusterSurvey{PendingResourceRequests: []*autoscaler.CountedRequests{{Count: -1}}}
	for name, from := range map[string]*autoscaler.ClusterSurvey{"no state": nil, "a node twice": twice, "demand below 0": negative} {
		if state, err := readState(from); err == nil {
			t.Errorf("%s: %+v", name, state)
		}
	}
}

func TestStateIsRead(t *testing.T) {
	from := nodeState(func(n *autoscaler.NodeSurvey) {
		n.TotalResources[internalHead] = 1
		for range 20 {
			n.NodeActivity = append(n.NodeActivity, []byte("busy\nwith \xff"+strings.Repeat("ä", 300)))
		}
	}).GetClusterResourceState()
	from.PendingResourceRequests = []*autoscaler.CountedRequests{{Count: 3}, {Count: 4}}
	from.PendingGangResourceRequests = []*autoscaler.CountedGang{{}, {Requests: [][]byte{nil}}}
	state, err := readState(from)
	if err != nil || state.Pending != 7 || state.Gangs != 1 || len(state.Nodes) != 1 {
		t.Fatalf("%+v, %v", state, err)
	}
	node := state.Nodes[0]
	want := Node{
		ID: NodeID([]byte(strings.Repeat("a", 28))), Instance: "uid", Type: "cpu", State: Idle, Head: true, Idle: 1500 * time.Millisecond,
		Activity: node.Activity, Total: map[string]float64{"CPU": 1, internalHead: 1}, Labels: map[string]string{"zone": "a"},
	}
	if diff := cmp.Diff(want, node); diff != "" {
		t.Error(diff)
	}
	if len(node.Activity) != 8 || len(node.Activity[0]) > maxText || !strings.HasPrefix(node.Activity[0], "busy with ä") {
		t.Errorf("%d lines of activity, such as %q", len(node.Activity), node.Activity[0])
	}
}

func TestTimesOfTwoUnits(t *testing.T) {
	want := time.Unix(1_795_000_000, 0)
	for _, n := range []uint64{1_795_000_000, 1_795_000_000_000} {
		if got, err := instant(n); err != nil || !got.Equal(want) {
			t.Errorf("%d is %s, %v", n, got, err)
		}
	}
	if got, err := instant(0); err != nil || !got.IsZero() {
		t.Errorf("0 is %s, %v", got, err)
	}
	for _, n := range []uint64{1e14, math.MaxUint64} {
		if got, err := instant(n); err == nil {
			t.Errorf("%d is %s", n, got)
		}
	}
}

func TestActivityCountsWhatIsUsers(t *testing.T) {
	actor := func(namespace, name string, detached bool, state rpc.ActorTableData_ActorState) *rpc.ActorTableData {
		return &rpc.ActorTableData{RayNamespace: []byte(namespace), Name: []byte(name), IsDetached: detached, State: state}
	}
	const jobs = "SUPERVISOR_ACTOR_RAY_NAMESPACE"
	var activity Activity
	activity.addActors(&rpc.GetAllActorInfoReply{ActorTableData: []*rpc.ActorTableData{
		actor("user", "kept", true, rpc.ActorTableData_ALIVE),
		actor("serve", "SERVE_CONTROLLER_ACTOR", true, rpc.ActorTableData_RESTARTING),
		actor("user", "", false, rpc.ActorTableData_ALIVE),
		actor("user", "gone", true, rpc.ActorTableData_DEAD),
		actor("_ray_internal_dashboard", "own", true, rpc.ActorTableData_ALIVE),
		actor("_dataset_stats_actor", "datasets_stats_actor", true, rpc.ActorTableData_ALIVE),
		actor("AutoscalingCoordinator", "AutoscalingCoordinator", true, rpc.ActorTableData_ALIVE),
		actor(jobs, "_ray_internal_job_actor_a", true, rpc.ActorTableData_ALIVE),
		actor(jobs, "_ray_internal_job_actor_b", true, rpc.ActorTableData_PENDING_CREATION),
		actor(jobs, "another", true, rpc.ActorTableData_ALIVE),
	}})
	driver := func(namespace string, dead bool, end uint64) *rpc.JobTableData {
		return &rpc.JobTableData{Config: &rpc.JobConfig{RayNamespace: []byte(namespace)}, IsDead: dead, EndTime: end}
	}
	err := activity.addJobs(&rpc.GetAllJobInfoReply{JobInfoList: []*rpc.JobTableData{
		driver("user", false, 0), driver("", false, 0), driver("_ray_internal_dashboard", false, 0),
		driver("user", true, 1_795_000_001), driver("user", true, 1_795_000_000_000), driver("_ray_internal_x", true, 1_795_000_009),
	}})
	want := Activity{Drivers: 2, Jobs: 2, Actors: 2, LastEnded: time.Unix(1_795_000_001, 0)}
	if err != nil || activity != want {
		t.Errorf("%+v, %v, want %+v", activity, err, want)
	}
}

// TestPartsAreCounted: two bytes of an answer can become hundreds in memory.
func TestPartsAreCounted(t *testing.T) {
	node := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), nil)
	state := func(nodes int) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte(strings.Repeat(string(node), nodes)))
	}
	reply := &autoscaler.ClusterSurveyReply{}
	if err := (codec{parts: maxParts}).Unmarshal(state(maxParts-1), reply); err != nil || len(reply.GetClusterResourceState().GetNodeStates()) != maxParts-1 {
		t.Errorf("as many as are let in: %v", err)
	}
	if err := (codec{parts: maxParts}).Unmarshal(state(maxParts), reply); err == nil {
		t.Error("one more is let in")
	}
	if err := (codec{parts: maxParts}).Unmarshal(nil, "no message"); err == nil {
		t.Error("a text is read as a message")
	}
	if _, err := (codec{parts: maxParts}).Marshal("no message"); err == nil {
		t.Error("a text is written as a message")
	}
}

// seeds are answers that a head may give, one per way of going wrong.
func seeds(f *testing.F, replies ...proto.Message) {
	f.Helper()
	for _, reply := range replies {
		wire, err := proto.Marshal(reply)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
		f.Add(wire[:len(wire)/2])
	}
	f.Add([]byte{0x0a, 0x7f, 0xff})
}

func FuzzState(f *testing.F) {
	seeds(f, nodeState(nil), nodeState(func(n *autoscaler.NodeSurvey) { n.Status, n.TotalResources["CPU"] = 2, math.NaN() }))
	f.Fuzz(func(t *testing.T, wire []byte) {
		reply := &autoscaler.ClusterSurveyReply{}
		if (codec{parts: maxParts}).Unmarshal(wire, reply) != nil {
			return
		}
		state, err := readState(reply.GetClusterResourceState())
		if err != nil {
			return
		}
		if state.Pending < 0 || state.Gangs < 0 || len(state.Nodes)*28 > len(wire) {
			t.Fatalf("%d bytes are read as %+v", len(wire), state)
		}
		for _, node := range state.Nodes {
			checkNode(t, node)
		}
	})
}

func checkNode(t *testing.T, node Node) {
	t.Helper()
	if node.ID == (NodeID{}) || node.State == "" || node.Idle < 0 || len(node.Instance) > maxName || len(node.Activity) > 8 {
		t.Errorf("%+v", node)
	}
	for name, amount := range node.Total {
		if !(amount >= 0) || math.IsInf(amount, 0) || name == "" { // also for NaN
			t.Errorf("resource %q of %v", name, amount)
		}
	}
}

func FuzzDeaths(f *testing.F) {
	seeds(f, &rpc.GetAllNodeInfoReply{NodeInfoList: []*rpc.GcsNodeInfo{{
		NodeId: []byte(strings.Repeat("a", 28)), State: rpc.GcsNodeInfo_DEAD, EndTimeMs: 1_795_000_000_000,
		DeathInfo: &rpc.NodeDeathInfo{Reason: 4, ReasonMessage: []byte("drained \xff")},
	}}})
	f.Fuzz(func(t *testing.T, wire []byte) {
		reply := &rpc.GetAllNodeInfoReply{}
		if (codec{parts: maxParts}).Unmarshal(wire, reply) != nil {
			return
		}
		deaths, err := readDeaths(reply)
		for id, death := range deaths {
			if err == nil && (id == (NodeID{}) || death.Reason == "" || len(death.Message) > maxText+4 || death.At.Year() > 5138) {
				t.Errorf("node %s died as %+v", id, death)
			}
		}
	})
}

func FuzzActivity(f *testing.F) {
	seeds(f, &rpc.GetAllJobInfoReply{JobInfoList: []*rpc.JobTableData{{IsDead: true, EndTime: 7, Config: &rpc.JobConfig{RayNamespace: []byte("a")}}, {}}},
		&rpc.GetAllActorInfoReply{ActorTableData: []*rpc.ActorTableData{{IsDetached: true, State: 2, RayNamespace: []byte("a")}}})
	f.Fuzz(func(t *testing.T, wire []byte) {
		var activity Activity
		jobs, actors := &rpc.GetAllJobInfoReply{}, &rpc.GetAllActorInfoReply{}
		if (codec{parts: maxParts}).Unmarshal(wire, jobs) == nil && activity.addJobs(jobs) != nil {
			return
		}
		if (codec{parts: maxParts}).Unmarshal(wire, actors) == nil {
			activity.addActors(actors)
		}
		if total := activity.Drivers + activity.Jobs + activity.Actors; total > len(wire) || activity.LastEnded.Year() > 5138 {
			t.Errorf("%d bytes are read as %+v", len(wire), activity)
		}
	})
}
