package job

import (
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// isStopAsked reports whether a job's annotation asks for its stop.
func isStopAsked(job *v1alpha1.ClusterJob) bool {
	return job.Annotations[v1alpha1.AnnotationStop] == v1alpha1.StopOn
}

// stop ends a job that is asked to stop: its bound attempt first, where there is one.
func (p *planner) stop() bool {
	if !isStopAsked(p.job) {
		return false
	}
	p.end(reason.Stopped.Of())
	return true
}

// stops reports whether no attempt may follow the bound one: the job is asked to stop, or was
// when the end of that attempt began.
func (p *planner) stops() bool {
	return isStopAsked(p.job) || p.record.Ending == reason.Stopped.Code
}
