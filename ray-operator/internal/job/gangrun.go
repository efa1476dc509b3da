package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// reportWithin is for how long a gang's driver may run before it has reported. One that has not counts as running.
const reportWithin = time.Minute

// isGang reports whether the job is a gang.
func (v view) isGang() bool { return v.job.Spec.Gang != nil || v.job.Spec.Tune != nil }

// runsGang reports whether the bound attempt is that of a gang. A job that must be suspended may have become another.
func (v view) runsGang() bool { return v.isGang() || v.record.Bound.Grace > 0 }

// grace returns how long the processes of the bound attempt have to end, as it was when it was bound.
func (v view) grace() time.Duration {
	return max(graceOf(&v.job.Spec), time.Duration(v.record.Bound.Grace)*time.Second)
}

// report returns what the launcher reported last of the bound gang, nil where there is nothing.
func (v view) report() *launcher.Report { return reportOf(v.job, v.seen.Answer, v.seen.Heard) }

func reportOf(job *v1beta1.ClusterJob, answer jobs.Answer, heard bool) *launcher.Report {
	if gangOf(&job.Spec) == nil || !heard || !answer.Reported {
		return nil
	}
	return &answer.Report
}

// isTold reports whether the status tells of the bound attempt, and is in one of some phases.
func (v view) isTold(phases ...string) bool {
	return v.job.Status.Attempt == v.record.Attempt && slices.Contains(phases, v.job.Status.Phase)
}

// isUnreported reports whether a gang's driver has run for so long without a report that none is waited for. One that the status
// tells of was there, and cannot be read for the moment.
func (v view) isUnreported() bool {
	hasReported := v.report() != nil || v.job.Status.Gang != nil && v.job.Status.Attempt == v.record.Attempt
	began := v.startedAt()
	return !hasReported && v.seen.Heard && v.seen.Answer.Known && !began.IsZero() && v.now.Sub(began) >= reportWithin
}

// gangPhase returns the phase of a bound gang whose driver runs.
func (v view) gangPhase() string {
	switch report := v.report(); {
	case report != nil && report.State == launcher.Gathering:
		return v1beta1.PhaseGathering
	case report != nil, v.isUnreported():
		return v1beta1.PhaseRunning
	case v.isTold(v1beta1.PhaseRunning):
		return v1beta1.PhaseRunning
	default:
		return v1beta1.PhaseGathering
	}
}

// workedSince returns when the bound attempt first did its work, zero if it did not: a plain job when its driver ran, a gang when
// its first process did.
func (v view) workedSince() time.Time {
	if !v.isGang() {
		return v.startedAt()
	}
	if told := v.job.Status.StartTime; told != nil && v.record.Ran == 0 && v.job.Status.Attempt == v.record.Attempt {
		return told.Time
	}
	bound := time.Unix(v.record.Bound.At, 0)
	switch report := v.report(); {
	case report != nil && report.Started.IsZero():
		return time.Time{}
	case report != nil && report.Started.Before(bound): // the clock of the head may be another
		return bound
	case report != nil && report.Started.After(v.now):
		return v.now
	case report != nil:
		return report.Started
	case v.isUnreported():
		return v.startedAt().Add(reportWithin)
	case v.isTold(v1beta1.PhaseRunning): // of a later attempt, whose wait for places is bounded
		return v.startedAt().Add(longestGather(gangOf(&v.job.Spec)))
	default:
		return time.Time{}
	}
}

// worksAt returns from when on a later attempt of a gang counts as at work, whatever is reported: its first wait for places is
// bounded. Zero for any other.
func (v view) worksAt() time.Time {
	began := v.startedAt()
	if !v.isGang() || v.record.Ran == 0 || began.IsZero() {
		return time.Time{}
	}
	return began.Add(longestGather(gangOf(&v.job.Spec)) + reportWithin)
}

// explainGang returns what a bound gang is at whose driver runs.
func explainGang(v view, phase string) reason.Finding {
	on := v.clusterName() + warnOfGrace(&v.job.Spec, v.seen.Cluster) + warnOfTraffic(&v.job.Spec, v.seen.Cluster)
	switch trials := v.trials(); {
	case phase != v1beta1.PhaseGathering:
		return reason.JobRunning.Of(v.record.Attempt, on+explainTrials(v)+warnOfStorage(&v.job.Spec, v.seen.Cluster))
	case trials != nil && trials.Holder != "":
		return reason.StorageInUse.Of(v.record.Attempt, v.job.Spec.Tune.Storage, trials.Holder)
	}
	why := "its driver starts"
	if report := v.report(); report != nil {
		why = "they are being placed"
		if report.Waiting != "" {
			why = report.Waiting + explainGroups(gangOf(&v.job.Spec), v.seen.Cluster)
		}
	}
	return reason.GangGathering.Of(v.record.Attempt, on, why)
}

