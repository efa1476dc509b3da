package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// verdict is whether a condition holds, and why.
type verdict struct {
	holds bool
	reason.Finding
}

// setConditions turns numbers and findings into conditions and the phase.
func setConditions(t *statusDraft) {
	head, workers := judgeHeadReady(t), judgeWorkersReady(t)
	stalled, held := findObstacles(t, head.holds && workers.holds)
	suspended, suspending := explainSuspension(t)
	if suspended != nil {
		head, workers = verdict{false, *suspended}, verdict{false, *suspended}
	}
	t.say.Set(v1beta1.ConditionHeadReady, head.holds, head.Finding)
	t.say.Set(v1beta1.ConditionWorkersReady, workers.holds, workers.Finding)
	upToDate := judgeUpToDate(t)
	t.say.Set(v1beta1.ConditionUpToDate, upToDate.holds, upToDate.Finding)
	obstacle := cmp.Or(stalled, suspended, held)
	ready := verdict{head.holds && workers.holds && obstacle == nil, chooseReadyFinding(t.status.Workers, head, workers)}
	if obstacle != nil {
		ready.Finding = *obstacle
	}
	working := judgeReconciling(t.plan.Rolling, ready)
	reconciling := working.holds && stalled == nil && (suspended == nil || suspending)
	t.say.Set(v1beta1.ConditionReady, ready.holds, ready.Finding)
	if suspended != nil && !suspending && stalled == nil { // it is as its spec says, so that nobody waits for it to be ready
		t.say.SetWhile(v1beta1.ConditionReady, nil)
	}
	t.say.SetOr(v1beta1.ConditionReconciling, reconciling, working.Finding)
	t.say.SetStalled(stalled != nil, ready.Finding)
	t.say.SetWhile(v1beta1.ConditionSuspended, suspended)
	if suspending {
		t.say.Set(v1beta1.ConditionSuspended, false, *suspended)
	}
	if idle := explainIdle(t); idle != nil && suspended == nil {
		t.say.Set(v1beta1.ConditionSuspended, false, *idle)
	}
	t.say.SetWhile(v1beta1.ConditionInvalidSpec, t.plan.Refused)
	unmounted, _ := findUnmounted(t.plan, t.outcome)
	t.say.SetWhile(v1beta1.ConditionVolumeNotReady, unmounted)
	t.say.SetWhile(v1beta1.ConditionNameConflict, findConflict(stalled, t.outcome.Conflict, t.plan.Conflict))
	reportAutoscaling(t, suspended)
	reportStore(t, suspended)
	reportHistory(t)
	t.say.SetWhile(v1beta1.ConditionVersionMismatch, findMismatch(t.status.Groups))
	t.say.SetWhile(v1beta1.ConditionRayUnverified, findUnverifiedRay(t.cluster.Spec.RayVersion))
	t.status.Phase = choosePhase(t, ready.holds, stalled != nil, suspended != nil, suspending)
}

// judgeReconciling returns whether the cluster has yet to become as its spec says, and why. One whose workers are replaced
// may be ready all the time.
func judgeReconciling(rolling *reason.Finding, ready verdict) verdict {
	if ready.holds && isRollingOn(rolling) {
		return verdict{true, *rolling}
	}
	return verdict{!ready.holds, ready.Finding}
}

// isRollingOn reports whether a rolling replacement is on its way. One that is left to the user is not.
func isRollingOn(rolling *reason.Finding) bool {
	return rolling != nil && rolling.Code != reason.HeadOutdated.Code
}

// findObstacles returns what keeps the cluster from being worked on, and what keeps a part of it, where not all of it
// runs.
func findObstacles(t *statusDraft, allRun bool) (stalled, held *reason.Finding) {
	stalled, held = t.plan.Stalled, t.plan.Held
	if finding, ok := fault.Finding(t.outcome.Err); ok {
		stalled = &finding
	} else if held == nil && t.outcome.Err != nil && fault.Refused(t.outcome.Err) {
		refusal := explainRefusal(t.cluster, t.outcome)
		held = &refusal
	}
	unmounted, isTaken := findUnmounted(t.plan, t.outcome)
	held = cmp.Or(held, unmounted)
	switch {
	case !allRun && isTaken:
		stalled = cmp.Or(stalled, unmounted)
	case allRun && held != nil && (isTokenGone(held) || held == unmounted || held.Code == reason.VolumeNotReady.Code):
		held = nil // what runs goes on: other conditions tell
	}
	if stalled == nil && !t.plan.Suspended {
		stalled = findFailingHead(t)
	}
	return stalled, held
}

