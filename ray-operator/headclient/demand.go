package headclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
)

// Demand is what a head tells an autoscaler: what there is, and what waits for room.
type Demand struct {
	// Version counts the answers of GCS. It falls back when GCS starts again.
	Version int64
	// Session names the head's life. Where GCS keeps its memory in a store that lasts, it
	// stays the same over a new start.
	Session string
	// Nodes are those that are alive.
	Nodes []Node
	// Requests are tasks and actors that wait for room on nodes, Gangs placement groups. What
	// waits for a bundle of its placement group is left out: no node more would help it.
	Requests []Request
	Gangs    []Gang
	// Floor is what request_resources asks for: it must fit into what nodes have in total.
	Floor []Request
	// Odd is how many requests and gangs were left out because of what cannot be. They are of
	// users' making, so the others count all the same: Ray 2.60 tells of 4 EiB of memory as
	// of less than none.
	Odd int
}

// Request is what waits in a number of equal requests. What it holds is not to be changed.
type Request struct {
	// Shape is amounts by name, memory in bytes; no amount is above MaxAmount.
	Shape map[string]float64
	// Selectors are alternatives, the preferred one first. None matches every node, as does
	// an empty one.
	Selectors []Selector
	// Constraints must all hold.
	Constraints []Constraint
	Count       int

	raw *autoscaler.ResourceRequest
}

// MaxAmount is what larger amounts are read as: no node has more, and it can be reckoned with.
const MaxAmount = 1e15

// Selector is what a node's labels must be like: all of its terms.
type Selector []Term

// Term asks that the value of a label is one of Values or, Not, that it is none of them. A
// label that is not there is none of them.
type Term struct {
	Label  string
	Not    bool
	Values []string
}

// Constraint asks for nodes by a label that requests give to where they are placed: that it
// is the same node as that of the others or, Apart, another one.
type Constraint struct {
	Label, Value string
	Apart        bool
}

// Strategy is how a placement group is spread, in Ray's words.
type Strategy string

// The strategies of placement groups.
const (
	Pack         Strategy = "PACK"
	Spread       Strategy = "SPREAD"
	StrictPack   Strategy = "STRICT_PACK"
	StrictSpread Strategy = "STRICT_SPREAD"
)

// Gang is that of a placement group which has no place yet.
type Gang struct {
	// Group is the placement group's id as Ray's tools print it; for people.
	Group    string
	Strategy Strategy
	// Bundles are grouped by what they ask for.
	Bundles  []Request
	Locality Locality

	raw *autoscaler.GangResourceRequest
}

// Locality is how the nodes of a gang lie to each other.
type Locality struct {
	// Label names, for instance, racks; empty where a gang does not care.
	Label    string
	Strategy Strategy
	// Selector binds all nodes of the gang.
	Selector Selector
}

// Limits on what a demand may hold, far above what Ray tells of.
const (
	maxShapes = 100_000
	maxGangs  = 10_000
)

// Demand asks for the nodes and all that waits. Its cost for GCS is that of State, in the
// same queue as the start of actors; GCS itself hears of new demand once a second.
func (c *Client) Demand(ctx context.Context) (Demand, error) {
	const act = "ask the head for its demand"
	// The request stays empty: 0 is the only state version that never kills GCS.
	reply, done, err := call(ctx, c, act, c.autoscaler.GetClusterResourceState, &autoscaler.GetClusterResourceStateRequest{})
	if err != nil {
		return Demand{}, err
	}
	defer done()
	demand, err := readDemand(reply.GetClusterResourceState())
	if err != nil {
		return Demand{}, c.fail(Protocol, act, err)
	}
	return demand, nil
}

func readDemand(from *autoscaler.ClusterResourceState) (Demand, error) {
	if err := checkSize(from); err != nil {
		return Demand{}, err
	}
	demand := Demand{Version: from.GetClusterResourceStateVersion(), Session: text(from.GetClusterSessionName())}
	if err := demand.addNodes(from.GetNodeStates()); err != nil {
		return Demand{}, err
	}
	demand.Requests = demand.counted(from.GetPendingResourceRequests())
	for _, floor := range from.GetClusterResourceConstraints() {
		demand.Floor = demand.counted(floor.GetResourceRequests())
	}
	for _, one := range from.GetPendingGangResourceRequests() {
		gang, err := readGang(one)
		switch {
		case err != nil:
			demand.Odd++
		case len(gang.Bundles) > 0: // Ray lists groups that wait for nothing, too
			demand.Gangs = append(demand.Gangs, gang)
		}
	}
	return demand, nil
}

