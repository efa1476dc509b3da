package nodes

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// nodes are, by pod, the nodes that are alive, and the dead ones that something was wanted
// of: a head lists about a thousand dead.
func nodes(target Target, state headclient.State, refused map[types.UID]string, now time.Time) map[types.UID]Node {
	resources := map[types.UID]map[string]float64{}
	for _, drain := range target.Drains {
		resources[drain.Pod] = nil
	}
	for _, resize := range target.Resizes {
		resources[resize.Pod] = resize.Resources
	}
	all := make(map[types.UID]Node)
	for _, from := range state.Nodes {
		pod := types.UID(from.Instance)
		named, wanted := resources[pod]
		if pod == "" || from.State == headclient.Dead && !wanted {
			continue
		}
		node := Node{State: from.State, Refused: refused[pod]}
		if from.State == headclient.Idle {
			node.IdleSince = now.Add(-from.Idle)
		}
		if len(named) > 0 {
			node.Total = maps.Clone(from.Total)
			maps.DeleteFunc(node.Total, func(name string, _ float64) bool { _, ok := named[name]; return !ok })
		}
		// A raylet that was restarted in its pod leaves a former node behind, which Ray
		// finds dead only later: the pod is what its liveliest node is.
		if before, twice := all[pod]; !twice || rank(node.State) > rank(before.State) {
			all[pod] = node
		}
	}
	return all
}

// rank orders states: the higher, the less a pod may be taken away.
func rank(state headclient.NodeState) int {
	switch state {
	case headclient.Running:
		return 3
	case headclient.Idle:
		return 2
	case headclient.Draining:
		return 1
	default:
		return 0
	}
}

// use judges whether a cluster is used, and since when not.
func use(before Use, state headclient.State, activity headclient.Activity, now time.Time) Use {
	next := Use{At: now, Activity: activity, Pending: state.Pending + int64(state.Gangs)}
	next.Active = activity.Any() || next.Pending > 0
	var quiet time.Time // since when no node has done anything
	for _, node := range state.Nodes {
		switch {
		case node.State == headclient.Idle:
			quiet = later(quiet, now.Add(-node.Idle))
		case node.State != headclient.Dead && !node.Head:
			next.Active = true // a node that drains is dead once it is idle
		}
	}
	switch {
	case next.Active:
		return next
	case before.At.IsZero() && !quiet.IsZero(): // the operator has just started: as far back as nodes tell
		next.IdleSince = quiet
	case before.At.IsZero():
		next.IdleSince = now
	case before.Active:
		next.IdleSince = before.At
	default:
		next.IdleSince = before.IdleSince
	}
	// A driver that came and went between two answers is seen by its end, which a head's
	// clock that is ahead may put after now.
	if ended := activity.LastEnded; !ended.After(now) {
		next.IdleSince = later(next.IdleSince, ended)
	}
	return next
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