// explainRefusal returns what the API server refused: that of the head before that of the groups, in their order,
// before anything else.
func explainRefusal(cluster *v1beta1.ComputeCluster, outcome Outcome) reason.Finding {
	if refused := outcome.Refused[""]; refused != nil {
		return diagnose.Refusal("the head pod", refused)
	}
	for i := range cluster.Spec.WorkerGroups {
		name := cluster.Spec.WorkerGroups[i].Name
		if refused := outcome.Refused[name]; refused != nil {
			return diagnose.Refusal("workers of "+name, refused)
		}
	}
	return diagnose.Refusal("a part of the cluster", outcome.Err)
}

// judgeHeadReady returns whether the head is ready, and why.
func judgeHeadReady(t *statusDraft) verdict {
	finding, found := diagnose.Worst(t.findings[""]...)
	refused := t.outcome.Refused[""]
	switch {
	case t.head == nil && refused != nil:
		return verdict{false, diagnose.Refusal("the head pod", refused)}
	case t.head == nil && found:
		return verdict{false, finding.About("the former head pod")}
	case t.head == nil:
		return verdict{false, reason.HeadMissing.Of()}
	case t.head.isReady():
		return verdict{true, reason.HeadReady.Of(t.head.Name)}
	case isRecovering(t) && isComingBack(*t.head, finding.Code):
		return verdict{false, reason.HeadRecovering.Of(t.head.Name)}
	case found && finding.Code != reason.Starting.Code:
		return verdict{false, finding.About("head pod " + t.head.Name)}
	default:
		return verdict{false, reason.HeadStarting.Of(t.head.Name)}
	}
}

// A head is failing that has not been ready for headDeadline, and ended at least as often as the kubelet, or the
// operator, lets it within that time.
const (
	headDeadline = 10 * time.Minute
	headEnds     = 5
	headsInVain  = 6
)

// findFailingHead returns a finding for a head that ends again and again, or that cannot work where it is. It is tried for
// as long as the cluster is there, but who waits for the cluster should wait no longer.
func findFailingHead(t *statusDraft) *reason.Finding {
	if t.head == nil || t.head.isReady() {
		return nil
	}
	if head := judgeHeadReady(t); head.Code == reason.IPv6Unsupported.Code {
		return &head.Finding
	}
	since := t.head.CreationTimestamp.Time
	for _, condition := range t.head.Status.Conditions {
		if condition.Type == corev1.PodReady && !condition.LastTransitionTime.IsZero() {
			since = condition.LastTransitionTime.Time
		}
	}
	ends := restarts(*t.head)
	loops := ends >= headEnds && t.now.Sub(since) >= headDeadline && t.now.Sub(t.head.endedAt()) < headDeadline
	switch vain := t.statusFailures(); {
	case loops:
		finding := reason.HeadFailing.Of(ends)
		return &finding
	case vain >= headsInVain && !t.head.hasStarted():
		finding := reason.HeadFailing.Of(vain)
		return &finding
	default:
		return nil
	}
}

// judgeWorkersReady returns whether enough workers are ready, and why.
func judgeWorkersReady(t *statusDraft) verdict {
	workers := t.status.Workers
	short := func(group v1beta1.GroupStatus) bool {
		spec := naming.FindGroup(t.cluster, group.Name)
		return group.Ready < neededWorkers(t.cluster, spec, group.Desired) || group.Created > group.Ready && !isAutoscaled(t.cluster)
	}
	if !slices.ContainsFunc(t.status.Groups, short) {
		return verdict{true, explainScalingUp(workers, t.status.Groups)}
	}
	if finding, found := worstGroup(t.status.Groups, short); found {
		return verdict{false, finding}
	}
	return verdict{false, reason.WorkersStarting.Of(workers.Ready, workers.Desired)}
}

// explainScalingUp returns why enough workers are ready: all of them, or all that must be while others are to come.
func explainScalingUp(workers v1beta1.WorkerCounts, groups []v1beta1.GroupStatus) reason.Finding {
	if workers.Ready >= workers.Desired {
		return reason.WorkersReady.Of(workers.Ready, workers.Desired)
	}
	obstacle := ""
	if finding, found := worstGroup(groups, func(group v1beta1.GroupStatus) bool { return group.Ready < group.Desired }); found {
		obstacle = ": " + finding.Text
	}
	return reason.ScalingUp.Of(workers.Ready, workers.Desired, obstacle)
}

