package job

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// defaultFailedTrials is how many trials may fail, as the schema has it.
const defaultFailedTrials = 3

// gangOf returns the gang of a job: its own, or for a job with trials and no gang that of one process. It returns nil for a
// job whose command is the driver.
func gangOf(spec *v1beta1.ClusterJobSpec) *v1beta1.Gang {
	if !isOneProcess(spec) {
		return spec.Gang
	}
	worker := v1beta1.GangRole{Name: v1beta1.GangRoleWorker, Resources: spec.EntrypointResources, LabelSelector: spec.EntrypointLabelSelector}
	if !reserves(worker.Resources) {
		worker.Resources = map[string]resource.Quantity{"CPU": resource.MustParse("1")}
	}
	return &v1beta1.Gang{Framework: v1beta1.FrameworkGeneric, Roles: []v1beta1.GangRole{worker}}
}

// isOneProcess reports whether each trial of a job is one process, because the job has no gang.
func isOneProcess(spec *v1beta1.ClusterJobSpec) bool { return spec.Tune != nil && spec.Gang == nil }

func reserves(resources map[string]resource.Quantity) bool {
	for _, amount := range resources {
		if amount.Sign() > 0 {
			return true
		}
	}
	return false
}

// driverResources returns what the driver of a job reserves. Where each trial is one process, that reserves it instead.
func driverResources(spec *v1beta1.ClusterJobSpec) map[string]resource.Quantity {
	if isOneProcess(spec) {
		return nil
	}
	return spec.EntrypointResources
}

// describeTune returns what the launcher gets for the trials of a job, with all defaults written out; nil for a job without. A
// cluster that is nil holds an unknown number of them.
func describeTune(spec *v1beta1.ClusterJobSpec, cluster *v1beta1.ComputeCluster) *launcher.Tune {
	tune := spec.Tune
	if tune == nil {
		return nil
	}
	d := &launcher.Tune{
		Metric: tune.Objective.Metric, Direction: string(directionOf(&tune.Objective)), Value: wordOr(tune.Objective.Value, v1beta1.TuneLast),
		Goal: tune.Objective.Goal, Algorithm: wordOr(tune.Algorithm, v1beta1.TuneTPE), EarlyStopping: wordOr(tune.EarlyStopping, v1beta1.StopNone),
		Seed: tune.Seed, Storage: tune.Storage, MaxTrials: tune.MaxTrials, ParallelTrials: numberOr(tune.ParallelTrials, 1),
		MaxFailedTrials: ptr.Deref(tune.MaxFailedTrials, defaultFailedTrials), TrialDeadlineSeconds: tune.TrialDeadlineSeconds,
	}
	d.Fits = trialsAtATime(spec, cluster)
	for i := range tune.Parameters {
		p := &tune.Parameters[i]
		d.Parameters = append(d.Parameters, launcher.Parameter{
			Name: p.Name, Type: string(p.Type), Min: p.Min, Max: p.Max, Step: p.Step, Scale: wordOr(p.Scale, v1beta1.ScaleLinear), Values: p.Values,
		})
	}
	return d
}

// less matches the names of metrics of which lower values are better.
var less = regexp.MustCompile(`(^|[^a-z])(loss|error)([^a-z]|$)`)

// directionOf returns which values of a metric are better: what the user says, or what its name does.
func directionOf(objective *v1beta1.TuneObjective) v1beta1.TuneDirection {
	switch {
	case objective.Direction != "":
		return objective.Direction
	case less.MatchString(strings.ToLower(objective.Metric)):
		return v1beta1.Minimize
	default:
		return v1beta1.Maximize
	}
}

// fits returns how many gangs of a kind a cluster can hold at a time, up to a number, and at least 1. It may be too many, as it refuses
// only what is certain.
func (r room) fits(gang *v1beta1.Gang, most int32) int32 {
	more := sort.Search(int(most)-1, func(i int) bool { return r.lacks(repeat(gang, int32(i)+2)) != "" })
	return int32(more) + 1
}

// trialsAtATime returns how many trials of a job a cluster can run at a time, up to parallelTrials, and 0 where that is not known.
func trialsAtATime(spec *v1beta1.ClusterJobSpec, cluster *v1beta1.ComputeCluster) int32 {
	if cluster == nil || !isJudgeable(cluster, false) {
		return 0
	}
	return roomOf(cluster).fits(gangOf(spec), numberOr(spec.Tune.ParallelTrials, 1))
}

