// Package protocol is what the operator and the autoscaler that runs beside a cluster's head tell each other: a snapshot of
// the cluster one way, a decision the other. On the wire they are the messages Orders and Word of
// proto/heliostat/scalelink/v1, whose names stay as they are.
//
// In and out: nothing; it holds the values of both. The operator's end of the stream is package client, the autoscaler's is
// package server, package wire encodes and bounds what is sent, and package protocoltest has either end for tests. They are
// apart so that the autoscaler, which stands beside every head, holds nothing of what an operator needs.
//
// It must never import what either end needs.
package protocol

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
)

// Snapshot is a cluster as its autoscaler must know it: its groups with their bounds, and its pods.
type Snapshot struct {
	// Head is the UID of the head's pod.
	Head string
	// MaxNodes is how many workers' pods there may be, 0 is no limit.
	MaxNodes int
	// Pace is how fast the cluster may grow.
	Pace   decision.Pace
	Groups []Group
	// Pods are the workers' pods that are there, those on their way out included.
	Pods []Pod
}

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

// Decision is what an autoscaler has decided.
type Decision struct {
	// Head is the UID of the head's pod that the snapshot named.
	Head       string
	Targets    []Target
	Removals   []Removal
	Infeasible []Infeasible
	// Error says why no decision could be made lately, empty if one was.
	Error string
}

// Target is how many replicas a group must have.
type Target struct {
	Group    string
	Replicas int
	// Reason says what for, at the time at which the target became what it is.
	Reason string
}

// Removal is a worker that may be deleted, or soon may be.
type Removal struct {
	// Pod is the UID of its pod, Node the hex id of Ray's node, empty where it never was one.
	Pod, Node string
	// Reason is Idle, Unneeded, NoCapacity or Late.
	Reason string
	// Drained reports whether Ray says that nothing runs there and nothing will.
	Drained bool
}

// Why workers leave, in the words of the kinds' API, which a program beside every head does not link.
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