// worstGroup returns what is wrong with some groups, if anything is but that pods start.
func worstGroup(groups []v1beta1.GroupStatus, which func(v1beta1.GroupStatus) bool) (reason.Finding, bool) {
	var findings []reason.Finding
	for _, group := range groups {
		if which(group) && group.Reason != "" && group.Reason != reason.Starting.Code && group.Reason != reason.Scheduling.Code {
			findings = append(findings, reason.Finding{Code: group.Reason, Text: group.Message})
		}
	}
	return diagnose.Worst(findings...)
}

// chooseReadyFinding returns the finding of the condition Ready where nothing is in the way.
func chooseReadyFinding(counts v1beta1.WorkerCounts, head, workers verdict) reason.Finding {
	switch {
	case !head.holds:
		return head.Finding
	case !workers.holds, workers.Code == reason.ScalingUp.Code:
		return workers.Finding
	default:
		return reason.AllReady.Of(counts.Ready, counts.Desired)
	}
}

// judgeUpToDate returns which pods were built from an earlier spec, or started with another token.
func judgeUpToDate(t *statusDraft) verdict {
	old := t.intents.outdatedPods(t.pods, t.statusIncarnation())
	growing := countPods(t.pods, func(p Pod) bool { return p.isStaying() && t.intents.canGrow(p) })
	locked := countPods(t.pods, func(p Pod) bool { return isLockedOut(t, p) })
	switch {
	case isTokenGone(t.plan.Held):
		return verdict{false, *t.plan.Held}
	case t.plan.Rolling != nil:
		return verdict{false, *t.plan.Rolling}
	case t.plan.GangFixed != nil:
		return verdict{false, *t.plan.GangFixed}
	case t.outcome.Unchanged != nil:
		return verdict{false, *t.outcome.Unchanged}
	case t.outcome.Unresized != nil:
		return verdict{false, diagnose.Refusal("the new size of workers", t.outcome.Unresized)}
	case len(old) > 0:
		return verdict{false, reason.PodsOutdated.Of(len(old), countStaying(t.pods), listNames(old))}
	case growing > 0:
		return verdict{false, reason.Resizing.Of(growing, countStaying(t.pods))}
	case locked > 0:
		return verdict{false, reason.TokenChanged.Of(pod.TokenSecret(t.cluster), locked, countStaying(t.pods))}
	default:
		return verdict{true, reason.PodsUpToDate.Of()}
	}
}

// isTokenGone reports whether the operator's own Secret with the token is gone while the head lives.
func isTokenGone(held *reason.Finding) bool {
	return held != nil && held.Code == reason.TokenMissing.Code
}

// isLockedOut reports whether a pod was started with another token than the one that pods are started with now, or
// where nobody has looked at that, than the head.
func isLockedOut(t *statusDraft, p Pod) bool {
	started, now := p.Annotations[v1beta1.AnnotationToken], t.seen.Token.Hash
	if now == "" && t.head != nil {
		now = t.head.Annotations[v1beta1.AnnotationToken]
	}
	return started != "" && now != "" && started != now && !isMade(t.outcome, p)
}

// isMade reports whether the plan made a pod.
func isMade(outcome Outcome, p Pod) bool {
	for _, pod := range outcome.Created {
		if pod.Name == p.Name {
			return true
		}
	}
	return false
}

// explainSuspension returns why the cluster is suspended, nil if it is not, and whether pods are still terminating.
func explainSuspension(t *statusDraft) (finding *reason.Finding, going bool) {
	if !t.plan.Suspended {
		return nil, false
	}
	record := t.seen.Record
	if t.plan.Record != nil {
		record = *t.plan.Record
	}
	if record.Suspended.Cause == suspendedQueued {
		found := explainQueue(t.seen.Queue, t.plan.Queue, t.outcome.Err)
		return &found, true
	}
	found := reason.SuspendedBySpec.Of()
	if count := len(t.seen.Pods); count > 0 {
		found, going = reason.Suspending.Of(count), true
	} else if record.Suspended.Cause == suspendedIdle {
		found = reason.SuspendedIdle.Of(record.Suspended.idleSince())
	}
	return &found, going
}

