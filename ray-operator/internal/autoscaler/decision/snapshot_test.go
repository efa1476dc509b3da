package decision

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	ray "github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
)

// Kinds is the file beside a snapshot that says which nodes there can be.
type Kinds struct {
	MaxNodes    int     `json:"max_nodes"`
	IdleTimeout float64 `json:"idle_timeout_s"`
	Types       map[string]struct {
		Resources  Resources         `json:"resources"`
		Labels     map[string]string `json:"labels"`
		MinWorkers int               `json:"min_workers"`
		MaxWorkers int               `json:"max_workers"`
		Head       bool              `json:"head"`
	} `json:"node_types"`
}

// snapshot reads a snapshot as the autoscaler would see it.
func snapshot(folder string) (Input, error) {
	in := Input{Pace: Aggressive, MayShrink: true}
	text, err := os.ReadFile(filepath.Join(folder, "node_types.json"))
	if err != nil {
		return in, fmt.Errorf("read the snapshot's node types: %w", err)
	}
	var kinds Kinds
	if err := json.Unmarshal(text, &kinds); err != nil {
		return in, fmt.Errorf("read the snapshot's node types: %w", err)
	}
	text, err = os.ReadFile(filepath.Join(folder, "cluster_resource_state.pb"))
	if err != nil {
		return in, fmt.Errorf("read the snapshot: %w", err)
	}
	var reply ray.GetClusterResourceStateReply
	if err := proto.Unmarshal(text, &reply); err != nil {
		return in, fmt.Errorf("read the snapshot: %w", err)
	}
	// Ray counts the head.
	in.MaxNodes = kinds.MaxNodes - 1
	for _, name := range slices.Sorted(maps.Keys(kinds.Types)) {
		if kind := kinds.Types[name]; !kind.Head {
			in.Groups = append(in.Groups, Group{
				Name: name, Min: kind.MinWorkers, Max: kind.MaxWorkers, Hosts: 1, Resources: kind.Resources, Labels: kind.Labels,
				IdleTimeout: time.Duration(kinds.IdleTimeout * float64(time.Second)),
			})
		}
	}
	state := reply.GetClusterResourceState()
	for i, node := range state.GetNodeStates() {
		in.Nodes = append(in.Nodes, nodeOf(node, i, kinds.Types[node.GetRayNodeTypeName()].Head))
	}
	for _, pending := range state.GetPendingResourceRequests() {
		in.Demand = append(in.Demand, demandOf(pending.GetRequest(), int(pending.GetCount())))
	}
	for _, gang := range state.GetPendingGangResourceRequests() {
		in.Gangs = append(in.Gangs, gangOf(gang))
	}
	return in, nil
}

func nodeOf(from *ray.NodeState, replica int, head bool) Node {
	node := Node{
		Place:     Place{Key: from.GetInstanceId(), Group: from.GetRayNodeTypeName(), Replica: replica},
		Available: from.GetAvailableResources(), Total: from.GetTotalResources(), Labels: from.GetLabels(),
	}
	if head {
		node.Group = ""
	}
	if from.GetStatus() == ray.NodeStatus_IDLE {
		node.Idle = time.Duration(from.GetIdleDurationMs()) * time.Millisecond
	}
	return node
}

func demandOf(from *ray.ResourceRequest, count int) Demand {
	demand := Demand{Shape: from.GetResourcesBundle(), Count: count}
	for _, selector := range from.GetLabelSelectors() {
		var terms Selector
		for _, term := range selector.GetLabelConstraints() {
			terms = append(terms, Term{
				Label: term.GetLabelKey(), Values: term.GetLabelValues(),
				Not: term.GetOperator() == rpc.LabelSelectorOperator_LABEL_OPERATOR_NOT_IN,
			})
		}
		demand.Selectors = append(demand.Selectors, terms)
	}
	for _, constraint := range from.GetPlacementConstraints() {
		if apart := constraint.GetAntiAffinity(); apart != nil {
			demand.Apart = append(demand.Apart, Label{Name: apart.GetLabelName(), Value: apart.GetLabelValue()})
		}
	}
	return demand
}

