package job

import "github.com/heliostat-dev/heliostat/ray-operator/reason"

// stopDeletedJob ends a job that is terminating. What runs on a cluster of others is stopped, and a gang anywhere: its processes
// have their grace. Else what runs on its own cluster goes with that.
func stopDeletedJob(p *planner) bool {
	if p.job.DeletionTimestamp == nil {
		return false
	}
	p.setPhase(p.job.Status.Phase, reason.Stopping.Of(p.record.Attempt, "it is being deleted"))
	if !p.Finalizer || p.hasOwnCluster() && !p.isGang() || !p.isBound() || p.record.Outcome.Phase != "" {
		p.Finalizer, p.Ask = false, nil
		return true
	}
	f, is := judgeAttempt(p.view)
	due := p.job.DeletionTimestamp.Add(stopPatience(p.view))
	switch {
	case is:
		p.Lost = f.lostHead(p.record.Bound)
		p.Finalizer, p.Ask = false, nil
	case !p.now.Before(due):
		if !p.hasOwnCluster() {
			p.Events = append(p.Events, abandonedEvent(abandonedStop(p.view), p.seen.Cluster))
		}
		p.Finalizer, p.Ask = false, nil
	default:
		p.Ask = askForStop(p.view)
		p.wakeIn(due.Sub(p.now))
		p.wakeIn(untilSettled(p.view))
	}
	return true
}

// lostHead returns the head that is looked for past the cache: that of an attempt which is judged by its absence.
func (r result) lostHead(bound Bound) Bound {
	if r.gone {
		return bound
	}
	return Bound{}
}
