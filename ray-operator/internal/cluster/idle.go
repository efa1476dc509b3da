package cluster

import (
	"strings"
	"time"
	"unicode"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// resumption returns a short form of the annotation that wakes an idle cluster.
func resumption(cluster *v1beta1.ComputeCluster) string {
	value, ok := cluster.Annotations[v1beta1.AnnotationResume]
	if !ok {
		return ""
	}
	hash, _ := naming.ObjectHash(value) // a string always marshals
	return hash
}

// policyOf returns the idle policy as the record must have it where it is younger than the cluster, so that the time before
// it acts begins no sooner than with the policy. One of a spec that was never edited is as old as the cluster.
func policyOf(b basis) SeenPolicy {
	policy, was := b.cluster.Spec.IdlePolicy, b.seen.Record.Policy
	if policy == nil || was.Hash == "" && b.cluster.Generation <= 1 {
		return SeenPolicy{}
	}
	hash, _ := naming.ObjectHash(policy)                         // numbers and texts always marshal
	if hash != was.Hash && b.seen.Record.Suspended.Cause == "" { // an edit that wakes the cluster is seen when it is awake
		return SeenPolicy{Hash: hash, Since: b.now.Unix()}
	}
	return was
}

// idleness is what is known of how a cluster is used.
type idleness struct {
	// isAsked: the head must be asked for it, and isHeld: a job waits for the cluster, whose end wakes nobody here.
	isAsked, isHeld bool
	// since is since when nobody uses the cluster, at when its policy acts, later where isKept. Zero where that is not known.
	since, at time.Time
	isKept    bool
	// isOver: nobody has used the cluster for as long as its policy says.
	isOver bool
}

// checkIdle returns whether nobody has used the cluster for as long as its policy says, by an
// answer of the head that is fresh; and else when that will be so. A policy that changed counts
// from then. A job that waits for the cluster uses it, though Ray does not know yet.
func checkIdle(b basis, noted SeenPolicy) idleness {
	policy := b.cluster.Spec.IdlePolicy
	switch {
	case policy == nil || b.head == nil || !b.head.isReady():
		return idleness{}
	case b.seen.Wanted != "":
		return idleness{isAsked: true, isHeld: true}
	case !b.seen.Ray.isFresh(b.now) || b.seen.Ray.IdleSince.IsZero() || b.now.Sub(b.seen.Ray.UseAt) > freshFor:
		return idleness{isAsked: true}
	}
	idle := idleness{isAsked: true, since: idleStart(b)}
	idle.at = idle.since
	if since := time.Unix(noted.Since, 0); since.After(idle.at) {
		idle.at = since
	}
	idle.at = idle.at.Add(time.Duration(policy.AfterSeconds) * time.Second)
	if kept := keptUntil(b.cluster, b.now); kept.After(idle.at) && policy.Action != v1beta1.IdleNone {
		idle.at, idle.isKept = kept, true
	}
	idle.isOver = !idle.at.After(b.now)
	return idle
}

// takeIdle plans what follows of how the cluster is used: what the head is asked, what is told, and when to look again.
func (p *Plan) takeIdle(idle idleness, now time.Time) {
	if !idle.isAsked {
		return
	}
	p.Ask.askEvery(askIdle)
	p.Ask.Use = true
	switch {
	case idle.isHeld:
		p.wakeIn(reconcile.Recheck)
	case !idle.at.IsZero():
		p.IdleSince, p.IdleAt, p.IdleKept = idle.since, idle.at, p.IdleKept || idle.isKept
		p.wakeIn(idle.at.Sub(now))
	}
}

// keptUntil returns before when the idle policy must not act, zero where nobody asked for that, or for too long. Values
// that are no time are refused by the chart's policy.
func keptUntil(cluster *v1beta1.ComputeCluster, now time.Time) time.Time {
	until, err := time.Parse(time.RFC3339, cluster.Annotations[v1beta1.AnnotationKeepUntil])
	if err != nil || until.Sub(now) > v1beta1.MaxKeep {
		return time.Time{}
	}
	return until
}

// maxRequester is how many bytes of the name of who asked for a cluster to be kept are shown.
const maxRequester = 128

// keepRequester returns who asked for the cluster to be kept, as people read it in a message.
func keepRequester(cluster *v1beta1.ComputeCluster) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, cluster.Annotations[v1beta1.AnnotationKeepRequestedBy])
	if name == "" {
		return "somebody who is not named"
	}
	return strings.ToValidUTF8(name[:min(len(name), maxRequester)], "")
}

// idleStart returns since when nobody has used the cluster: at most since its head is ready.
func idleStart(b basis) time.Time {
	since := b.seen.Ray.IdleSince
	if ready := b.head.readySince(); ready.After(since) {
		since = ready
	}
	return since
}

// deleteIdleCluster deletes a cluster that its idle policy wants gone.
func deleteIdleCluster(p *planner) bool {
	if policy := p.cluster.Spec.IdlePolicy; policy == nil || policy.Action != v1beta1.IdleDelete {
		return false
	}
	idle := checkIdle(p.basis(), p.Policy)
	if p.takeIdle(idle, p.now); !idle.isOver {
		return false
	}
	p.End = &telemetry.Event{Finding: reason.DeletedIdle.Of(reconcile.Stamp(p.IdleSince)), Action: "Delete"}
	return true
}
