package main

import "time"

// Promised times that scenarios judge.
const (
	// promisedTold is how long after Kubernetes shows a cause a cluster's status names it.
	promisedTold = 10 * time.Second

	// promisedBusy is for a cluster that goes as a whole. promisedCutOff is 50 s until
	// Kubernetes calls a silent node unreachable, 60 s that its pods put up with that, and
	// a start.
	promisedBusy   = 10 * time.Second
	promisedCutOff = 150 * time.Second

	// GCS itself knows a demand after 0.1 to 0.9 s; Ray's own autoscaler took 4.2 s and 5.4 s, and
	// 12 to 14 s with an idle limit of 5 s, on two cores.
	promisedDemandHalf = 800 * time.Millisecond
	promisedDemandMost = 1500 * time.Millisecond
	promisedGivenBack  = 7 * time.Second
	promisedDecision   = 100 * time.Millisecond
	// promisedSelected is for a worker's start, promisedSlice for two that share two cores, and for two placement groups.
	promisedSelected = 60 * time.Second
	promisedSlice    = 120 * time.Second
	// promisedBack is 19.4 s until another operator may lead after one that could not say
	// that it still does, 10 s until a kubelet starts again what ended, and a start.
	promisedBack = 40 * time.Second
	// promisedAnew is for a head and a worker that start one after the other, about ten seconds
	// each, and a grace that was cut short.
	promisedAnew = 60 * time.Second

	promisedHeadLost = 30 * time.Second
	promisedFreed    = 10 * time.Second

	// promisedStoreLost is 20 s until Kubernetes takes the node for lost, 60 s that pods put
	// up with that, 30 s that a head in a Redis of the user's is waited for, and a start.
	promisedStoreLost = 150 * time.Second

	// promisedServeBack is until a version that sickens has no requests any more.
	promisedServeBack = 10 * time.Second
	// promisedServeCut is until a proxy that cannot be reached gets no more requests: it is asked
	// each 3 s, and three answers that do not come within 2 s each tell.
	promisedServeCut = 15 * time.Second
	// promisedServeInPlace is for two workers, each of which drains for 100 s at most, and the
	// 10 s that all has to be well.
	promisedServeInPlace = 5 * time.Minute
)
