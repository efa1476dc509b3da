package job

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// cleanUpEndedJob removes what is left of a job that has its outcome, each thing when it is due.
func cleanUpEndedJob(p *planner) bool {
	outcome := &p.record.Outcome
	if outcome.Phase == "" {
		return false
	}
	p.Finalizer = false
	if !isTold(p.job, &p.record) {
		readLastLines(p)
		p.setPhase(outcome.Phase, reason.Finding{Code: outcome.Reason, Text: outcome.Text})
		return true
	}
	p.setPhase(outcome.Phase, reason.Finding{Code: outcome.Reason, Text: outcome.Text})
	p.releaseClusters(p.now, p.seen.Former...)
	p.wakeIn(p.seen.recheckRemains())
	end := time.Unix(outcome.At, 0)
	if cluster := p.seen.Cluster; p.hasOwnCluster() && cluster != nil && cluster.DeletionTimestamp == nil {
		due := dueCleanup(cleanupRulesOf(p.job.Spec.Cleanup, outcome.Phase), end, p.now)
		switch {
		case p.Queue.Held && p.seen.Queue.Workload != nil: // it was kept, and others need its quota
			p.releaseClusters(p.now, cluster)
		case due.isDeleted:
			p.wakeIn(due.wake)
			p.releaseClusters(p.now, cluster)
		default:
			p.wakeIn(due.wake)
			p.Keep = noteOf(cluster, p.job.Name, due.until)
			if due.isShrunk && hasWorkers(cluster) {
				p.Shrink = cluster
			}
		}
	}
	if ttl := p.job.Spec.TTLSecondsAfterFinished; ttl != nil {
		left := untilLimit(*ttl, end, p.now)
		p.wakeIn(left)
		p.End = left <= 0
	}
	return true
}

// cleanupState is what the rules of an outcome want of a cluster now.
type cleanupState struct {
	isDeleted, isShrunk bool
	// until is how long it stays, for people. wake is after how long the rules want something else, 0 for never.
	until string
	wake  time.Duration
}

// dueCleanup returns what the rules of an outcome, the deletion first, want of a cluster some time after an end.
func dueCleanup(rules []v1beta1.CleanupRule, end, now time.Time) cleanupState {
	due := cleanupState{until: "as long as the ClusterJob is there"}
	for _, rule := range rules {
		at := end.Add(time.Duration(rule.AfterSeconds) * time.Second)
		left := at.Sub(now)
		due.wake = reconcile.Soonest(due.wake, left)
		switch {
		case rule.Action == v1beta1.CleanupDeleteCluster && left <= 0:
			due.isDeleted = true
			return due
		case rule.Action == v1beta1.CleanupDeleteCluster:
			due.until = "until " + reconcile.Stamp(at)
		case left <= 0:
			due.isShrunk = true
		}
	}
	return due
}

// noteOf returns what to note on a cluster about the job that keeps it, nil if it has that note.
func noteOf(cluster *v1beta1.ComputeCluster, job, until string) *Keeping {
	note := fmt.Sprintf("ClusterJob %s keeps it %s", job, until)
	if cluster.Annotations[v1beta1.AnnotationRetainedBy] == note {
		return nil
	}
	return &Keeping{Cluster: cluster, Note: note}
}

// cleanupRulesOf returns those rules that are about an outcome, DeleteCluster first.
func cleanupRulesOf(rules []v1beta1.CleanupRule, phase string) []v1beta1.CleanupRule {
	on := v1beta1.OutcomeFailure
	if phase == v1beta1.PhaseSucceeded {
		on = v1beta1.OutcomeSuccess
	}
	if len(rules) == 0 {
		return []v1beta1.CleanupRule{{Outcome: on, Action: v1beta1.CleanupDeleteCluster}}
	}
	var first, rest []v1beta1.CleanupRule
	for _, rule := range rules {
		switch {
		case rule.Outcome != on:
		case rule.Action == v1beta1.CleanupDeleteCluster:
			first = append(first, rule)
		default:
			rest = append(rest, rule)
		}
	}
	return append(first, rest...)
}

// hasWorkers reports whether a group of the cluster is not suspended yet.
func hasWorkers(cluster *v1beta1.ComputeCluster) bool {
	for i := range cluster.Spec.WorkerGroups {
		if !ptr.Deref(cluster.Spec.WorkerGroups[i].Suspend, false) {
			return true
		}
	}
	return false
}
