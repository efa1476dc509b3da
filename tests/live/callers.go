package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/internal/attackers"
)

const (
	// PromisedBesideCallers is how much longer honest callers of the server wait beside hostile ones than beside calm ones, at the
	// 99th percentile.
	PromisedBesideCallers = 2.0
	// sameRate is how much more requests hostile attackers may send in a second than calm ones.
	sameRate = 1.1
	// WaitedAt begins what is broken where honest callers waited: the one promise about times.
	WaitedAt = "honest callers waited at "
)

// Callers is what honest callers of the server for portals and the server went through beside hostile ones.
type Callers struct {
	// Anonymous is how many connections without a token each listener had at once, Accounts how many accounts without rights there
	// were, and Seconds for how long; 0 is one round.
	Anonymous int `json:"anonymous"`
	Accounts  int `json:"accounts"`
	Seconds   int `json:"seconds"`
	// Calm is beside callers who were refused for want of a token, Beside beside hostile ones.
	Calm   Siege `json:"calm"`
	Beside Siege `json:"beside"`
	// Memory is the most that the server's control group took, MemoryLimit the chart's limit: MiB.
	Memory      float64 `json:"memory"`
	MemoryLimit float64 `json:"memoryLimit"`
	// HasEnded is that the server ended by itself; Kills is how many processes the kernel ended there for want of memory.
	HasEnded bool `json:"hasEnded"`
	Kills    int  `json:"kills"`
}

// Siege is one run of attackers, and how soon honest callers were answered meanwhile, by listener.
type Siege struct {
	attackers.Report
	Waits map[string]Waits `json:"waits"`
}

// Waits are times from a request of an honest caller until its answer: milliseconds. Failed counts those that were not
// answered, or by a refusal.
type Waits struct {
	Requests int     `json:"requests"`
	Failed   int     `json:"failed"`
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
}

// WaitsOf sums times up, of which some were of requests that failed.
func WaitsOf(milliseconds []float64, failed int) Waits {
	times := ReactionsOf(milliseconds)
	return Waits{Requests: times.Edits, Failed: failed, P50: times.P50, P99: times.P99}
}

// String is all of it in one line, but what each sort of attack was answered.
func (c Callers) String() string {
	var waits []string
	for _, listener := range slices.Sorted(maps.Keys(c.Beside.Waits)) {
		beside, calm := c.Beside.Waits[listener], c.Calm.Waits[listener]
		waits = append(waits, fmt.Sprintf("%s p50 %.0f ms and p99 %.0f ms, calm %.0f and %.0f ms, %d and %d requests, %d failed",
			listener, beside.P50, beside.P99, calm.P50, calm.P99, beside.Requests, calm.Requests, beside.Failed))
	}
	return fmt.Sprintf("honest callers beside %d hostile connections a listener and %d accounts for %.0f s, %.0f requests a second, calm %.0f: %s; memory %.0f MiB of %.0f; %d kills",
		c.Anonymous, c.Accounts, c.Beside.Seconds, c.Beside.PerSecond(), c.Calm.PerSecond(), strings.Join(waits, "; "), c.Memory, c.MemoryLimit, c.Kills)
}

// Broken says what of the promises was not kept.
func (c Callers) Broken() []string {
	var broken []string
	for _, sort := range attackers.Sorts() {
		if len(c.Beside.Answers[sort]) == 0 {
			broken = append(broken, "nobody sent "+sort)
		}
	}
	refused := c.Calm.Answers[attackers.Refused]
	if 2*(refused["401"]+refused["gRPC 16"]) <= c.Calm.Requests { // on a slow machine, some connections take too long
		broken = append(broken, fmt.Sprintf("calm attackers were answered %v", refused))
	}
	for _, listener := range attackers.Listeners() {
		calm, beside := c.Calm.Waits[listener], c.Beside.Waits[listener]
		switch {
		case calm.Requests == 0 || beside.Requests == 0:
			broken = append(broken, "no honest caller was at "+listener)
		case calm.Failed+beside.Failed > 0:
			broken = append(broken, "honest callers were not answered at "+listener)
		}
		if beside.P99 > PromisedBesideCallers*calm.P99 {
			broken = append(broken, WaitedAt+listener)
		}
	}
	if c.Seconds > 0 && c.Calm.PerSecond() > sameRate*c.Beside.PerSecond() {
		broken = append(broken, "calm attackers sent more than hostile ones")
	}
	if c.HasEnded || c.Kills > 0 {
		broken = append(broken, "the server ended")
	}
	if c.Memory == 0 || c.Memory > PromisedMemory*c.MemoryLimit {
		broken = append(broken, "the server took much memory")
	}
	return broken
}
