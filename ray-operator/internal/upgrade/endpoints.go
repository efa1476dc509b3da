package upgrade

// mostPods bounds what Endpoints reckons with; no Kubernetes cluster has as many.
const mostPods = 200_000

// Endpoints chooses how many pods of each side take requests, where each endpoint gets as many
// as any other: a of the active side's and c of the candidate's, out of those that could. A
// pod that is not chosen is not lost: it stands by.
//
// The candidate's share of the endpoints is at least traffic, in percent, and as little more
// as can be; among equal shares the one with the most endpoints is taken. Together they are
// never fewer than the larger side alone, so that none gets more requests than if
// there were no upgrade, unless the candidate has too few pods for both: then they
// are never fewer than the candidate's. Without a pod of the candidate the active side takes
// all; without one of the active side the candidate does, but not with a traffic of 0: it may
// never have been healthy.
func Endpoints(traffic, active, candidate int) (a, c int) {
	traffic, active, candidate = percent(traffic), pods(active), pods(candidate)
	switch {
	case candidate == 0 || traffic == 0:
		return active, 0
	case traffic == whole:
		return 0, candidate
	}
	if a, c = nearest(traffic, active, candidate, max(active, candidate)); c > 0 {
		return a, c
	}
	return nearest(traffic, active, candidate, candidate)
}

// nearest is the mix of at least so many endpoints whose share is the least that is enough,
// and 0 of each where there is none.
func nearest(traffic, active, candidate, least int) (a, c int) {
	for some := range active + 1 {
		enough := (traffic*some + whole - traffic - 1) / (whole - traffic) // rounded up
		more := max(enough, least-some)
		// A share is less where there are fewer of the candidate's for each of the active side's.
		// Where it is the same, the later mix has more endpoints.
		if more <= candidate && more*a <= c*some {
			a, c = some, more
		}
	}
	return a, c
}

func pods(n int) int { return min(max(n, 0), mostPods) }
