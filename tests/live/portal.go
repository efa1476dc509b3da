package live

import (
	"fmt"
	"slices"
)

// What specs of the server for portals report and make accept reads: labels of specs, and names of entries.
const (
	// PortalExamplesLabel is of the specs that run the programs of examples/portal, and FollowedEntry of what the Python
	// client copied.
	PortalExamplesLabel, FollowedEntry = "portal-examples", "output that was followed"
	// PortalWatchesLabel is of the spec of Kubernetes' own clients, and WatchedEntry of what they saw.
	PortalWatchesLabel, WatchedEntry = "portal-watches", "changes that were watched"
	// PortalSignInLabel is of the spec of tokens of an issuer that the API server does not know.
	PortalSignInLabel = "portal-sign-in"
	// PortalNetworkLabel is of the spec of what the server reaches.
	PortalNetworkLabel = "portal-network"
	// PortalVerbsLabel is of the specs of verbs on what runs.
	PortalVerbsLabel = "portal-verbs"
	// PortalOutputsLabel is of the spec of large outputs, and OutputsEntry of how fast they were.
	PortalOutputsLabel, OutputsEntry = "portal-outputs", "large outputs"
)

// What is promised of large outputs: at least so much of the head's own rate, and at most so much of the head's CPU for one
// reader.
const (
	PromisedRate = 0.8
	PromisedCPU  = 1.1
)

// Followed is what a client copied of an output while the server was killed.
type Followed struct {
	Lines  int  `json:"lines"`
	Bytes  int  `json:"bytes"`
	Kills  int  `json:"kills"`
	IsSame bool `json:"isSame"`
}

// String is the copy in one line.
func (f Followed) String() string {
	what := "byte for byte the file"
	if !f.IsSame {
		what = "other than the file"
	}
	return fmt.Sprintf("%d lines, %d bytes, the server killed %d times: %s", f.Lines, f.Bytes, f.Kills, what)
}

// Watched is how many changes were made while clients watched, and how many of them each saw.
type Watched struct {
	Seconds float64        `json:"seconds"`
	Made    int            `json:"made"`
	Seen    map[string]int `json:"seen"`
}

// String is the count in one line.
func (w Watched) String() string {
	return fmt.Sprintf("%d changes in %.0f s, seen by %v", w.Made, w.Seconds, w.Seen)
}

// Outputs is how a large output came, in rounds that took turns.
type Outputs struct {
	Bytes int64 `json:"bytes"`
	// Head and Server are MB per second, from the head itself and through the server.
	Head   []float64 `json:"head"`
	Server []float64 `json:"server"`
	// Readers read at once, and Requests is how many requests for the output the head had for all of them in each round.
	Readers  int   `json:"readers"`
	Requests []int `json:"requests"`
	// One and Many are the head's CPU-seconds in as much time, for one reader and for all.
	One  []float64 `json:"one"`
	Many []float64 `json:"many"`
}

// Rate is the server's rate as a share of the head's, by their medians.
func (o Outputs) Rate() float64 { return middle(o.Server) / middle(o.Head) }

// Load is the head's CPU for all readers as a share of that for one, by their medians.
func (o Outputs) Load() float64 { return middle(o.Many) / middle(o.One) }

// middle returns the median.
func middle(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// String is what was measured in one line.
func (o Outputs) String() string {
	return fmt.Sprintf("%d MB at %.0f MB/s, from the head itself at %.0f MB/s: %.2f; requests for %d readers %v; the head's CPU %.2f s, for one reader %.2f s: %.2f; medians of %d",
		o.Bytes/1e6, middle(o.Server), middle(o.Head), o.Rate(), o.Readers, o.Requests, middle(o.Many), middle(o.One), o.Load(), len(o.Head))
}
