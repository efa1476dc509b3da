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
	end := &p.record.Outcome
	if end.Phase == "" {
		return false
	}
	p.Finalizer = false
	if isTold(p.job, &p.record) {
		planCleanup(p)
	} else {
		readLastLines(p)
	}
	p.setPhase(end.Phase, reason.Finding{Code: end.Reason, Text: end.Text})
	return true
}

// planCleanup plans what goes after the end.
func planCleanup(p *planner) {
	end := time.Unix(p.record.Outcome.At, 0)
	releaseFormer(p)
	if cluster := p.seen.Cluster; p.hasOwnCluster() && cluster != nil && cluster.DeletionTimestamp == nil {
		if p.Queue.Held && p.seen.Queue.Workload != nil { // it was kept, and others need its quota
			releaseCluster(p, cluster)
		} else {
			applyCleanupRules(p, cluster, end)
		}
	}
	if checkDeadline(p, p.job.Spec.TTLSecondsAfterFinished, end) {
		p.End = true
	}
}

// applyCleanupRules plans what the rules of the outcome want of the job's own cluster.
func applyCleanupRules(p *planner, cluster *v1beta1.ComputeCluster, end time.Time) {
	until := "as long as the ClusterJob is there"
	for _, rule := range cleanupRulesOf(p.situation) {
		due := end.Add(time.Duration(rule.AfterSeconds) * time.Second)
		left := due.Sub(p.now)
		p.wakeIn(left)
		switch {
		case rule.Action == v1beta1.CleanupDeleteCluster && left <= 0:
			releaseCluster(p, cluster)
			return
		case rule.Action == v1beta1.CleanupDeleteCluster:
			until = "until " + reconcile.Stamp(due)
		case left <= 0 && hasWorkers(cluster):
			p.Shrink = cluster
		}
	}
	note := fmt.Sprintf("ClusterJob %s keeps it %s", p.job.Name, until)
	if cluster.Annotations[v1beta1.AnnotationRetainedBy] != note {
		p.Keep = &Keeping{Cluster: cluster, Note: note}
	}
}

// cleanupRulesOf returns the rules of the outcome, DeleteCluster first.
func cleanupRulesOf(s situation) []v1beta1.CleanupRule {
	on := v1beta1.OutcomeFailure
	if s.record.Outcome.Phase == v1beta1.PhaseSucceeded {
		on = v1beta1.OutcomeSuccess
	}
	if len(s.job.Spec.Cleanup) == 0 {
		return []v1beta1.CleanupRule{{Outcome: on, Action: v1beta1.CleanupDeleteCluster}}
	}
	var first, rest []v1beta1.CleanupRule
	for _, rule := range s.job.Spec.Cleanup {
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