// repeat returns a gang with the places of so many.
func repeat(gang *v1beta1.Gang, count int32) *v1beta1.Gang {
	all := &v1beta1.Gang{Placement: v1beta1.PlacementPack}
	for i := range gang.Roles {
		role := gang.Roles[i]
		role.Replicas, role.MinReplicas = replicasOf(&role)*count, leastReplicas(&role)*count
		all.Roles = append(all.Roles, role)
	}
	return all
}

// trials returns what the launcher reported last of the trials, nil where there is nothing.
func (v view) trials() *launcher.TuneReport {
	if report := v.report(); report != nil && v.job.Spec.Tune != nil {
		return report.Tune
	}
	return nil
}

// explainTrials returns that fewer trials run at a time than may, or that one waits for a lost place, and why; empty where neither is so.
func explainTrials(v view) string {
	trials := v.trials()
	if trials == nil {
		return ""
	}
	switch waiting := v.report().Waiting; {
	case waiting != "" && trials.Waiting > 0:
		return fmt.Sprintf(" (runs %d of %d trials at a time: %s)", trials.Running, trials.Running+trials.Waiting, waiting)
	case waiting != "":
		return fmt.Sprintf(" (%s)", waiting)
	}
	if fits, parallel := trialsAtATime(&v.job.Spec, v.seen.Cluster), numberOr(v.job.Spec.Tune.ParallelTrials, 1); fits > 0 && fits < parallel {
		return fmt.Sprintf(" (runs at most %d of %d trials at a time, as the cluster has no room for more)", fits, parallel)
	}
	return ""
}

// warnOfStorage returns that the storage of a job's trials is on no volume of a cluster, so that it goes with the driver's pod; empty
// where that is not so.
func warnOfStorage(spec *v1beta1.ClusterJobSpec, cluster *v1beta1.ComputeCluster) string {
	if spec.Tune == nil || spec.Tune.Storage == "" || cluster == nil || isMounted(cluster, spec.Tune.Storage) {
		return ""
	}
	return fmt.Sprintf(" (storage %s is on no volume, and is lost with the driver's pod)", spec.Tune.Storage)
}

// isMounted reports whether a path is on a volume of a cluster: a shared one, or one that the head's template mounts.
func isMounted(cluster *v1beta1.ComputeCluster, path string) bool {
	var at []string
	for i := range cluster.Spec.SharedVolumes {
		at = append(at, cluster.Spec.SharedVolumes[i].MountPath)
	}
	if template := cluster.Spec.Head.Template; template != nil {
		for i := range template.Spec.Containers {
			for _, mount := range template.Spec.Containers[i].VolumeMounts {
				at = append(at, strings.TrimRight(mount.MountPath, "/"))
			}
		}
	}
	return slices.ContainsFunc(at, func(mount string) bool { return path == mount || strings.HasPrefix(path, mount+"/") })
}

// tuneStatus returns the state of a job's trials, nil before the first report, and for a job without. With a storage, another attempt
// continues with them. What was reported of an attempt is never lowered.
func tuneStatus(job *v1beta1.ClusterJob, seen *Seen, record Record) *v1beta1.TuneStatus {
	if job.Spec.Tune == nil {
		return nil
	}
	former, number := job.Status.Tune, currentAttempt(record)
	if former != nil && job.Status.Attempt != number && job.Spec.Tune.Storage == "" {
		former = nil
	}
	status := former.DeepCopy()
	report := reportOf(job, seen.Answer, seen.Heard)
	if report != nil && report.Tune != nil && (record.Attempt == number || seen.Record.Attempt == number) {
		status = mergeTrials(former, report.Tune)
	}
	if status != nil && record.Bound.Head == "" {
		status.Running = 0
	}
	return status
}

// mergeTrials returns the state of trials after a report.
func mergeTrials(former *v1beta1.TuneStatus, report *launcher.TuneReport) *v1beta1.TuneStatus {
	if former == nil {
		former = &v1beta1.TuneStatus{}
	}
	status := &v1beta1.TuneStatus{
		Trials: max(former.Trials, report.Trials), Running: report.Running, Succeeded: max(former.Succeeded, report.Succeeded),
		Failed: max(former.Failed, report.Failed), Pruned: max(former.Pruned, report.Pruned), Best: former.Best.DeepCopy(),
	}
	if best := report.Best; best != nil {
		status.Best = &v1beta1.BestTrial{Trial: best.Trial, Value: best.Value, Parameters: best.Parameters}
	}
	return status
}
