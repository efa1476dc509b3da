// Package scaler is a cluster's link to the autoscaler beside its head.
//
// In, as values: the head, the groups with the bounds of their sizes, the workers, and what the autoscaler said last. Out: the
// snapshot that it must get, which workers it gives back, what the status says of it, and the condition Autoscaling.
//
// It must never choose a size, take a worker or write a record: what an autoscaler wants is clamped by the cluster's own
// steps. It is pure.
package scaler

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// patience is for how long an autoscaler may not be reachable before people are told: a
// head starts in that time.
const patience = 30 * time.Second

// State is what is known of the autoscaler beside the head.
type State struct {
	// Heard reports that it has spoken, Connected that it is listened to now: without that
	// its last decision counts for nothing.
	Heard, Connected bool
	// Failure says why nobody listens to it, since when.
	Failure  string
	Since    time.Time
	Decision protocol.Decision
}

// Target returns how many replicas it wants of a group and why, below zero where nothing is known.
func (s State) Target(group string) (int, string) {
	for _, target := range s.Decision.Targets {
		if s.Heard && s.Connected && target.Group == group {
			return target.Replicas, target.Reason
		}
	}
	return -1, ""
}

// HasGivenBack reports whether a worker is named as given back: Ray says that nothing runs there and
// nothing will, or it never was a node of Ray's.
func (s State) HasGivenBack(worker types.UID, isReady bool) bool {
	return s.Heard && s.Connected && slices.ContainsFunc(s.Decision.Removals, func(r protocol.Removal) bool {
		return r.Pod == string(worker) && r.Drained && (r.Node != "" || !isReady)
	})
}

// IsLate reports whether a worker is given back because it never joined, or not for long.
func (s State) IsLate(worker types.UID) bool {
	return slices.ContainsFunc(s.Decision.Removals, func(r protocol.Removal) bool {
		return r.Pod == string(worker) && r.Reason == protocol.Late
	})
}

// UntilUnreachable returns after how long people must be told that it is out of reach, false while it is not.
func (s State) UntilUnreachable(now time.Time) (time.Duration, bool) {
	return s.Since.Add(patience).Sub(now), !s.Connected && !s.Since.IsZero()
}
