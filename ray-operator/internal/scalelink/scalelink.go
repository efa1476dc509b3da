// Package scalelink is what the operator and the autoscaler that runs beside a cluster's
// head say to each other: orders one way, word the other.
//
// In and out: nothing; it is the vocabulary of both. The operator's end of the stream is
// package steer, the autoscaler's is package listen, what both hold to on the way is package
// wire, and package linktest is either end for tests. They are apart so that the autoscaler,
// which stands beside every head, holds nothing of what an operator needs.
//
// It must never import what either end needs.
package scalelink

import "time"

// Orders are what an autoscaler works with.
type Orders struct {
	// Head is the UID of the head's pod.
	Head string
	// MaxNodes is how many workers' pods there may be, 0 is no limit.
	MaxNodes int
	// Pace is how fast the cluster may grow: Conservative, Default or Aggressive.
	Pace   string
	Groups []Group
	// Pods are the workers' pods that are there, those on their way out included.
	Pods []Pod
}

// The paces, which are those of the cluster's API and of the decision.
const (
	Conservative = "Conservative"
	Default      = "Default"
	Aggressive   = "Aggressive"
)

// Group is a group of workers.
type Group struct {
	Name            string
	Min, Max, Hosts int
	Priority        int
	IdleTimeout     time.Duration
	// CapacityTimeout is after how long without one more worker the group is passed over;
	// 0 is never.
	CapacityTimeout time.Duration
	// Resources and Labels are those of each of its nodes in Ray's terms.
	Resources map[string]float64
	Labels    map[string]string
	// DetectsGPUs: Ray counts the GPUs of each node by itself, so that Resources cannot name them.
	DetectsGPUs bool
	// Suspended: it must have no workers.
	Suspended bool
}

// Stage is how far a pod has come.
type Stage int

// The stages: no machine was found yet, it starts, Kubernetes calls it ready, it is on its
// way out.
const (
	Waiting Stage = iota
	Starting
	Ready
	Leaving
)

// Pod is a worker's pod.
type Pod struct {
	UID     string
	Group   string
	Replica int
	Host    int
	Stage   Stage
	// Since is when it was made.
	Since time.Time
	// Why says what it waits for, in the scheduler's or the kubelet's words boiled down.
	Why string
}

// Word is what an autoscaler has decided.
type Word struct {
	// Head is the UID of the head's pod that the orders named.
	Head    string
	Targets []Target
	Leaving []Leaver
	Never   []Infeasible
	// Trouble says why no decision could be made lately, empty if one was.
	Trouble string
}

// Target is how many replicas a group must have.
type Target struct {
	Group    string
	Replicas int
	// Reason says what for, at the time at which the target became what it is.
	Reason string
}

// Leaver is a worker that may be deleted, or soon may be.
type Leaver struct {
	// Pod is the UID of its pod, Node the hex id of Ray's node, empty where it never was one.
	Pod, Node string
	// Reason is Idle, Unneeded, NoCapacity or Late.
	Reason string
	// Drained tells that Ray says that nothing runs there and nothing will.
	Drained bool
}

// Why workers leave.
const (
	Idle       = "Idle"
	Unneeded   = "Unneeded"
	NoCapacity = "NoCapacity"
	Late       = "Late"
)

// Infeasible is a request that no group can ever hold.
type Infeasible struct {
	Shape string
	Count int
	// Reason, such as "the largest group has 8 GPU".
	Reason string
}
