package job

import (
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Move is a change of phase that a job may make. The documentation's diagram is drawn from
// the moves, and the tests hold every change that they see against them.
type Move struct{ From, To, When string }

// ends are the phases that a job never leaves.
var ends = []string{v1beta1.PhaseSucceeded, v1beta1.PhaseFailed, v1beta1.PhaseStopped}

// isEndPhase reports whether a phase is an end.
func isEndPhase(phase string) bool { return slices.Contains(ends, phase) }

// byAnnotation is when a job becomes Stopped through its ClusterJob.
const byAnnotation = "its annotation " + v1beta1.AnnotationStop + " asked for it"

// Moves are all changes of phase. Where a phase is short, a status may skip it: what is
// reachable over phases that nobody was told of is a move too.
func Moves() []Move {
	return []Move{
		{"", v1beta1.PhasePending, "clusterRef; there is no head yet that takes it"},
		{"", v1beta1.PhaseProvisioning, "clusterTemplate; its cluster is being made"},
		{"", v1beta1.PhaseSuspended, "made with suspend: true"},
		{v1beta1.PhasePending, v1beta1.PhaseSubmitting, "a head answers, and there is a place"},
		{v1beta1.PhaseProvisioning, v1beta1.PhaseSubmitting, "the head of its cluster answers"},
		{v1beta1.PhasePending, v1beta1.PhaseProvisioning, "what kept its cluster from being made is gone"},
		{v1beta1.PhaseProvisioning, v1beta1.PhasePending, "its cluster cannot be made, or is going"},
		{v1beta1.PhaseSubmitting, v1beta1.PhaseRunning, "Ray runs the driver"},
		{v1beta1.PhaseSubmitting, v1beta1.PhaseGathering, "Ray runs the driver of a gang"},
		{v1beta1.PhaseGathering, v1beta1.PhaseRunning, "all places of the gang are there"},
		{v1beta1.PhaseRunning, v1beta1.PhaseGathering, "the gang waits for a place that it lost"},
		{v1beta1.PhaseGathering, v1beta1.PhaseSucceeded, "it was too short to be seen running"},
		{v1beta1.PhaseGathering, v1beta1.PhaseRetrying, "the attempt failed or was lost before all its places were there"},
		{v1beta1.PhaseGathering, v1beta1.PhaseFailed, "the last attempt failed, or a deadline is over"},
		{v1beta1.PhaseGathering, v1beta1.PhaseStopped, byAnnotation + ", or someone stopped it in Ray"},
		{v1beta1.PhaseGathering, v1beta1.PhaseSuspending, "suspend"},
		{v1beta1.PhaseRunning, v1beta1.PhaseSucceeded, "the driver ended with exit code 0"},
		{v1beta1.PhaseRunning, v1beta1.PhaseRetrying, "the attempt failed or was lost, and another follows"},
		{v1beta1.PhaseSubmitting, v1beta1.PhaseRetrying, "the attempt failed or was lost before it ran"},
		{v1beta1.PhaseRunning, v1beta1.PhaseFailed, "the last attempt failed, or a deadline is over"},
		{v1beta1.PhaseSubmitting, v1beta1.PhaseFailed, "Ray refused it, or a deadline is over"},
		{v1beta1.PhaseSubmitting, v1beta1.PhaseSucceeded, "it was too short to be seen running"},
		{v1beta1.PhasePending, v1beta1.PhaseFailed, "startDeadlineSeconds is over"},
		{v1beta1.PhaseProvisioning, v1beta1.PhaseFailed, "startDeadlineSeconds is over"},
		{v1beta1.PhasePending, v1beta1.PhaseStopped, byAnnotation},
		{v1beta1.PhaseProvisioning, v1beta1.PhaseStopped, byAnnotation},
		{v1beta1.PhaseSubmitting, v1beta1.PhaseStopped, byAnnotation + ", or someone stopped it in Ray"},
		{v1beta1.PhaseRunning, v1beta1.PhaseStopped, byAnnotation + ", or someone stopped it in Ray"},
		{v1beta1.PhaseRetrying, v1beta1.PhaseStopped, byAnnotation},
		{v1beta1.PhaseSuspending, v1beta1.PhaseStopped, byAnnotation},
		{v1beta1.PhaseSuspended, v1beta1.PhaseStopped, byAnnotation},
		{v1beta1.PhaseRetrying, v1beta1.PhasePending, "the back-off is over; clusterRef"},
		{v1beta1.PhaseRetrying, v1beta1.PhaseProvisioning, "the back-off is over; clusterTemplate"},
		{v1beta1.PhaseRetrying, v1beta1.PhaseSubmitting, "the back-off is over, and the head answers"},
		{v1beta1.PhaseRetrying, v1beta1.PhaseFailed, "activeDeadlineSeconds is over"},
		{v1beta1.PhaseRunning, v1beta1.PhaseSuspending, "suspend"},
		{v1beta1.PhaseSubmitting, v1beta1.PhaseSuspending, "suspend"},
		{v1beta1.PhaseProvisioning, v1beta1.PhaseSuspending, "suspend; its cluster is going"},
		{v1beta1.PhasePending, v1beta1.PhaseSuspended, "suspend"},
		{v1beta1.PhaseRetrying, v1beta1.PhaseSuspended, "suspend"},
		{v1beta1.PhaseSuspending, v1beta1.PhaseSuspended, "nothing of it runs any more"},
		{v1beta1.PhaseSuspending, v1beta1.PhaseSucceeded, "it ended before the stop got there"},
		{v1beta1.PhaseSuspending, v1beta1.PhaseFailed, "it failed before the stop got there"},
		{v1beta1.PhaseSuspended, v1beta1.PhasePending, "resumed; clusterRef"},
		{v1beta1.PhaseSuspended, v1beta1.PhaseProvisioning, "resumed; clusterTemplate"},
	}
}

// Reachable reports whether a job may be told to be in one phase after another, over phases
// that nobody was told of.
func Reachable(from, to string) bool {
	seen, next := map[string]bool{from: true}, []string{from}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		for _, move := range Moves() {
			if move.From == at && !seen[move.To] {
				seen[move.To] = true
				next = append(next, move.To)
			}
		}
	}
	return seen[to]
}