// checkSize refuses what no Ray says of a cluster as a whole.
func checkSize(state *autoscaler.ClusterResourceState) error {
	if state == nil {
		return errNoState
	}
	if version := state.GetClusterResourceStateVersion(); version < 0 {
		return fmt.Errorf("version %d is not possible", version)
	}
	if n := len(state.GetClusterSessionName()); n > maxName {
		return fmt.Errorf("the name of its session has %d bytes", n)
	}
	floors := state.GetClusterResourceConstraints()
	shapes, gangs := len(state.GetPendingResourceRequests()), len(state.GetPendingGangResourceRequests())
	if len(floors) > 0 {
		shapes = max(shapes, len(floors[0].GetResourceRequests()))
	}
	if shapes > maxShapes || gangs > maxGangs || len(floors) > 1 {
		return fmt.Errorf("%d shapes, %d gangs and %d floors are too many", shapes, gangs, len(floors))
	}
	return nil
}

// addNodes reads the nodes that are alive; of the others, up to a thousand, only the id.
func (d *Demand) addNodes(from []*autoscaler.NodeState) error {
	seen := make(map[NodeID]bool, len(from))
	for _, one := range from {
		id, err := nodeID(one.GetNodeId())
		if err != nil {
			return err
		}
		if seen[id] {
			return fmt.Errorf("node %s is listed twice", id)
		}
		seen[id] = true
		if one.GetStatus() == autoscaler.NodeStatus_DEAD {
			continue
		}
		node, err := readNode(one)
		if err != nil {
			return err
		}
		if node.Available, err = readResources(one.GetAvailableResources()); err != nil {
			return fmt.Errorf("what is free on node %s: %w", id, err)
		}
		lower(node.Available)
		lower(node.Total)
		dynamic, err := readLabels(one.GetDynamicLabels())
		if err != nil {
			return fmt.Errorf("node %s: %w", id, err)
		}
		if len(dynamic) > 0 {
			if node.Labels == nil {
				node.Labels = make(map[string]string, len(dynamic))
			}
			maps.Copy(node.Labels, dynamic)
		}
		d.Nodes = append(d.Nodes, node)
	}
	return nil
}

// lower takes what belongs to placement groups out of a node's resources: each has names of
// its own, which only their tasks ask for. Amounts are lowered to what can be reckoned with.
func lower(resources map[string]float64) {
	for name, amount := range resources {
		switch {
		case ofGroup(name):
			delete(resources, name)
		case amount > MaxAmount:
			resources[name] = MaxAmount
		}
	}
}

// ofGroup reports whether Ray made a name up for the bundles of a placement group. Most names
// are told apart by the first look, which costs less.
func ofGroup(name string) bool {
	return strings.Contains(name, "_group_") && groupName.MatchString(name)
}

// groupName matches names such as CPU_group_1_<id> and bundle_group_<id>.
var groupName = regexp.MustCompile(`_group_(\d+_)?[0-9a-f]{36}$`)

// inside reports whether a request waits for a bundle.
func inside(shape map[string]float64) bool {
	for name := range shape {
		if ofGroup(name) {
			return true
		}
	}
	return false
}

// counted reads requests, and counts those that cannot be.
func (d *Demand) counted(from []*autoscaler.ResourceRequestByCount) []Request {
	requests := make([]Request, 0, len(from))
	for _, one := range from {
		request, err := readRequest(one.GetRequest())
		switch count := one.GetCount(); {
		case err != nil || count < 0 || count > math.MaxInt32:
			d.Odd++
		case count > 0 && !inside(request.raw.GetResourcesBundle()):
			request.Count = int(count)
			requests = append(requests, request)
		}
	}
	return requests
}

func readRequest(from *autoscaler.ResourceRequest) (Request, error) {
	if from == nil {
		return Request{}, errors.New("a request asks for nothing at all")
	}
	shape, err := readResources(from.GetResourcesBundle())
	if err != nil {
		return Request{}, err
	}
	request := Request{Shape: maps.Clone(shape), raw: from}
	lower(request.Shape)
	if request.Selectors, err = readSelectors(from.GetLabelSelectors()); err != nil {
		return Request{}, err
	}
	for _, one := range from.GetPlacementConstraints() {
		for _, constraint := range []Constraint{
			{Label: one.GetAffinity().GetLabelName(), Value: one.GetAffinity().GetLabelValue()},
			{Label: one.GetAntiAffinity().GetLabelName(), Value: one.GetAntiAffinity().GetLabelValue(), Apart: true},
		} {
			if err := checkLabel(constraint.Label, constraint.Value); err != nil {
				return Request{}, err
			}
			if constraint.Label != "" {
				request.Constraints = append(request.Constraints, constraint)
			}
		}
	}
	return request, nil
}

