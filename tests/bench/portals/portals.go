// Package portals says what is measured of the server for portals beside the API server, what is promised of it, and how
// it is handed from the program that measures it to those who judge it.
//
// In: figures of measure. Out: JSON, verdicts and sentences. Times are in milliseconds, memory is in MiB, and CPU is
// processor time in seconds of user and kernel mode. It must never compare figures that were not measured in one run.
package portals

import (
	"fmt"
	"math"
	"slices"
)

// Environment variables by which make accept asks tests for more than they do by default.
const (
	// StreamsVariable names that with the number of streams under which servers are replaced.
	StreamsVariable = "HELIOSTAT_STREAMS"
	// FleetVariable names that with the number of clusters that get to know of a server.
	FleetVariable = "HELIOSTAT_FLEET"
)

// What is promised.
const (
	// PromisedPageMs is how long the first page takes at most, at p99, whatever the API server takes.
	PromisedPageMs = 50.0
	// PromisedGet is how many times as long a get takes that is passed through, at p50.
	PromisedGet = 1.5
	// PromisedDelayMs is how late a change comes at p99, from when its write is sent.
	PromisedDelayMs = 1000.0
	// PromisedWatchCPU is the share of what the API server uses for the same watches.
	PromisedWatchCPU = 0.25
	// PromisedMemory is how many times as much as a program that holds the same informers.
	PromisedMemory = 1.3
	// PromisedWatcherKiB is for each watcher.
	PromisedWatcherKiB = 64.0
)

// Times are quantiles of times.
type Times struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// String returns them as tables have them.
func (t Times) String() string { return fmt.Sprintf("%.1f, %.1f, %.1f", t.P50, t.P99, t.Max) }

// TimesOf returns quantiles of times.
func TimesOf(all []float64) Times {
	return Times{P50: Quantile(all, 0.5), P99: Quantile(all, 0.99), Max: Quantile(all, 1)}
}

