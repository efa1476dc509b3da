package index

import (
	"slices"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// State is how far an archive is.
type State string

// The states. The last two are stored, as nothing else is left to compute them from.
const (
	Collecting State = "Collecting"
	Complete   State = "Complete"
	Incomplete State = "Incomplete"
	Expired    State = "Expired"
	Deleted    State = "Deleted"
)

// ListWait is how long after a pod's end its list and the last packs can still come, in milliseconds.
const ListWait = 60_000

// Ending is how a pod ended, as its record says.
type Ending struct {
	// At is when, in milliseconds of Unix time, and 0 while the pod lives.
	At int64
	// Reason is why bytes that the collector had no time for are missing: NodeLost or Killed.
	Reason pack.Reason
}

// State returns the state of an archive whose pods ended so, at a time. A pod that is not in endings lives.
func (a *Archive) State(endings map[pack.UID]Ending, now int64) State {
	pods := map[pack.UID]bool{}
	for pod := range endings {
		pods[pod] = true
	}
	for key := range a.files {
		pods[key.Pod] = true
	}
	for pod := range a.lists {
		pods[pod] = true
	}
	state, lacking := Complete, a.lacking(endings)
	for pod := range pods {
		ending := endings[pod]
		if ending.At == 0 {
			return Collecting
		}
		if a.lists[pod] && !lacking[pod] {
			continue
		}
		if now < ending.At+ListWait {
			return Collecting
		}
		state = Incomplete
	}
	return state
}

// lacking returns the pods of which a byte of any file is missing.
func (a *Archive) lacking(endings map[pack.UID]Ending) map[pack.UID]bool {
	pods := map[pack.UID]bool{}
	for key, one := range a.files {
		layout := one.layout(endings[key.Pod], a.lists[key.Pod])
		if slices.ContainsFunc(layout, func(part Range) bool { return part.Reason > 0 }) {
			pods[key.Pod] = true
		}
	}
	return pods
}

// Newest returns when the last byte that is there was read: up to then a living cluster is archived.
func (a *Archive) Newest() int64 {
	newest := int64(0)
	for _, one := range a.files {
		for _, run := range one.runs {
			newest = max(newest, run.At)
		}
	}
	return newest
}
