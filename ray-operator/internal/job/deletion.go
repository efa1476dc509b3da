package job

// stopDeletedJob ends a job that is terminating. What runs on a cluster of others is stopped. What runs on its own goes
// with that.
func stopDeletedJob(p *planner) bool {
	if p.job.DeletionTimestamp == nil {
		return false
	}
	p.setPhase(p.job.Status.Phase, askForStop(p, "it is being deleted"))
	if !p.Finalizer || p.hasOwnCluster() || !p.isBound() || p.record.Outcome.Phase != "" {
		p.Finalizer, p.Ask = false, nil
		return true
	}
	f, is := judgeAttempt(p.situation)
	due := p.job.DeletionTimestamp.Add(stopFor)
	switch {
	case is:
		markLost(p, f)
		p.Finalizer, p.Ask = false, nil
	case !p.now.Before(due):
		abandonStop(p)
		p.Finalizer, p.Ask = false, nil
	default:
		p.wakeIn(due.Sub(p.now))
		wakeOnceSettled(p)
	}
	return true
}

// markLost has the head of a fate that was judged by its absence looked for past the cache.
func markLost(p *planner, f fate) {
	if f.gone {
		p.Lost = p.record.Bound
	}
}