// readSelectors drops the one empty selector that plain requests have.
func readSelectors(from []*rpc.LabelSelector) ([]Selector, error) {
	if len(from) == 1 && len(from[0].GetLabelConstraints()) == 0 {
		return nil, nil
	}
	var selectors []Selector
	for _, one := range from {
		selector, err := readSelector(one)
		if err != nil {
			return nil, err
		}
		selectors = append(selectors, selector)
	}
	return selectors, nil
}

func readSelector(from *rpc.LabelSelector) (Selector, error) {
	var selector Selector
	for _, one := range from.GetLabelConstraints() {
		term := Term{Label: one.GetLabelKey(), Values: one.GetLabelValues()}
		switch one.GetOperator() {
		case rpc.LabelSelectorOperator_LABEL_OPERATOR_IN:
		case rpc.LabelSelectorOperator_LABEL_OPERATOR_NOT_IN:
			term.Not = true
		default:
			return nil, fmt.Errorf("unknown operator %d of a label selector", one.GetOperator())
		}
		for _, value := range term.Values {
			if err := checkLabel(term.Label, value); err != nil {
				return nil, err
			}
		}
		if err := checkLabel(term.Label, ""); err != nil {
			return nil, err
		}
		selector = append(selector, term)
	}
	return selector, nil
}

func readGang(from *autoscaler.GangResourceRequest) (Gang, error) {
	id, rest, _ := strings.Cut(text(from.GetDetails()), ":")
	named, _, _ := strings.Cut(rest, "|")
	gang := Gang{Group: id, raw: from}
	bundles := from.GetRequests()
	// The first alternative is the only one that Ray gives, and that its own autoscaler reads.
	if within := from.GetBundleSelectors(); len(within) > 0 && len(within[0].GetResourceRequests()) > 0 {
		bundles = within[0].GetResourceRequests()
		var err error
		if gang.Locality, err = readLocality(within[0].GetLocalityRequirement()); err != nil {
			return Gang{}, err
		}
	}
	var err error
	if gang.Bundles, err = alike(bundles); err != nil {
		return Gang{}, err
	}
	gang.Strategy = strategy(gang.Bundles, Strategy(named))
	return gang, nil
}

// alike reads bundles and groups equal ones, in the order in which they first come.
func alike(from []*autoscaler.ResourceRequest) ([]Request, error) {
	var requests []Request
	at := map[string]int{}
	for _, one := range from {
		wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(one)
		if err != nil {
			return nil, fmt.Errorf("compare a bundle: %w", err)
		}
		if i, known := at[string(wire)]; known {
			requests[i].Count++
			continue
		}
		request, err := readRequest(one)
		if err != nil {
			return nil, err
		}
		request.Count, at[string(wire)] = 1, len(requests)
		requests = append(requests, request)
	}
	return requests, nil
}

// strategy goes by what the bundles ask for. The name that is meant for people tells apart
// only what differs in nothing else.
func strategy(bundles []Request, named Strategy) Strategy {
	for _, bundle := range bundles {
		switch {
		case len(bundle.Constraints) == 0:
		case bundle.Constraints[0].Apart:
			return StrictSpread
		default:
			return StrictPack
		}
	}
	if named == Spread {
		return Spread
	}
	return Pack
}

func readLocality(from *autoscaler.LocalityRequirement) (Locality, error) {
	selector, err := readSelector(from.GetLabelSelector())
	if err != nil {
		return Locality{}, err
	}
	locality := Locality{Label: from.GetLocalityConstraint().GetLabelName(), Selector: selector}
	if locality.Label == "" {
		return locality, nil
	}
	if err := checkLabel(locality.Label, ""); err != nil {
		return Locality{}, err
	}
	switch from.GetLocalityConstraint().GetPlacementStrategy() {
	case rpc.PlacementStrategy_PACK:
		locality.Strategy = Pack
	case rpc.PlacementStrategy_SPREAD:
		locality.Strategy = Spread
	case rpc.PlacementStrategy_STRICT_PACK:
		locality.Strategy = StrictPack
	case rpc.PlacementStrategy_STRICT_SPREAD:
		locality.Strategy = StrictSpread
	default:
		return Locality{}, fmt.Errorf("unknown strategy %d of a locality", from.GetLocalityConstraint().GetPlacementStrategy())
	}
	return locality, nil
}