func gangOf(from *ray.GangResourceRequest) Gang {
	name, _, _ := strings.Cut(string(from.GetDetails()), "|")
	gang := Gang{Name: name, Together: strings.HasSuffix(name, ":STRICT_PACK")}
	for _, bundles := range from.GetBundleSelectors() {
		for _, request := range bundles.GetResourceRequests() {
			gang.Bundles = append(gang.Bundles, demandOf(request, 1))
		}
	}
	return gang
}

// answer is what was decided for a snapshot, for the program in tests/bench/autoscale.
type answer struct {
	Name    string         `json:"name"`
	Seconds float64        `json:"seconds"`
	Asked   map[string]int `json:"asked"`
	// Left is how many kinds of requests and placement groups got no place.
	Left int `json:"left"`
}

// answered decides, and takes the time of that where it is wanted.
func answered(name string, in Input, timed bool) answer {
	d := Decide(in)
	a := answer{Name: name, Asked: map[string]int{}, Left: len(d.Kept) + len(d.Infeasible.Demand) + len(d.Infeasible.Gangs)}
	for i, target := range d.Targets {
		alive, _ := present(&in, in.Groups[i].Name)
		if more := target.Replicas - alive; more != 0 {
			a.Asked[target.Group] = more
		}
	}
	if timed {
		const times = 20
		before := spent()
		for range times {
			Decide(in)
		}
		a.Seconds = (spent() - before) / times
	}
	return a
}

// spent is the CPU time of this process in seconds. It does not depend on what else the
// machine has to do; a decision is one thread, and what collects its garbage.
func spent() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return math.NaN()
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func all(asked map[string]int) int {
	total := 0
	for _, n := range asked {
		total += n
	}
	return total
}

// What Ray's own scheduler asked for on the same snapshots lies beside them. With
// HELIOSTAT_SNAPSHOTS other snapshots are decided, and with HELIOSTAT_ANSWERS the decisions
// and their times are written there.
func TestSnapshotsTakeFewNodes(t *testing.T) {
	folder, out := os.Getenv("HELIOSTAT_SNAPSHOTS"), os.Getenv("HELIOSTAT_ANSWERS")
	if folder == "" {
		folder = "testdata/snapshots"
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatalf("list the snapshots: %v", err)
	}
	var answers []answer
	for _, entry := range entries {
		in, err := snapshot(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		p := planFor(&in)
		if wrong := judged(p, p.result()); len(wrong) > 0 {
			t.Errorf("%s: %q", entry.Name(), wrong)
		}
		a := answered(entry.Name(), in, out != "")
		answers = append(answers, a)
		if a.Left > 0 {
			t.Errorf("%s: %d kinds of requests have no place", a.Name, a.Left)
		}
		compared(t, filepath.Join(folder, a.Name, "ray.json"), a)
	}
	if out == "" {
		if len(answers) != 2 {
			t.Errorf("there are %d snapshots, which were 2", len(answers))
		}
		return
	}
	for _, l := range loads {
		name := fmt.Sprintf("%d nodes, %d pending, %d shapes, %d gangs", l.nodes, l.pending, l.shapes, l.gangs)
		answers = append(answers, answered(name, l.input(), true))
	}
	text, err := json.MarshalIndent(answers, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, text, 0o600); err != nil {
		t.Fatalf("write the decisions: %v", err)
	}
}

// compared holds what we ask for against what Ray's own scheduler does, where it finished.
func compared(t *testing.T, file string, ours answer) {
	t.Helper()
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return
	}
	var theirs answer
	if err != nil || json.Unmarshal(text, &theirs) != nil {
		t.Fatalf("read %s: %v", file, err)
	}
	if float64(all(ours.Asked)) > 1.2*float64(all(theirs.Asked)) {
		t.Errorf("%s: %d nodes are asked for, Ray's own scheduler asks for %d", ours.Name, all(ours.Asked), all(theirs.Asked))
	}
}