// explainGroups returns what is known of the groups of a cluster that may hold places of a gang.
func explainGroups(gang *v1beta1.Gang, cluster *v1beta1.ComputeCluster) string {
	var parts []string
	for i := range groupsOf(cluster) {
		group := &cluster.Spec.WorkerGroups[i]
		shape := nodeGroup{NodeShape: pod.ShapeOf(cluster, group)}
		holds := slices.ContainsFunc(gang.Roles, func(role v1beta1.GangRole) bool {
			return shape.CanMatch(role.LabelSelector) && shape.count(&role) > 0
		})
		at := slices.IndexFunc(cluster.Status.Groups, func(status v1beta1.GroupStatus) bool { return status.Name == group.Name })
		if !holds || at < 0 {
			continue
		}
		there, most := cluster.Status.Groups[at], ptr.Deref(group.MaxReplicas, 0)*int32(pod.Hosts(group))
		switch {
		case cluster.Spec.Autoscaling != nil && group.MaxReplicas != nil && there.Created >= most:
			parts = append(parts, fmt.Sprintf("group %s is at its maxReplicas of %d", group.Name, *group.MaxReplicas))
		case there.Ready < there.Desired:
			parts = append(parts, fmt.Sprintf("group %s has %d of %d workers", group.Name, there.Ready, there.Desired))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

// groupsOf returns the worker groups of a cluster, none where it is not there.
func groupsOf(cluster *v1beta1.ComputeCluster) []v1beta1.WorkerGroup {
	if cluster == nil {
		return nil
	}
	return cluster.Spec.WorkerGroups
}

// evictionDrain is how long a worker on a cluster of others has where its node is drained.
const evictionDrain = 45 * time.Second

// warnOfGrace returns where on a cluster the processes of a gang have less time than their grace, empty where they do not.
func warnOfGrace(spec *v1beta1.ClusterJobSpec, cluster *v1beta1.ComputeCluster) string {
	var short []string
	grace := graceOf(spec)
	for i := range groupsOf(cluster) {
		group := &cluster.Spec.WorkerGroups[i]
		if drain := time.Duration(pod.DrainSeconds(group)) * time.Second; drain < grace {
			short = append(short, fmt.Sprintf("drainSeconds of group %s gives %s s", group.Name, wholeSeconds(drain)))
		}
	}
	if spec.ClusterRef != nil && grace > evictionDrain {
		short = append(short, fmt.Sprintf("an eviction gives %s s", wholeSeconds(evictionDrain)))
	}
	if len(short) == 0 {
		return ""
	}
	return fmt.Sprintf(" (gracePeriodSeconds is %s; %s)", wholeSeconds(grace), strings.Join(short, ", "))
}

// warnOfTraffic returns that a cluster's encryption leaves out the traffic of a gang, empty where it has none. With a cluster of the
// job's own, admission warns of it.
func warnOfTraffic(spec *v1beta1.ClusterJobSpec, cluster *v1beta1.ComputeCluster) string {
	if spec.ClusterRef == nil || cluster == nil || cluster.Spec.Network == nil || cluster.Spec.Network.Encryption != v1beta1.Enabled {
		return ""
	}
	return " (network.encryption does not encrypt what the processes of a gang send to each other)"
}

// findLack returns why a cluster can never hold the gang, empty where it may, and for a job that is none or has ended. A job's own
// cluster that is not made yet is judged by its template.
func findLack(v view) string {
	if !v.isGang() || v.record.Outcome.Phase != "" {
		return ""
	}
	cluster := v.seen.Cluster
	if cluster == nil && v.hasOwnCluster() {
		cluster = ownCluster(v.job, v.record.Own)
	}
	if cluster == nil || !isJudgeable(cluster, v.isBound()) {
		return ""
	}
	return cutLack(roomOf(cluster).lacks(gangOf(&v.job.Spec)))
}

// mostLack is how much of the arithmetic is told, in bytes: names of resources have no limit, and a condition and an event have.
const mostLack = 900

// cutLack returns the beginning of a text, where it says which places are missing.
func cutLack(text string) string {
	if len(text) <= mostLack {
		return text
	}
	end := mostLack
	for !utf8.RuneStart(text[end]) { // within a character
		end--
	}
	return text[:end] + "…"
}

// isGathering reports whether the bound gang has none of its processes running, and waits for places.
func isGathering(v view) bool {
	return v.isGang() && v.isBound() && v.boundPhase() != v1beta1.PhaseRunning && !v.seen.Answer.Job.Status.Over()
}

// signalLost is the signal by which a launcher ends itself where the gang is lost, as Ray tells it.
const signalLost = -12

// hasEndedByItself reports whether a driver ended by itself: no signal but its own did it, or it said so before.
func hasEndedByItself(answer jobs.Answer) bool {
	job := answer.Job
	switch {
	case !answer.Known || !job.Status.Over():
		return false
	case answer.Reported && answer.Report.State == launcher.Ended:
		return true
	default:
		return job.Status == headclient.JobSucceeded || job.ExitCode != nil && (*job.ExitCode >= 0 || *job.ExitCode == signalLost)
	}
}

// leaseFor is for how long processes of a gang may outlive their driver, beside their grace: the lease of 20 s, and 5 s more.
const leaseFor = 25 * time.Second

// mayRunOn reports whether processes of a gang may run on though its attempt has a result.
func mayRunOn(v view, f result) bool {
	switch {
	case !v.runsGang() || hasEndedByItself(v.seen.Answer), f.Code == reason.RuntimeEnvFailed.Code:
		return false
	case v.startedAt().IsZero() && v.hasSession(): // Ray says that it never ran
		return f.Code == reason.DriverLost.Code
	default:
		return true
	}
}

// holdLeft returns for how long no attempt may be bound, as processes of the one before may run: until they have ended in any
// case, or the job's own cluster that they were on is gone with all its pods.
func holdLeft(v view) time.Duration {
	isGone := v.hasOwnCluster() && v.record.Last.Cluster != v.clusterName() && !v.seen.hasFormer() && len(v.seen.Stranded) == 0
	if v.record.Hold == 0 || isGone {
		return 0
	}
	return max(0, time.Unix(v.record.Hold, 0).Sub(v.now))
}

// explainHold returns why no attempt follows yet on one that has a result.
func explainHold(record Record) reason.Finding {
	last := record.Past[len(record.Past)-1]
	return reason.Stopping.Of(last.Number, "its processes may run until "+reconcile.Stamp(time.Unix(record.Hold, 0)))
}

// explainLack returns why a gang waits that its cluster can never hold.
func explainLack(v view) reason.Finding { return reason.GangTooLarge.Of(v.clusterName(), v.lack) }
