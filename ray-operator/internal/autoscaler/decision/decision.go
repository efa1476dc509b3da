// Package decision decides how many workers a cluster must have, and which of them are to go.
//
// In: what Ray says of its nodes and of what waits, the pods that are on their way, the
// groups with their shapes and bounds, and the time. Out: a target for each group with its
// reason, the nodes that may be drained, the pods that are given back, and what can never
// fit.
//
// It is pure, and the same input gives the same decision whatever the order of its lists.
// It never exceeds a group's or the cluster's maximum, never goes below a minimum or below
// what runs, never places a part of a gang, and its cost follows the number of shapes and
// of classes of nodes, not of requests and nodes.
package decision

import "time"

// Resources are Ray's logical resources: amounts by name, memory in bytes.
type Resources map[string]float64

// Input is all that a decision depends on.
type Input struct {
	Groups []Group
	// Nodes are Ray's nodes that are alive, the head's included; Pods are workers' pods that
	// are no node of Ray's yet. A pod is in one of the lists.
	Nodes []Node
	Pods  []Pod
	// Demand is tasks and actors that wait, Gangs placement groups. Floor is what
	// request_resources asks for: it must fit into what nodes have in total, whether free
	// or not.
	Demand []Demand
	Gangs  []Gang
	Floor  []Demand
	// MaxNodes is how many workers' pods there may be in all groups together; 0 is no limit.
	MaxNodes int
	Pace     Pace
	// MayShrink is false while what Ray says of idle nodes is not to be trusted: nobody goes
	// then.
	MayShrink bool
}

// Pace is how fast a cluster may grow.
type Pace string

// Conservative lets at most as many workers be on their way, for all groups together, as have joined, but one
// always. Default lets a hundred, or as many as have joined if that is more. Aggressive knows no limit.
const (
	Conservative Pace = "Conservative"
	Default      Pace = "Default"
	Aggressive   Pace = "Aggressive"
)

// Group is a kind of worker that can be made.
type Group struct {
	Name string
	// Min and Max bound its replicas; Hosts is of how many pods a replica is, at least 1.
	Min, Max, Hosts int
	// Priority orders groups that all would do, the highest first.
	Priority int
	// IdleTimeout is for how long all hosts of a replica are idle before it may go.
	IdleTimeout time.Duration
	// Resources and Labels are those of each of its nodes, as Ray will know them.
	Resources Resources
	Labels    map[string]string
	// First is what the first host of each replica has besides, and Numbered a label whose value is the number of
	// the host in its replica.
	First    Resources
	Numbered string
	// PassedOver tells that it got no capacity lately: it grows only for its minimum, and
	// its pods that wait for a machine count for nothing.
	PassedOver bool
	// Failing is how its newest pods all fail, empty if they do not: it grows only for its minimum and for pods
	// that are replaced.
	Failing string
	// Closed tells that it must have no workers now: it is suspended.
	Closed bool
}

// Place is where a pod belongs.
type Place struct {
	// Key names the pod, Group its group, Replica its replica there and Host which of the
	// replica's pods it is. The head's node has no group.
	Key     string
	Group   string
	Replica int
	Host    int
}

// Node is a node of Ray's.
type Node struct {
	Place
	Available, Total Resources
	// Labels are its labels, with those that Ray gave it for placement groups that it hosts.
	Labels map[string]string
	// Draining: it takes no new work, and counts for nothing. Going: its pod is on its way
	// out for another reason.
	Draining, Going bool
	// Idle is for how long nothing has run on it, 0 if something does.
	Idle time.Duration
}

// Pod is a worker's pod on its way.
type Pod struct {
	Place
	// Waiting tells that no machine was found for it yet, since it was made Age ago.
	Waiting bool
	Age     time.Duration
	// Late reports that it has been on its way for too long: it still stands for the demand that it was made for,
	// but it holds up nobody's pace. Replace reports that it goes now, for another to be made in its place, and
	// Going that it is on its way out.
	Late, Replace, Going bool
}

// Demand is requests of one shape.
type Demand struct {
	Shape Resources
	// Selectors are alternatives in the order in which they are preferred; none, or an empty
	// one, matches every node.
	Selectors []Selector
	// Apart names labels that a node must not have already; each request gives it that label.
	Apart []Label
	Count int
}

// Label is a label with its value.
type Label struct{ Name, Value string }

// Selector is what a node's labels must be like: all of its terms.
type Selector []Term

// Term asks that the label's value is one of Values or, Not, that it is none of them. A
// label that is not there is none of them.
type Term struct {
	Label  string
	Not    bool
	Values []string
}

// Gang is a placement group of which some bundles have no place. They get one all together
// or not at all.
type Gang struct {
	// Name is for people.
	Name    string
	Bundles []Demand
	// Together asks for one node for all of them. Within, if not empty, names a label whose value must be
	// the same on all nodes that they get, such as a rack or an NVLink domain; a replica of
	// several hosts whose group does not say the label counts as one such domain. Selectors
	// bind all of those nodes.
	Together  bool
	Within    string
	Selectors []Selector
}

// Result is what must be done.
type Result struct {
	// Targets are in the order of the input's groups.
	Targets []Target
	// Drain holds the keys of nodes that nothing needs, idle for their time, whole replicas
	// one after the other, longest idle first; Release of pods on their way that nothing
	// needs, that are replaced, or that a group gives back that is passed over.
	Drain, Release []string
	// Never holds what no group could ever hold, however many nodes it had.
	Infeasible Infeasible
	// Kept is what waits although a group could hold it: why, in words for people.
	Kept []Kept
}

// Target is how many replicas a group must have.
type Target struct {
	Group    string
	Replicas int
	// Reason says what for, such as "3 × {GPU: 1}", "minimum", "idle".
	Reason string
}

// Infeasible is demand that can never fit, unchanged as it came.
type Infeasible struct {
	Demand []Demand
	// Gangs are indices of the input's.
	Gangs []int
	Floor []Demand
}

// Kept is a shape of which some requests have no place although a group could hold them.
type Kept struct {
	Shape Resources
	Count int
	// Why, such as "group gpu is at its maximum of 8".
	Why string
}
