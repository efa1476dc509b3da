// Package jobs says what is measured of ClusterJobs on a real API server with fake heads,
// what is promised of it, and how it is handed from the tests that measure it to those who
// show it.
//
// In: figures of tests/integration. Out: a file of JSON where HELIOSTAT_RESULTS names one,
// and sentences. Times are in seconds or, where a name says so, milliseconds. It must never
// judge what depends on the machine where nobody asked for it: a test that shares its
// machine prints such figures, and make accept judges them.
package jobs

import (
	"encoding/json"
	"fmt"
	"os"
)

// ResultsVariable names the environment variable with the path of the file that a test writes its
// figures to. Without it they are only printed.
const ResultsVariable = "HELIOSTAT_RESULTS"

// CostVariable names the environment variable with the number of jobs whose cost is measured, and of clusters that hang
// beside them.
const CostVariable = "HELIOSTAT_JOBS"

// What is promised of a job through its whole life, events apart. The same jobs took 23 to
// 24 calls and 27 to 32 ms of CPU with KubeRay 1.6.
const (
	PromisedCalls = 12.0
	PromisedCPUMs = 14.0
	// Unchanged is by how much a time may differ beside clusters that hang, as a ratio of
	// medians.
	Unchanged = 1.25
)

// Cost is what jobs cost the operator.
type Cost struct {
	Jobs int `json:"jobs"`
	// Calls are requests to the API server for each job, Kinds how many of each sort for all.
	Calls float64        `json:"calls"`
	Kinds map[string]int `json:"kinds"`
	// CPUMs is the operator's own time for each job, RSSMiB and PeakMiB its memory at the
	// end and at most.
	CPUMs   float64 `json:"cpuMs"`
	RSSMiB  float64 `json:"rssMiB"`
	PeakMiB float64 `json:"peakMiB"`
	// ReconcileMs is the mean time of a reconcile of a ClusterJob, SubmissionMs the median
	// from the creation of a job to its submission as the head saw it.
	ReconcileMs  float64 `json:"reconcileMs"`
	SubmissionMs float64 `json:"submissionMs"`
	// CreateMs is the median time that the API server took for the creation of a job: what
	// the machine was like meanwhile.
	CreateMs float64 `json:"createMs"`
}

// String is the cost in one line.
func (c Cost) String() string {
	return fmt.Sprintf("%d jobs: %.1f API calls and %.1f ms of CPU each, %.0f MiB (%.0f at most); a reconcile takes %.2f ms, a submission comes after %.0f ms, a creation takes %.1f ms",
		c.Jobs, c.Calls, c.CPUMs, c.RSSMiB, c.PeakMiB, c.ReconcileMs, c.SubmissionMs, c.CreateMs)
}

// Costs are those of jobs alone, and beside clusters whose job API hangs.
type Costs struct {
	Alone  Cost `json:"alone"`
	Beside Cost `json:"beside"`
	Hung   int  `json:"hung"`
}

// Ratios are by how much a reconcile and a submission take longer beside what hangs.
func (c Costs) Ratios() (reconcile, submission float64) {
	return c.Beside.ReconcileMs / c.Alone.ReconcileMs, c.Beside.SubmissionMs / c.Alone.SubmissionMs
}

// Slower is by how much the API server itself was slower meanwhile, 1 where it was not.
func (c Costs) Slower() float64 { return max(1, c.Beside.CreateMs/c.Alone.CreateMs) }

// Submissions is how jobs came through all that can befall them, counted by effect.
type Submissions struct {
	Jobs    int     `json:"jobs"`
	Seconds float64 `json:"seconds"`
	// Runs are starts of processes on all heads that ever were, Doubled those beyond the
	// first of an attempt, Lost the attempts that did not run and whose status does not say
	// why.
	Runs    int `json:"runs"`
	Doubled int `json:"doubled"`
	Lost    int `json:"lost"`
	// Wrong are jobs whose status is not what their heads know, in words.
	Wrong []string `json:"wrong,omitempty"`
	// Faults, Attempts and Ends count what befell requests, operators, heads, clusters and
	// jobs; how attempts ended; and how jobs did.
	Faults   map[string]int `json:"faults"`
	Attempts map[string]int `json:"attempts"`
	Ends     map[string]int `json:"ends"`
}

// String is the count in one line.
func (s Submissions) String() string {
	return fmt.Sprintf("%d jobs, %d runs: %d doubled, %d lost, %d otherwise wrong, in %.0f s", s.Jobs, s.Runs, s.Doubled, s.Lost, len(s.Wrong), s.Seconds)
}

// Save writes figures to the file that HELIOSTAT_RESULTS names, if it names one.
func Save(figures any) error {
	path := os.Getenv(ResultsVariable)
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return fmt.Errorf("print the figures: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the figures to %s: %w", path, err)
	}
	return nil
}