// explainIdle returns when the idle policy will act, or that its limit is reached.
func explainIdle(t *statusDraft) *reason.Finding {
	policy := t.cluster.Spec.IdlePolicy
	if policy == nil || t.plan.IdleAt.IsZero() {
		return nil
	}
	since := reconcile.Stamp(t.plan.IdleSince)
	fate := map[v1beta1.IdleAction]string{v1beta1.IdleSuspend: "suspended", v1beta1.IdleDelete: "deleted"}[policy.Action]
	var found reason.Finding
	switch {
	case t.plan.IdleKept:
		found = reason.IdleKept.Of(since, reconcile.Stamp(t.plan.IdleAt), keepRequester(t.cluster), fate)
	case fate != "":
		found = reason.IdleSoon.Of(since, fate, reconcile.Stamp(t.plan.IdleAt))
	default:
		if t.plan.IdleAt.After(t.now) {
			return nil
		}
		found = reason.IdleLimitReached.Of(since)
	}
	return &found
}

// findConflict returns an object of others' that stands in the way.
func findConflict(stalled, found, planned *reason.Finding) *reason.Finding {
	switch {
	case stalled != nil && stalled.Code == reason.NameConflict.Code:
		return stalled
	case found != nil:
		return found
	default:
		return planned
	}
}

// findMismatch returns a pod that refuses to join its head.
func findMismatch(groups []v1beta1.GroupStatus) *reason.Finding {
	for _, group := range groups {
		if group.Reason == reason.VersionMismatch.Code {
			return &reason.Finding{Code: group.Reason, Text: group.Message}
		}
	}
	return nil
}

// hasLostHead reports whether a head was lost and the cluster has not been ready since. A later epoch alone says
// nothing of that: one begins as well when a cluster is resumed or recreated.
func hasLostHead(t *statusDraft) bool {
	former := &t.cluster.Status
	switch {
	case t.plan.Began != nil:
		return t.plan.Began.Finding.Code == reason.HeadLost.Code
	case former.Epoch > 0 && t.status.Epoch > former.Epoch: // what began it could not be told
		return true
	case t.head == nil && t.seen.RecordError == nil && t.seen.Record.HeadUID != "":
		return true
	default:
		return former.Phase == v1beta1.PhaseRecovering
	}
}

// rayWithIPv6 is the first minor version of Ray 2 that works where pods have an IPv6 address alone.
const rayWithIPv6 = 56

// findMissingIPv6 returns a finding where the cluster's Ray ended in a pod at whose address it cannot work, which nobody knows
// before the pod runs. A pod that is ready, or leaves, has none.
func findMissingIPv6(cluster *v1beta1.ComputeCluster, p Pod) *reason.Finding {
	version := cluster.Spec.RayVersion
	if p.isReady() || p.isTerminating() || restarts(p) == 0 || !pod.IsIPv6(p.Pod) || !naming.IsRayBefore(version, rayWithIPv6) {
		return nil
	}
	found := reason.IPv6Unsupported.Of(p.Status.PodIP, version, fmt.Sprintf("2.%d", rayWithIPv6))
	return &found
}

// findUnverifiedRay returns a finding where the operator was not verified with the cluster's Ray.
func findUnverifiedRay(version string) *reason.Finding {
	if naming.IsRayVerified(version) {
		return nil
	}
	found := reason.RayUnverified.Of(version, naming.VerifiedRay)
	return &found
}

// choosePhase returns the phase for people.
func choosePhase(t *statusDraft, ready, stalled, suspended, suspending bool) string {
	switch {
	case stalled:
		return v1beta1.PhaseFailed
	case suspending && t.plan.Queue.Held && len(t.seen.Pods) == 0:
		return v1beta1.PhasePending
	case suspending:
		return v1beta1.PhaseSuspending
	case suspended:
		return v1beta1.PhaseSuspended
	case isRollingOn(t.plan.Rolling):
		return v1beta1.PhaseUpdating
	case ready:
		return v1beta1.PhaseReady
	case hasLostHead(t), isRecovering(t):
		return v1beta1.PhaseRecovering
	case t.head == nil || t.head.Spec.NodeName == "":
		return v1beta1.PhasePending
	default:
		return v1beta1.PhaseStarting
	}
}
