package convert

import (
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// longest is how long a cluster is kept at most after its job, in seconds: a year.
const longest = 31536000

// Policies of ray.io.
const (
	deleteCluster = "DeleteCluster"
	deleteWorkers = "DeleteWorkers"
	deleteSelf    = "DeleteSelf"
	deleteNone    = "DeleteNone"
)

// ending is what goes after one outcome, and when; absent where nothing goes.
type ending map[string]int32

// endings are what goes after each outcome.
type endings map[v1beta1.JobOutcome]ending

var outcomes = []v1beta1.JobOutcome{v1beta1.OutcomeSuccess, v1beta1.OutcomeFailure}

// takeCleanup says what of the job's own cluster goes when. A cluster that is not its own stays.
func (j *jobPart) takeCleanup() {
	ends := j.endings()
	j.takeSelf(ends)
	d := j.spec.DeletionStrategy
	switch {
	case j.made.ClusterTemplate != nil:
		j.clean(ends)
	case j.spec.ShutdownAfterJobFinishes:
		j.drop("spec.shutdownAfterJobFinishes", notItsOwn)
	case d != nil && (ends.has(deleteWorkers) || ends.has(deleteCluster) && !ends.has(deleteSelf)):
		j.refuse("spec.deletionStrategy", notItsOwn)
	}
}

// endings reads what goes after each outcome.
func (j *jobPart) endings() endings {
	after := int32(0)
	if j.spec.TTLSecondsAfterFinished != nil {
		after = *j.spec.TTLSecondsAfterFinished
	}
	ends := endings{v1beta1.OutcomeSuccess: {}, v1beta1.OutcomeFailure: {}}
	switch d := j.spec.DeletionStrategy; {
	case d != nil && len(d.DeletionRules) > 0:
		if j.spec.ShutdownAfterJobFinishes || after > 0 {
			j.refuse("spec.deletionStrategy.deletionRules",
				"rules stand alone; leave shutdownAfterJobFinishes and ttlSecondsAfterFinished out")
		}
		j.takeDeletionRules(d, ends)
	case d != nil && (d.OnSuccess == nil || d.OnFailure == nil):
		j.refuse("spec.deletionStrategy", "it has rules, or a policy for both outcomes; give deletionRules, or onSuccess and onFailure")
	case d != nil:
		j.end("spec.deletionStrategy.onSuccess.policy", d.OnSuccess.Policy, ends[v1beta1.OutcomeSuccess], after)
		j.end("spec.deletionStrategy.onFailure.policy", d.OnFailure.Policy, ends[v1beta1.OutcomeFailure], after)
		if j.spec.ShutdownAfterJobFinishes {
			j.drop("spec.shutdownAfterJobFinishes", "deletionStrategy says what goes; leave this out")
		}
	case j.spec.ShutdownAfterJobFinishes:
		for _, outcome := range outcomes {
			ends[outcome][deleteCluster] = after
		}
	case after > 0:
		j.drop("spec.ttlSecondsAfterFinished", "without shutdownAfterJobFinishes it has no effect; set that too")
	}
	return ends
}

const notItsOwn = "the cluster is not the job's, so that it stays; leave this out"

// has reports whether something goes after some outcome.
func (e endings) has(policy string) bool {
	return slices.ContainsFunc(outcomes, func(outcome v1beta1.JobOutcome) bool {
		_,
			has := e[outcome][policy]
		return has
	})
}

// end takes what goes; of two times the earlier one counts.
func (j *jobPart) end(path, policy string, into ending, after int32) {
	switch policy {
	case deleteCluster, deleteWorkers, deleteSelf:
		if earlier, has := into[policy]; !has || after < earlier {
			into[policy] = after
		}
	case deleteNone:
	default:
		j.refuse(path, "ray.io knows DeleteCluster, DeleteWorkers, DeleteSelf and DeleteNone; use one of them")
	}
}

func (j *jobPart) takeDeletionRules(d *rayDeletion, ends endings) {
	const path = "spec.deletionStrategy.deletionRules"
	if d.OnSuccess != nil || d.OnFailure != nil {
		j.refuse(path, "rules stand alone; leave onSuccess and onFailure out")
	}
	for i := range d.DeletionRules {
		rule := &d.DeletionRules[i]
		switch when := &rule.Condition; {
		case (when.JobStatus == "") == (when.JobDeploymentStatus == ""):
			j.refuse(path, "a rule has one condition; give jobStatus or jobDeploymentStatus")
		case when.JobStatus == "SUCCEEDED":
			j.end(path, rule.Policy, ends[v1beta1.OutcomeSuccess], when.TTLSeconds)
		case when.JobStatus == "FAILED", when.JobDeploymentStatus == "Failed":
			j.end(path, rule.Policy, ends[v1beta1.OutcomeFailure], when.TTLSeconds)
		default:
			j.refuse(path, "a condition is SUCCEEDED or FAILED, or Failed of the deployment; use one of them")
		}
	}
}

// takeSelf makes of DeleteSelf the one time after which the ClusterJob goes, and with it its cluster.
func (j *jobPart) takeSelf(ends endings) {
	afterSuccess, has := ends[v1beta1.OutcomeSuccess][deleteSelf]
	afterFailure, hasToo := ends[v1beta1.OutcomeFailure][deleteSelf]
	switch {
	case !has && !hasToo:
		return
	case has && hasToo:
		j.made.TTLSecondsAfterFinished = new(max(afterSuccess, afterFailure))
	}
	if has != hasToo || afterSuccess != afterFailure {
		j.change("spec.deletionStrategy", "ttlSecondsAfterFinished",
			"ttlSecondsAfterFinished does not ask for the outcome; the cluster goes as it did, "+
				"the ClusterJob after the longer time, or not by itself where one outcome kept it")
	}
	for _, outcome := range outcomes {
		after, self := ends[outcome][deleteSelf]
		if _, sooner := ends[outcome][deleteCluster]; self && !sooner {
			ends[outcome][deleteCluster] = after
		}
	}
}

// clean writes the rules. An outcome without one keeps its cluster, but only beside a rule for the other one.
func (j *jobPart) clean(ends endings) {
	isAtOnce := true
	for _, outcome := range outcomes {
		whole, hasWhole := ends[outcome][deleteCluster]
		workers, hasWorkers := ends[outcome][deleteWorkers]
		if hasWorkers && (!hasWhole || workers < whole) && len(j.made.ClusterTemplate.Spec.WorkerGroups) > 0 {
			j.made.Cleanup = append(j.made.Cleanup, v1beta1.CleanupRule{Outcome: outcome, Action: v1beta1.CleanupDeleteWorkers,
				AfterSeconds: workers})
		}
		if hasWhole {
			j.made.Cleanup = append(j.made.Cleanup, v1beta1.CleanupRule{Outcome: outcome, Action: v1beta1.CleanupDeleteCluster,
				AfterSeconds: whole})
		}
		isAtOnce = isAtOnce && hasWhole && whole == 0
	}
	switch {
	case isAtOnce && !slices.ContainsFunc(j.made.Cleanup, isOfWorkers):
		j.made.Cleanup = nil // which is the default
	case len(j.made.Cleanup) == 0:
		for _, outcome := range outcomes {
			j.made.Cleanup = append(j.made.Cleanup, v1beta1.CleanupRule{Outcome: outcome, Action: v1beta1.CleanupDeleteCluster,
				AfterSeconds: longest})
		}
		j.change("spec.shutdownAfterJobFinishes", "cleanup", "the cluster was kept for good, and is kept for a year; "+
			"take cleanup out to have it go with the job's end")
	}
}

func isOfWorkers(rule v1beta1.CleanupRule) bool { return rule.Action == v1beta1.CleanupDeleteWorkers }
