// Package dashboards says what is measured of the dashboard proxy beside nginx, what is promised of it, and how it is
// handed from the program that measures it to those who judge it.
//
// In: figures of measure, and what wrk prints. Out: JSON, verdicts and sentences. Rates are requests or MiB in a second,
// times are in milliseconds, and memory is in MiB. It must never compare figures that were not measured in one run.
package dashboards

import (
	"fmt"
	"slices"

	"github.com/heliostat-dev/heliostat/tests/bench/portals"
)

// What is promised.
const (
	// PromisedSmall is the share of nginx's rate of small requests, and PromisedDownload that of its downloads.
	PromisedSmall    = 0.5
	PromisedDownload = 0.9
	// PromisedAdded is how many times as much time the proxy adds as nginx does, at p50.
	PromisedAdded = 1.5
	// PromisedMemory is how many times as much memory it holds with as many WebSockets.
	PromisedMemory = 2.0
	// PromisedReleased is within how many seconds all of them are released.
	PromisedReleased = 60.0
	// PromisedBusy is how many times as long the API's p99 is while uploads and WebSockets are at their limits.
	PromisedBusy = 1.5
)

// Uploads is how many are under way to one cluster at once at most.
const Uploads = 8

// Pair is one figure of both ends.
type Pair struct {
	Nginx float64 `json:"nginx"`
	Proxy float64 `json:"proxy"`
}

func (p Pair) ratio() float64 { return p.Proxy / p.Nginx }

// Rates is one round of requests to both ends in turn.
type Rates struct {
	// Small is requests a second, and Download is MiB a second of one download.
	Small    Pair `json:"small"`
	Download Pair `json:"download"`
	// Took is how long a request takes at p50, one at a time, and Direct how long it takes the head itself.
	Took   Pair    `json:"took"`
	Direct float64 `json:"direct"`
}

// added is how much time the proxy adds, of that which nginx adds.
func (r Rates) added() float64 { return (r.Took.Proxy - r.Direct) / (r.Took.Nginx - r.Direct) }

// Rated returns medians of rounds, and whether what is promised of them is kept.
func Rated(rounds []Rates) (small, download, added float64, isKept bool) {
	small = median(rounds, func(r Rates) float64 { return r.Small.ratio() })
	download = median(rounds, func(r Rates) float64 { return r.Download.ratio() })
	added = median(rounds, Rates.added)
	return small, download, added, small >= PromisedSmall && download >= PromisedDownload && added <= PromisedAdded
}

// Sockets is one round of WebSockets that are open and idle.
type Sockets struct {
	// Open is how many were open.
	Open int `json:"open"`
	// Idle is the memory before, Held with all open, and After a minute after they were closed.
	Idle  Pair `json:"idle"`
	Held  Pair `json:"held"`
	After Pair `json:"after"`
	// Released is after how many seconds no file of them was open any more.
	Released Pair `json:"released"`
}

// Held returns medians of rounds, and whether what is promised of them is kept.
func Held(rounds []Sockets) (memory, released float64, isKept bool) {
	memory = median(rounds, func(s Sockets) float64 { return s.Held.ratio() })
	for _, one := range rounds {
		released = max(released, one.Released.Proxy)
	}
	return memory, released, memory <= PromisedMemory && released <= PromisedReleased
}

// Busy is one round of requests to the API: while nothing else is asked for, and while all is that can be.
type Busy struct {
	Calm portals.Times `json:"calm"`
	Busy portals.Times `json:"busy"`
	// Uploads and Open are how many uploads and WebSockets were under way, and Refused how many were refused beyond.
	Uploads int `json:"uploads"`
	Open    int `json:"open"`
	Refused int `json:"refused"`
}

// Slowed returns the median of rounds, and whether what is promised of it is kept.
func Slowed(rounds []Busy) (times float64, isKept bool) {
	times = median(rounds, func(b Busy) float64 { return b.Busy.P99 / b.Calm.P99 })
	isFull := !slices.ContainsFunc(rounds, func(b Busy) bool {
		return b.Uploads < Uploads || b.Open == 0 || b.Refused < 2
	})
	return times, isFull && times <= PromisedBusy
}

// String is the round in one line.
func (s Sockets) String() string {
	return fmt.Sprintf("%d open: nginx %.0f MiB, the proxy %.0f MiB", s.Open, s.Held.Nginx, s.Held.Proxy)
}

func median[R any](rounds []R, of func(R) float64) float64 {
	all := make([]float64, 0, len(rounds))
	for _, one := range rounds {
		all = append(all, of(one))
	}
	return portals.Quantile(all, 0.5)
}
