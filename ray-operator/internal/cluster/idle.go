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

// seePolicy notes an idle policy that is younger than the cluster, so that the time before it acts begins no sooner than
// with the policy. One of a spec that was never edited is as old as the cluster.
func seePolicy(p *planner) {
	policy, was := p.cluster.Spec.IdlePolicy, p.seen.Record.Policy
	if policy == nil || was.Hash == "" && p.cluster.Generation <= 1 {
		return
	}
	hash, _ := naming.ObjectHash(policy) // numbers and texts always marshal
	p.Policy = was
	if hash != was.Hash && p.seen.Record.Suspended.Cause == "" { // an edit that wakes the cluster is seen when it is awake
		p.Policy = SeenPolicy{Hash: hash, Since: p.now.Unix()}
	}
}

// checkIdle reports whether nobody has used the cluster for as long as its policy says, by an
// answer of the head that is fresh; and else when that will be so. A policy that changed counts
// from then. A job that waits for the cluster uses it, though Ray does not know yet.
func checkIdle(p *planner) bool {
	policy := p.cluster.Spec.IdlePolicy
	if policy == nil || p.head == nil || !p.head.isReady() {
		return false
	}
	p.Ask.askEvery(askIdle)
	p.Ask.Use = true
	if p.seen.Wanted != "" {
		p.wakeIn(reconcile.Recheck) // the end of a job wakes nobody here
		return false
	}
	if !p.seen.Ray.isFresh(p.now) || p.seen.Ray.IdleSince.IsZero() || p.now.Sub(p.seen.Ray.UseAt) > freshFor {
		return false
	}
	p.IdleSince = idleStart(p.basis())
	p.IdleAt = p.IdleSince
	if since := time.Unix(p.Policy.Since, 0); since.After(p.IdleAt) {
		p.IdleAt = since
	}
	p.IdleAt = p.IdleAt.Add(time.Duration(policy.AfterSeconds) * time.Second)
	if kept := keptUntil(p.cluster, p.now); kept.After(p.IdleAt) && policy.Action != v1beta1.IdleNone {
		p.IdleAt, p.IdleKept = kept, true
	}
	p.wakeIn(p.IdleAt.Sub(p.now))
	return !p.IdleAt.After(p.now)
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
	if policy := p.cluster.Spec.IdlePolicy; policy == nil || policy.Action != v1beta1.IdleDelete || !checkIdle(p) {
		return false
	}
	p.End = &telemetry.Event{Finding: reason.DeletedIdle.Of(reconcile.Stamp(p.IdleSince)), Action: "Delete"}
	return true
}
