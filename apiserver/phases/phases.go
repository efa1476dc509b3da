// Package phases says how far an object of ours is on its way, step by step.
//
// In: a cluster, a job or a service as the API server has it, the clusters that it uses, their pods, and the time. Out:
// the steps in the order in which they come, each with its state and its times, and what the current one waits for.
//
// It is pure and total. It never fails or panics, whatever half of an object it is given. At most one step is current,
// and times never go back. A time that Kubernetes does not keep is left out, and never guessed.
package phases

import (
	"time"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// States of a phase.
const (
	Done    = "Done"
	Current = "Current"
	Failed  = "Failed"
	Pending = "Pending"
)

// Names of phases. Those of a cluster, but the first, are conditions of pods and of the cluster.
const (
	Suspended = "Suspended"
	Deleting  = "Deleting"
	Ready     = "Ready"

	Accepted      = "Accepted"
	HeadScheduled = "HeadScheduled"
	HeadReady     = "HeadReady"
	WorkersReady  = "WorkersReady"

	Queued    = "Queued"
	Cluster   = "Cluster"
	Submitted = "Submitted"
	Gathered  = "Gathered"
	Running   = "Running"
	Ended     = "Ended"

	Deployed = "Deployed"
	Healthy  = "Healthy"
	Traffic  = "Traffic"
)

// Phase is a step of an object's way.
type Phase struct {
	Name string
	// State is Done, Current, Failed or Pending.
	State string
	// Since and Until are when it began and ended; zero where it has not, or nobody knows.
	Since, Until time.Time
	// WaitsFor is what a current phase waits for, and of a failed one why it failed.
	WaitsFor string
}

// Of returns the phases of an object, in order. Of an object that is none of ours there are none.
func Of(in explain.Input) []Phase {
	var w way
	switch object := in.Object.(type) {
	case *v1beta1.ComputeCluster:
		if object == nil {
			return nil
		}
		w = wayOfCluster(object, in)
	case *v1beta1.ClusterJob:
		if object == nil {
			return nil
		}
		w = wayOfJob(object, in)
	case *v1beta1.ClusterService:
		if object == nil {
			return nil
		}
		w = wayOfService(object, in)
	default:
		return nil
	}
	return w.phases(in)
}

// Obstacle returns what an object waits for, and what helps: the first link of the explanation that is furthest from it.
func Obstacle(in explain.Input) explain.Cause {
	depth := map[string]int{explain.KindCluster: 1, explain.KindPod: 2}
	var deepest explain.Cause
	for i, cause := range explain.Explain(in) {
		if i == 0 || depth[cause.Kind] > depth[deepest.Kind] {
			deepest = cause
		}
	}
	return deepest
}

// waitsFor is the obstacle in words, with its object where that is another than the one asked about.
func waitsFor(in explain.Input) string {
	deepest, own := Obstacle(in), explain.Headline(in.Object)
	if deepest.Kind != "" && (deepest.Kind != own.Kind || deepest.Name != own.Name) {
		return deepest.Kind + " " + deepest.Name + ": " + deepest.Message
	}
	return deepest.Message
}
