package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// Whole is how many replicas are the whole capacity of each deployment that Serve scales, while an upgrade to a second
// cluster is under way. Load moves what either version wants, so neither is measured by its own wish.
type Whole map[string]int

// mostNoted bounds what a record keeps of a Whole, in bytes. What does not fit is left to Serve alone.
const mostNoted = 1 << 10

// requirement returns how many replicas of a deployment of an application have to run, so that none is missing.
type requirement func(application string, deployment headclient.Deployment) int

// deploymentKey names a deployment among those of all applications.
func deploymentKey(application, deployment string) string { return application + "/" + deployment }

// countReplicas returns the whole with what the active version runs now: the most that it ran of each deployment that
// the candidate's configuration has Serve scale.
func (w Whole) countReplicas(candidate serveconfig.Config, active headclient.Serving) Whole {
	whole, room, percent := Whole{}, mostNoted, capacityOf(active)
	for i := range candidate.Applications {
		application := &candidate.Applications[i]
		for _, scaled := range application.Scaled() {
			key := deploymentKey(application.Name, scaled.Deployment)
			replicas := max(w[key], runningReplicas(active.Applications[application.Name], scaled.Deployment)*100/percent)
			if room -= len(key) + len(`"":123456,`); replicas > 0 && room >= 0 {
				whole[key] = replicas
			}
		}
	}
	if len(whole) == 0 {
		return nil
	}
	return whole
}

// capacityOf returns how much of its capacity a Serve is told to have, in percent.
func capacityOf(serving headclient.Serving) int {
	if serving.Capacity == nil {
		return 100
	}
	return max(1, int(*serving.Capacity))
}

// restoredWhole returns the whole of an upgrade that is under way, as far as it can be seen: while it is held, it is
// what either version runs.
func restoredWhole(seen *Seen, active, candidate Version) Whole {
	var whole Whole
	for _, version := range []Version{active, candidate} {
		if cluster := seen.Clusters[version.Cluster]; cluster != nil && cluster.Heard {
			whole = whole.countReplicas(seen.Revisions[candidate.Revision].Config, cluster.Answer.Serving)
		}
	}
	return whole
}

// runningReplicas returns how many replicas of a deployment run.
func runningReplicas(application headclient.Application, deployment string) int {
	for _, one := range application.Deployments {
		if one.Name == deployment {
			return one.Running
		}
	}
	return 0
}

// boundsFor returns the bounds, by deployment, that Serve is given for an application while it has to keep the whole of
// it. Where there is no room for more than a share, capped is true: it must not grow beyond the whole either.
func (w Whole) boundsFor(application serveconfig.Application, capped bool) map[string]serveconfig.Bounds {
	held := map[string]serveconfig.Bounds{}
	for _, scaled := range application.Scaled() {
		replicas, noted := w[deploymentKey(application.Name, scaled.Deployment)]
		if bounds := scaled.Holding(replicas, capped); noted && bounds != scaled.Bounds {
			held[scaled.Deployment] = bounds
		}
	}
	return held
}

// isScaling reports whether Serve is scaling a deployment by its load. It is not sick for that: a replica that dies or
// does not start makes it UNHEALTHY.
func isScaling(deployment headclient.Deployment) bool {
	return deployment.Trigger == "AUTOSCALING" && (deployment.State == "UPSCALING" || deployment.State == "DOWNSCALING")
}

// wished returns the requirement of Serve's own wish, but for what it is still scaling to.
func wished(_ string, deployment headclient.Deployment) int {
	if isScaling(deployment) {
		return min(deployment.Running, deployment.Wanted)
	}
	return deployment.Wanted
}

// ofCandidate returns the requirement of a candidate with a configuration, which Serve is told to run a share of, in
// percent.
func (w Whole) ofCandidate(config serveconfig.Config, percent int) requirement {
	needs := map[string]int{}
	for i := range config.Applications {
		application := &config.Applications[i]
		for _, scaled := range application.Scaled() {
			key := deploymentKey(application.Name, scaled.Deployment)
			if replicas, noted := w[key]; noted {
				needs[key] = max(1, (scaled.Holding(replicas, false).Least*percent+50)/100) // as Serve rounds
			}
		}
	}
	return func(application string, deployment headclient.Deployment) int {
		if need, noted := needs[deploymentKey(application, deployment.Name)]; noted {
			return need
		}
		return wished(application, deployment)
	}
}

// ofActive returns the requirement of the active version in an upgrade. It served alone with what it had, whatever that
// was, so it lacks nothing before it has nothing.
func (w Whole) ofActive(application string, deployment headclient.Deployment) int {
	if _, noted := w[deploymentKey(application, deployment.Name)]; noted && deployment.Running > 0 {
		return min(deployment.Running, deployment.Wanted)
	}
	return wished(application, deployment)
}

