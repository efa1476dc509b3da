package job

import (
	"fmt"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// finished manages a job that has its outcome: what is left of it goes when it is due.
func (p *planner) finished() bool {
	end := &p.record.Outcome
	if end.Phase == "" {
		return false
	}
	p.Finalizer = false
	if told(p.job, &p.record) {
		p.cleanup()
	} else {
		p.collect()
	}
	p.say(end.Phase, reason.Finding{Code: end.Reason, Text: end.Text})
	return true
}

// cleanup is what goes after the end, each when it is due.
func (p *planner) cleanup() {
	end := time.Unix(p.record.Outcome.At, 0)
	p.discard()
	if cluster := p.seen.Cluster; p.own() && cluster != nil && cluster.DeletionTimestamp == nil {
		if p.Queue.Held && p.seen.Queue.Workload != nil { // it was kept, and others need its quota
			p.letGo(cluster)
		} else {
			p.cleanCluster(cluster, end)
		}
	}
	if p.over(p.job.Spec.TTLSecondsAfterFinished, end) {
		p.End = true
	}
}

func (p *planner) cleanCluster(cluster *v1alpha1.ComputeCluster, end time.Time) {
	until := "as long as the ClusterJob is there"
	for _, rule := range p.rules() {
		due := end.Add(time.Duration(rule.AfterSeconds) * time.Second)
		left := due.Sub(p.now)
		p.wakeIn(left)
		switch {
		case rule.Action == v1alpha1.CleanupDeleteCluster && left <= 0:
			p.letGo(cluster)
			return
		case rule.Action == v1alpha1.CleanupDeleteCluster:
			until = "until " + pass.Stamp(due)
		case left <= 0 && hasWorkers(cluster):
			p.Shrink = cluster
		}
	}
	note := fmt.Sprintf("ClusterJob %s keeps it %s", p.job.Name, until)
	if cluster.Annotations[v1alpha1.AnnotationRetainedBy] != note {
		p.Keep = &Keeping{Cluster: cluster, Note: note}
	}
}

// rules are those of the outcome, DeleteCluster first.
func (p *planner) rules() []v1alpha1.CleanupRule {
	on := v1alpha1.OutcomeFailure
	if p.record.Outcome.Phase == v1alpha1.PhaseSucceeded {
		on = v1alpha1.OutcomeSuccess
	}
	if len(p.job.Spec.Cleanup) == 0 {
		return []v1alpha1.CleanupRule{{Outcome: on, Action: v1alpha1.CleanupDeleteCluster}}
	}
	var first, rest []v1alpha1.CleanupRule
	for _, rule := range p.job.Spec.Cleanup {
		switch {
		case rule.Outcome != on:
		case rule.Action == v1alpha1.CleanupDeleteCluster:
			first = append(first, rule)
		default:
			rest = append(rest, rule)
		}
	}
	return append(first, rest...)
}

// hasWorkers reports whether a group of the cluster is not suspended yet.
func hasWorkers(cluster *v1alpha1.ComputeCluster) bool {
	for i := range cluster.Spec.WorkerGroups {
		if !cluster.Spec.WorkerGroups[i].Suspend {
			return true
		}
	}
	return false
}
