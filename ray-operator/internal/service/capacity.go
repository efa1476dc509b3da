package service

import (
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/serveconfig"
)

// Whole is how many replicas are the whole capacity of each deployment that Serve scales, while an upgrade to a second
// cluster is under way. Load moves what either version wants, so neither is measured by its own wish.
type Whole map[string]int

// mostNoted bounds what a record keeps of a Whole, in bytes. What does not fit is left to Serve alone.
const mostNoted = 1 << 10

// deploymentKey names a deployment among those of all applications.
func deploymentKey(application, deployment string) string { return application + "/" + deployment }

// counted returns the whole with what the active version runs now: the most that it ran of each deployment that the
// candidate's configuration has Serve scale.
func (w Whole) counted(candidate serveconfig.Config, active headclient.Serving) Whole {
	whole, room, percent := Whole{}, mostNoted, capacityOf(active)
	for i := range candidate.Applications {
		application := &candidate.Applications[i]
		for _, scaled := range application.Scaled() {
			key := deploymentKey(application.Name, scaled.Deployment)
			replicas := max(w[key], runs(active.Applications[application.Name], scaled.Deployment)*100/percent)
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

// capacityOf is how much of its capacity a Serve is told to have, in percent.
func capacityOf(serving headclient.Serving) int {
	if serving.Capacity == nil {
		return 100
	}
	return max(1, int(*serving.Capacity))
}

// restoredWhole is the whole of an upgrade that is under way, as far as it can be seen: while it is held, it is what
// either side runs.
func restoredWhole(seen *Seen, active, candidate *Side) Whole {
	var whole Whole
	for _, side := range []*Side{active, candidate} {
		if cluster := seen.Clusters[side.Cluster]; cluster != nil && cluster.Heard {
			whole = whole.counted(seen.Revisions[candidate.Revision].Config, cluster.Answer.Serving)
		}
	}
	return whole
}

// runs is how many replicas of a deployment run.
func runs(application headclient.Application, deployment string) int {
	for _, one := range application.Deployments {
		if one.Name == deployment {
			return one.Running
		}
	}
	return 0
}

// holding returns the bounds, by deployment, that Serve is given for an application while it has to keep the whole of
// it. Where there is no room for more than a share, capped is true: it must not grow beyond the whole either.
func (w Whole) holding(application serveconfig.Application, capped bool) map[string]serveconfig.Bounds {
	held := map[string]serveconfig.Bounds{}
	for _, scaled := range application.Scaled() {
		replicas, noted := w[deploymentKey(application.Name, scaled.Deployment)]
		if bounds := scaled.Holding(replicas, capped); noted && bounds != scaled.Bounds {
			held[scaled.Deployment] = bounds
		}
	}
	return held
}

// scaling reports whether Serve is scaling a deployment by its load. It is not sick for that: a replica that dies or
// does not start makes it UNHEALTHY.
func scaling(deployment headclient.Deployment) bool {
	return deployment.Trigger == "AUTOSCALING" && (deployment.State == "UPSCALING" || deployment.State == "DOWNSCALING")
}

// requirement returns how many replicas of a deployment of an application have to run, so that none is missing.
type requirement func(application string, deployment headclient.Deployment) int

// wished is the requirement of Serve's own wish, but for what it is still scaling to.
func wished(_ string, deployment headclient.Deployment) int {
	if scaling(deployment) {
		return min(deployment.Running, deployment.Wanted)
	}
	return deployment.Wanted
}

// ofCandidate is the requirement of a candidate with a configuration, which Serve is told to run a share of, in percent.
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

// ofActive is the requirement of the active version in an upgrade. It served alone with what it had, whatever that
// was, so it lacks nothing before it has nothing.
func (w Whole) ofActive(application string, deployment headclient.Deployment) int {
	if _, noted := w[deploymentKey(application, deployment.Name)]; noted && deployment.Running > 0 {
		return min(deployment.Running, deployment.Wanted)
	}
	return wished(application, deployment)
}

// scales reports whether a configuration has Serve scale any deployment.
func scales(config serveconfig.Config) bool {
	for i := range config.Applications {
		if len(config.Applications[i].Scaled()) > 0 {
			return true
		}
	}
	return false
}

// count notes what the whole of an upgrade is, until the candidate has had it all once. Then it is fixed.
func (p *planner) count() {
	record, cluster := &p.record, p.cluster(&p.record.Active)
	switch {
	case record.Candidate == nil:
		record.Whole = nil
	case record.Shift.Proven || record.Shift.Traffic > 0 || record.Shift.Back || record.Active.Good == "":
	case p.isHeard(cluster):
		record.Whole = record.Whole.counted(p.revision(record.Candidate.Revision).Config, cluster.Answer.Serving)
	}
}

// isHeard reports whether the head of a cluster has said what its Serve does.
func (p *planner) isHeard(cluster *Cluster) bool {
	return cluster != nil && cluster.Heard && !cluster.Answer.At.IsZero() && cluster.Answer.Serving.Running
}

// isUncounted reports whether the whole is not known yet, and will be soon: nothing is asked of the candidate before.
func (p *planner) isUncounted() bool {
	record, cluster := &p.record, p.cluster(&p.record.Active)
	if record.Candidate == nil || record.Shift.Proven || record.Shift.Traffic > 0 || len(record.Whole) > 0 || record.Active.Good == "" {
		return false
	}
	answers := cluster != nil && cluster.Head != nil && !p.active.Silent
	return answers && !p.isHeard(cluster) && scales(p.revision(record.Candidate.Revision).Config)
}

// requires returns what a side's deployments have to run.
func (p *planner) requires(side *Side) requirement {
	switch {
	case p.record.Candidate == nil:
		return wished
	case side != p.record.Candidate:
		return p.record.Whole.ofActive
	}
	percent := 100
	if cluster := p.cluster(side); cluster != nil {
		percent = capacityOf(cluster.Answer.Serving)
	}
	return p.record.Whole.ofCandidate(p.revision(p.configured(side)).Config, percent)
}

// bounds returns, by application and deployment, between how many replicas a side's Serve scales for the time of an
// upgrade: the candidate has the whole before it gets its share of the requests, and the active version keeps it from
// then on, to go back to.
func (p *planner) bounds(side *Side) map[string]map[string]serveconfig.Bounds {
	record := &p.record
	if record.Candidate == nil || side != record.Candidate && record.Shift.Traffic == 0 {
		return nil
	}
	all := map[string]map[string]serveconfig.Bounds{}
	for _, application := range p.revision(p.configured(side)).Config.Applications {
		if held := record.Whole.holding(application, p.capacity(side) < 100); len(held) > 0 {
			all[application.Name] = held
		}
	}
	return all
}
