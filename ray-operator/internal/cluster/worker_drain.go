package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Exit is a worker's planned exit: a fact that is neither spec nor observable, and so
// stands in an annotation of the pod, from before Ray is asked to drain it.
type Exit struct {
	Version int `json:"v"`
	// Since and Until bound the drain.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Why is one of the causes below.
	Why string `json:"why"`
}

// Why a worker exits.
const (
	exitSurplus   = "Surplus"
	exitSuspended = "GroupSuspended"
	exitRemoved   = "GroupRemoved"
	exitRolling   = "Rolling"
	exitRetired   = "Retired"
	exitNode      = "NodeDraining"
)

const exitVersion = 1

// String returns the annotation's text.
func (e Exit) String() string {
	text, _ := json.Marshal(e) // times and strings always marshal
	return string(text)
}

// ParseExit reads the annotation's text. It fails on text that this version did not write.
func ParseExit(text string) (Exit, error) {
	var exit Exit
	if err := json.Unmarshal([]byte(text), &exit); err != nil {
		return Exit{}, fmt.Errorf("parse exit: %w", err)
	}
	if exit.Version != exitVersion || exit.Until.IsZero() {
		return Exit{}, fmt.Errorf("parse exit: version %d until %v, want version %d and a time", exit.Version, exit.Until, exitVersion)
	}
	return exit, nil
}

// plannedExit returns the pod's planned exit. Text that cannot be read is one that is over: the pod
// has not been counted since, and nobody could say until when it may stay.
func (p Pod) plannedExit() Exit {
	exit, err := ParseExit(p.Annotations[v1beta1.AnnotationDrain])
	if err != nil {
		return Exit{Version: exitVersion}
	}
	return exit
}

// retireReason returns why a worker must leave though its group has room for it, empty if it may stay.
func retireReason(s situation, worker Pod) string {
	_, asked := worker.Annotations[v1beta1.AnnotationRetire]
	switch {
	case asked:
		return exitRetired
	case s.seen.Nodes[worker.Spec.NodeName].Going != "":
		return exitNode
	default:
		return ""
	}
}

// companionReason returns why a worker leaves that did not have to by itself: with another host of its replica, or for
// a rolling replacement.
func companionReason(s situation, m *members, slot int) string {
	for _, taken := range m.slots {
		other := m.bySlot[taken.Index]
		if taken.Index/m.hosts != slot/m.hosts || taken.Index == slot {
			continue
		}
		if other.isDraining() {
			return other.plannedExit().Why
		}
		if why := retireReason(s, other); why != "" {
			return why
		}
	}
	return exitRolling
}

// beginExit begins a worker's planned exit, or ends it where there is nothing to wait for.
func beginExit(p *planner, worker Pod, why string) {
	seconds := pod.DrainSeconds(naming.FindGroup(p.cluster, worker.At.Group))
	if p.hasStore() && !p.basis().hasReadyHead() && worker.isReady() && seconds > 0 {
		return // what it does goes on, and the head that can drain it comes back
	}
	if seconds == 0 || !worker.isReady() || !p.basis().hasReadyHead() {
		p.Delete = append(p.Delete, Removal{Pod: worker, Why: why})
		return
	}
	since := p.now.UTC().Truncate(time.Second)
	exit := Exit{Version: exitVersion, Since: since, Until: since.Add(time.Duration(seconds) * time.Second), Why: why}
	p.Exits = append(p.Exits, Leave{Pod: worker, Exit: exit, Event: eventOfExit(p.situation, worker, why)})
	p.Ask.addDrain(worker.UID, exit.Until)
	p.wakeIn(exit.Until.Sub(p.now))
}

// eventOfExit returns the event of a worker's exit, where that is not a step towards the spec.
func eventOfExit(s situation, worker Pod, why string) *telemetry.Event {
	switch why {
	case exitNode:
		node := worker.Spec.NodeName
		return &telemetry.Event{Finding: reason.NodeDraining.Of(worker.Name, node, s.seen.Nodes[node].Going), Related: worker.Pod, Action: "Drain"}
	case exitRetired:
		return &telemetry.Event{Finding: reason.Retired.Of(worker.Name, v1beta1.AnnotationRetire), Related: worker.Pod, Action: "Drain"}
	default:
		return nil
	}
}

// endExit returns the removal of a worker whose planned exit is over, nil where it goes on: it is over when nothing runs
// there any more, when there is no head to say so, or when its time is up.
func endExit(b basis, worker Pod, exit Exit) *Removal {
	over := ""
	switch {
	case !b.now.Before(exit.Until):
		over = "its time to drain is over"
	case worker.hasFinished(), worker.endedAt().After(exit.Since):
		over = "it has ended"
	case b.seen.Ray.Nodes[worker.UID].Dead:
		over = "Ray has drained it"
	case b.isHeadGone(), !worker.hasStarted():
		over = "nothing runs on it"
	}
	if over == "" {
		return nil
	}
	return &Removal{Pod: worker, Why: over, Drain: drainOf(exit, b.now)}
}

// drainOf returns the drain of an exit that is over, nil where its begin cannot be read.
func drainOf(exit Exit, now time.Time) *Drain {
	if exit.Since.IsZero() {
		return nil
	}
	return &Drain{Took: now.Sub(exit.Since), TimedOut: !now.Before(exit.Until)}
}

// retireWorkers begins the exit of workers that must leave: those that are corrected at once, the others as planned.
func retireWorkers(p *planner, m *members, slots []scale.Slot) {
	var unstarted []Pod
	for _, slot := range slots {
		worker := m.bySlot[slot.Index]
		if p.intents.isCorrected(worker) {
			unstarted = append(unstarted, worker)
			continue
		}
		beginExit(p, worker, cmp.Or(retireReason(p.situation, worker), companionReason(p.situation, m, slot.Index)))
	}
	for i, worker := range unstarted {
		removal := Removal{Pod: worker, Why: "it never started, and its spec was corrected"}
		if i == 0 { // once for all of them
			finding := reason.NeverStarted.Of(fmt.Sprintf("%d of the workers of %s", len(unstarted), m.group.Name))
			removal.Event = &telemetry.Event{Finding: finding, Related: worker.Pod, Action: "Replace"}
		}
		p.Delete = append(p.Delete, removal)
	}
	p.Unstarted = append(p.Unstarted, unstarted...)
}

// removeLeftovers deletes what belongs to a former epoch, and lets those go whose group is gone
// from the spec, and then their claims.
func removeLeftovers(p *planner) {
	for _, left := range p.seen.Pods {
		switch {
		case left.isTerminating():
		case !p.hasPod(left):
			p.Delete = append(p.Delete, Removal{Pod: left, GraceSeconds: shortGrace(left), Why: "its epoch is over"})
		case left.At.Group != "" && naming.FindGroup(p.cluster, left.At.Group) == nil && !left.isDraining():
			beginExit(p, left, exitRemoved)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.seen.Claims)) {
		if claim := p.seen.Claims[name]; isOrphaned(p.situation, claim) {
			p.Release = append(p.Release, claim)
		}
	}
}