// Quantile returns the smallest value that at least the share q of all values do not exceed, and NaN where there is none.
func Quantile(all []float64, q float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// median is of a figure over rounds.
func median[R any](rounds []R, of func(R) float64) float64 {
	all := make([]float64, 0, len(rounds))
	for _, one := range rounds {
		all = append(all, of(one))
	}
	return Quantile(all, 0.5)
}

// Pair is the same request sent to both ends in turn.
type Pair struct {
	Server Times `json:"server"`
	Direct Times `json:"direct"`
}

// Latency is one round of requests.
type Latency struct {
	Objects  int `json:"objects"`
	Requests int `json:"requests"`
	// Page is the first page of 100 lines, and the API server's list of 100 clusters. Get is of one cluster.
	Page Pair `json:"page"`
	Get  Pair `json:"get"`
}

// Page returns the medians of the rounds of pages, and whether what is promised of them is kept.
func Page(rounds []Latency) (server, direct Times, isKept bool) {
	server, direct = medians(rounds, func(l Latency) Pair { return l.Page })
	return server, direct, server.P99 <= direct.P99 && server.P99 < PromisedPageMs
}

// Get returns the ratio of the medians of gets, and whether what is promised of it is kept.
func Get(rounds []Latency) (ratio float64, isKept bool) {
	server, direct := medians(rounds, func(l Latency) Pair { return l.Get })
	ratio = server.P50 / direct.P50
	return ratio, ratio <= PromisedGet
}

func medians(rounds []Latency, of func(Latency) Pair) (server, direct Times) {
	times := func(end func(Pair) Times) Times {
		return Times{
			P50: median(rounds, func(l Latency) float64 { return end(of(l)).P50 }), P99: median(rounds, func(l Latency) float64 { return end(of(l)).P99 }),
			Max: median(rounds, func(l Latency) float64 { return end(of(l)).Max }),
		}
	}
	return times(func(p Pair) Times { return p.Server }), times(func(p Pair) Times { return p.Direct })
}

// Phase is one stretch of changes.
type Phase struct {
	// Seconds that it took, and Changes that were made in it.
	Seconds float64 `json:"seconds"`
	Changes int     `json:"changes"`
	// APIServerCPU and ServerCPU are what the two used.
	APIServerCPU float64 `json:"apiServerCPU"`
	ServerCPU    float64 `json:"serverCPU"`
	// Events is how many each watcher got, on average, and Delays how late they came.
	Events float64 `json:"events"`
	Delays Times   `json:"delays"`
	// Broken is how often the other end broke a watch off, as the API server does with those that it cannot keep up with.
	Broken int `json:"broken"`
}

// Watching is one round of the same changes three times: one caller watches the API server, the callers watch it, they watch
// the server.
type Watching struct {
	Watchers int   `json:"watchers"`
	Alone    Phase `json:"alone"`
	Direct   Phase `json:"direct"`
	Server   Phase `json:"server"`
}

// PerEvent are the API server's CPU for its watches and the server's for the same ones, in microseconds for each event that a
// watcher got. What the changes themselves cost the API server counts for neither; all that the server uses counts for it.
func (w Watching) PerEvent() (direct, server float64) {
	return 1e6 * w.beside(w.Direct) / w.Direct.all(w.Watchers), 1e6 * w.Server.ServerCPU / w.Server.all(w.Watchers)
}

// Reviews is what the API server uses for a server's callers, in microseconds for each event: it is asked for their rights again
// and again.
func (w Watching) Reviews() float64 { return 1e6 * w.beside(w.Server) / w.Server.all(w.Watchers) }

// beside is what the API server uses in a phase beside what the changes cost it.
func (w Watching) beside(of Phase) float64 {
	return of.APIServerCPU - w.Alone.APIServerCPU*float64(of.Changes)/float64(w.Alone.Changes)
}

// Rate is how many changes were made each second.
func (p Phase) Rate() float64 { return float64(p.Changes) / p.Seconds }

// all is how many events all watchers got.
func (p Phase) all(watchers int) float64 { return p.Events * float64(watchers) }

// Watched returns the share of CPU and the delay at p99, medians of rounds, and whether what is promised is kept.
func Watched(rounds []Watching) (share, delay float64, isKept bool) {
	share = median(rounds, func(w Watching) float64 {
		direct, server := w.PerEvent()
		return server / direct
	})
	delay = median(rounds, func(w Watching) float64 { return w.Server.Delays.P99 })
	isWhole := !slices.ContainsFunc(rounds, func(w Watching) bool {
		return w.Server.Events < float64(w.Server.Changes) || w.Server.Broken > 0
	})
	return share, delay, isWhole && share <= PromisedWatchCPU && delay < PromisedDelayMs
}

// Holding is one round of memory, in MiB.
type Holding struct {
	Objects  int `json:"objects"`
	Pods     int `json:"pods"`
	Watchers int `json:"watchers"`
	// Informers is what a program with the same informers holds, Server the server beside it, and Watched the server with its
	// watchers.
	Informers float64 `json:"informers"`
	Server    float64 `json:"server"`
	Watched   float64 `json:"watched"`
}

// WatcherKiB is for each watcher.
func (h Holding) WatcherKiB() float64 { return (h.Watched - h.Server) / float64(h.Watchers) * 1024 }

// Held returns medians of rounds, and whether what is promised of them is kept.
func Held(rounds []Holding) (ratio, watcherKiB float64, isKept bool) {
	ratio = median(rounds, func(h Holding) float64 { return h.Server / h.Informers })
	watcherKiB = median(rounds, Holding.WatcherKiB)
	return ratio, watcherKiB, ratio <= PromisedMemory && watcherKiB <= PromisedWatcherKiB
}

// String is the round in one line.
func (h Holding) String() string {
	return fmt.Sprintf("informers %.0f MiB, the server %.0f MiB, with %d watchers %.0f MiB", h.Informers, h.Server, h.Watchers, h.Watched)
}
