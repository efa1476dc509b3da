package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/store"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// settleEpoch begins another epoch where one is due. It reports false where a head that ended soon after it was made is
// left for a while.
func settleEpoch(p *planner) bool {
	if p.seen.Record.Suspended.Cause != "" {
		// the pods of the former epoch are gone or going
		beginEpoch(p, telemetry.Event{Finding: reason.Resumed.Of(p.seen.Record.Suspended.Cause, p.Epoch+1), Action: "Resume"})
		return true
	}
	if recreatePods(p) || correctHead(p) {
		return true
	}
	wait, lost := judgeHead(p.basis())
	if wait > 0 {
		p.wakeIn(wait)
		return false
	}
	if !startNewSession(p) && lost {
		replaceHead(p)
	}
	return true
}

// judgeHead returns whether the epoch's head is lost, or for how long to leave a head that failed soon after it was
// made.
func judgeHead(b basis) (wait time.Duration, lost bool) {
	head, recorded := b.head, b.seen.Record.HeadUID
	switch {
	case head == nil && b.Session < b.Epoch:
		return 0, recorded != "" // the workers are of earlier heads, and wait for this one
	case head == nil: // a head is made before its workers, so where there are workers there was one
		return 0, recorded != "" || slices.ContainsFunc(b.seen.Pods, func(worker Pod) bool {
			return worker.At.Group != "" && b.hasPod(worker)
		})
	case head.isTerminating():
		return 0, true
	case head.hasFinished():
		wait = replaceableIn(b.situation, *head, b.Failures)
		return wait, wait == 0
	case recorded != "" && recorded != head.UID:
		return 0, true
	default:
		return 0, !b.hasStore() && isSessionOver(b)
	}
}

// isSessionOver reports whether the head's Ray container ended after a worker had joined it.
// What the kubelet starts in its place is another session, of which that worker knows
// nothing, though its own raylet still says that it is healthy. A head that nobody had
// joined is left to the kubelet, whose back-off slows a head that cannot start.
func isSessionOver(b basis) bool {
	ended := b.head.endedAt()
	if ended.IsZero() {
		return false
	}
	return slices.ContainsFunc(b.seen.Pods, func(worker Pod) bool {
		since := worker.readySince()
		return worker.At.Group != "" && b.hasPod(worker) && !since.IsZero() && since.Before(ended)
	})
}

// beginEpoch lets a new head take over, with the memory of the one before it where a
// control store has kept it. The number is in the record before anything is made or deleted
// for it.
func beginEpoch(p *planner, event telemetry.Event) {
	p.Epoch++
	if !p.keepsSession && !p.hasStore() || p.hasStore() && storeOf(p.basis()).LostMemory() != nil {
		p.Session = p.Epoch
	}
	p.Failures = 0
	record := Record{Version: recordVersion}.withIncarnation(p.Incarnation)
	if p.Session < p.Epoch {
		record.Volume = p.seen.Record.Volume
	}
	p.Record = &record
	p.Began = &event
	p.head = headOf(p.seen.Pods, p.Epoch)
	measureGroups(p) // of what belongs to the new epoch
}

// replaceHead begins an epoch with another head in place of a lost one.
func replaceHead(p *planner) {
	name, why := "of the former epoch", "it is not there any more"
	if p.head != nil {
		name, why = p.head.Name, explainEnd(p.situation, *p.head)
	}
	with := "fresh workers"
	switch {
	case p.hasStore():
		with = "what the control store kept; workers stay"
	case isUnjoined(p.basis()):
		with, p.keepsSession = "the workers that wait for one", true
	}
	failures := 0
	if p.head != nil {
		failures = countFailures(p.situation, *p.head, p.Failures)
	}
	beginEpoch(p, telemetry.Event{Finding: reason.HeadLost.Of(name, fmt.Sprintf("epoch %d begins with a new head and %s: %s", p.Epoch+1, with, why)), Action: "Recover", Warning: true})
	p.Failures, p.Record.Failures = failures, failures
}

// recreatePods begins a new epoch where a pod is out of date and the spec wants all pods made
// again then. A head that is lost anyway is told of as lost. Pods go on while their successors could not mount a shared volume.
func recreatePods(p *planner) bool {
	strategy := p.cluster.Spec.UpgradeStrategy
	if strategy == nil || strategy.Type != v1beta1.ClusterUpgradeRecreate || p.head == nil || p.head.isTerminating() {
		return false
	}
	old := slices.DeleteFunc(p.intents.outdatedPods(p.seen.Pods, p.Incarnation), Pod.isUnstarted) // which are replaced by themselves
	if len(old) == 0 || !p.hasAllVolumes() {
		return false
	}
	for _, worker := range old {
		if p.hasStore() && worker.At.Group != "" {
			p.Delete = append(p.Delete, Removal{Pod: worker, GraceSeconds: shortGrace(worker), Why: "all pods are recreated"})
		}
	}
	beginEpoch(p, telemetry.Event{Finding: reason.Recreating.Of(p.Epoch + 1), Action: "Recreate"})
	return true
}

// correctHead begins an epoch with another head where the one that is there is corrected. Nobody has joined that head:
// workers wait for the next one. Where some of these run and are out of date, all are made again.
func correctHead(p *planner) bool {
	if p.head == nil || !p.intents.isCorrected(*p.head) {
		return false
	}
	p.keepsSession = !slices.ContainsFunc(p.intents.outdatedPods(p.seen.Pods, p.Incarnation), func(old Pod) bool { return !old.isUnstarted() })
	p.Unstarted = append(p.Unstarted, *p.head)
	beginEpoch(p, telemetry.Event{Finding: reason.NeverStarted.Of("head pod " + p.head.Name), Action: "Replace"})
	return true
}

// startNewSession begins a new session where the memory of this one is lost.
func startNewSession(p *planner) bool {
	if !p.hasStore() {
		return false
	}
	lost := storeOf(p.basis()).LostMemory()
	if lost == nil {
		return false
	}
	p.Store = &store.State{Known: true, Finding: *lost}
	beginEpoch(p, telemetry.Event{Finding: *lost, Action: "Recover", Warning: true})
	return true
}

// isUnjoined reports whether a head never ran, so that no worker has joined it and all may wait for the next one.
func isUnjoined(b basis) bool {
	if b.head == nil || b.head.hasRun() || countFailures(b.situation, *b.head, b.Failures) == 0 {
		return false
	}
	for _, worker := range b.seen.Pods {
		if worker.At.Group == "" || !b.hasPod(worker) {
			continue
		}
		status := diagnose.RayStatus(worker.Pod)
		if worker.isReady() || status != nil && status.Started != nil && *status.Started {
			return false
		}
	}
	return true
}

// explainEnd returns why a pod ended, in words: once it is replaced, the status speaks of its successor.
func explainEnd(s situation, of Pod) string {
	finding, found := s.seen.diagnose(of, s.now)
	switch {
	case found && finding.Severity() == reason.Warning:
		return finding.Text
	case of.isTerminating():
		return "it was deleted"
	case !of.endedAt().IsZero():
		return "its Ray container ended"
	default:
		return "another pod has taken its place"
	}
}
