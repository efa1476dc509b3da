package jobs

import "time"

// How often a head is asked about a run.
const (
	// shortest is the pause after something has changed. From then on a pause is a tenth of
	// the time since, so a change is seen a tenth late at most.
	shortest = 250 * time.Millisecond
	// longest is the longest pause, unless a head has more runs than can be asked about in
	// that time without being a load to it: share is each one's part, and a look takes Ray's
	// job API a few milliseconds.
	longest = 3 * time.Second
	share   = 20 * time.Millisecond
)

// How often a head that does not answer is asked.
const (
	// starting is for one that has not answered yet: its pod runs, its job API comes up
	// within seconds, and refuses connections until then at no cost. After half a minute the
	// pause grows to a sixtieth of the time that it has taken.
	starting = 500 * time.Millisecond
	// again is the pause after the first failure; each further one is twice as long, up to
	// most.
	again = 500 * time.Millisecond
	most  = 5 * time.Second
	// hangs is what a call takes at least that failed because the head hangs.
	hangs = time.Second
)

// How often it is tried to stop a run, and to read its output.
const (
	// stopAgain is the pause after the first time; each further one is twice as long, up to
	// stopMost.
	stopAgain = time.Second
	stopMost  = 10 * time.Second
	// tails is how often the output of a run that is over is tried to be read, and before it
	// the report of a gang.
	tails = 3
)

// How often the report of a gang that runs is read.
const (
	// reportEvery is the shortest time between two reads, and the pause of a head after the
	// first one that failed. Each further one makes that twice as long, up to reportMost: a
	// GCS that hangs holds up all runs of its head for the time of a call.
	reportEvery = 2 * time.Second
	reportMost  = 30 * time.Second
)

// double is a pause that doubles with every time.
func double(first time.Duration, times int, most time.Duration) time.Duration {
	return min(first<<min(times-1, 10), most)
}

// backOff is how long a head that failed is left alone.
func (a *asker) backOff(now time.Time) time.Duration {
	if a.heard.At.IsZero() && !a.hung[toMeet] {
		return min(max(now.Sub(a.began)/60, starting), most)
	}
	return double(again, a.failures, most)
}

// pause is how long a run is left alone whose head knows of nothing to be done, among as
// many runs.
func (p *progress) pause(now time.Time, runs int) time.Duration {
	return min(max(now.Sub(p.changed)/10, shortest), max(longest, time.Duration(runs)*share))
}