// hasScaled reports whether a configuration has Serve scale any deployment.
func hasScaled(config serveconfig.Config) bool {
	for i := range config.Applications {
		if len(config.Applications[i].Scaled()) > 0 {
			return true
		}
	}
	return false
}

// isHeard reports whether the head of a cluster has said what its Serve does.
func isHeard(cluster *Cluster) bool {
	return cluster != nil && cluster.Heard && !cluster.Answer.At.IsZero() && cluster.Answer.Serving.Running
}

// isUncounted reports whether the whole is not known yet, and will be soon: nothing is asked of the candidate before.
func isUncounted(v view, active Health) bool {
	record, cluster := &v.record, v.seen.findCluster(v.record.Active.Cluster)
	if record.Candidate == nil || record.Shift.Proven || record.Shift.Traffic > 0 || len(record.Whole) > 0 || record.Active.Good == "" {
		return false
	}
	answers := cluster != nil && cluster.Head != nil && !active.Silent
	return answers && !isHeard(cluster) && hasScaled(v.find(record.Candidate.Revision).Config)
}

// capacityOf returns how much of the whole a version must have, in percent.
func (r Record) capacityOf(version Version) int {
	switch {
	case r.Candidate == nil:
		return 100
	case r.isCandidate(version):
		return r.Shift.Candidate
	default:
		return r.Shift.Active
	}
}

// boundsOf returns, by application and deployment, between how many replicas Serve scales a version with a configuration
// for the time of an upgrade: the candidate has the whole before it gets its share of the requests, and the active version
// keeps it from then on, to go back to.
func (r Record) boundsOf(version Version, config serveconfig.Config) map[string]map[string]serveconfig.Bounds {
	if r.Candidate == nil || !r.isCandidate(version) && r.Shift.Traffic == 0 {
		return nil
	}
	all := map[string]map[string]serveconfig.Bounds{}
	for _, application := range config.Applications {
		if held := r.Whole.boundsFor(application, r.capacityOf(version) < 100); len(held) > 0 {
			all[application.Name] = held
		}
	}
	return all
}

// requirementOf returns what a version's deployments have to run.
func (r Record) requirementOf(version versionState) requirement {
	switch {
	case r.Candidate == nil:
		return wished
	case !r.isCandidate(version.Version):
		return r.Whole.ofActive
	}
	percent := 100
	if version.cluster != nil {
		percent = capacityOf(version.cluster.Answer.Serving)
	}
	return r.Whole.ofCandidate(version.configured.Config, percent)
}

// measureCapacity returns how much of the whole capacity a version has up, in percent: what is up of what Serve was
// last seen to want, by how much of the whole that is. A version that is to shrink has more than it
// is to have until its pods are gone, so that the other one does not grow before. While Serve
// changes what it wants, its numbers may be those of before, and while its head says nothing there
// are none: no more counts then than the version's share of the requests, in percent.
func measureCapacity(version versionState, h Health, share int) int {
	cluster := version.cluster
	if cluster == nil {
		return h.Ready
	}
	ready := h.Ready
	if asked := cluster.Answer.Serving.Capacity; isDeploying(h) || h.Assumed {
		ready = min(ready, max(1, share))
	} else if asked != nil {
		ready = ready * int(*asked) / 100
	}
	if h.Ready < 100 || version.capacity >= 100 || cluster.Spec.Autoscaling != nil {
		return ready
	}
	if hasSurplus(cluster, version.capacity) {
		return max(ready, version.capacity+1)
	}
	return ready
}

// hasSurplus reports whether a cluster has more workers than it is to have for a share of its capacity, in percent.
func hasSurplus(cluster *Cluster, percent int) bool {
	whole, told, there := wholeOf(cluster.ComputeCluster), int32(0), int32(0)
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		told += shareOf(whole[group.Name], percent) * max(1, group.HostsPerReplica)
	}
	for _, pod := range cluster.Pods {
		over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if pod.Labels[v1beta1.LabelRole] == v1beta1.RoleWorker && !over {
			there++
		}
	}
	return there > told
}

// isDeploying reports whether Serve changes what it runs of an application.
func isDeploying(h Health) bool {
	return slices.ContainsFunc(h.Applications, func(a v1beta1.ApplicationStatus) bool { return a.State == string(headclient.ApplicationDeploying) })
}

// countWhole returns what the whole of an upgrade is, by what runs on the cluster of the active version. It is counted
// until the candidate has had it all once; then it is fixed.
func (r Record) countWhole(active *Cluster, candidate serveconfig.Config) Whole {
	if r.Shift.Proven || r.Shift.Traffic > 0 || r.Shift.Back || r.Active.Good == "" || !isHeard(active) {
		return r.Whole
	}
	return r.Whole.countReplicas(candidate, active.Answer.Serving)
}
