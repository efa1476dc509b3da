package main

import (
	"fmt"
	"math"
	"strings"
)

// line is a sample for whoever watches the bench.
func (s Sample) line() string {
	text := fmt.Sprintf("round %d, %-6s %-8s: all ready %.1f s, status p50 %.1f s, p95 %.1f s, CPU %.2f ms, %.2f calls",
		s.Round, s.Layout, s.Contender, s.Times.AllReady, s.Times.P50, s.Times.P95, s.CPU, s.calls())
	if s.Memory.Resident > 0 {
		text += fmt.Sprintf(", %.0f MiB", s.Memory.Resident)
	}
	if s.Passes > 0 {
		text += fmt.Sprintf(", %.1f passes", s.Passes)
	}
	if s.Restart != nil {
		text += fmt.Sprintf(", restart %.1f s with %d writes", s.Restart.Seconds, sum(s.Restart.Calls.Writes))
	}
	return text
}

// budgets are made a minute after a head is ready: in a large fleet before others are.
const budgets = "create poddisruptionbudgets"

// calls are the writes per cluster until it is ready, events included.
func (s Sample) calls() float64 {
	return float64(sum(s.Calls.Writes)-s.Calls.Writes[budgets]) / float64(s.Clusters)
}

// later are the writes per cluster that follow once it has been ready for a while.
func (s Sample) later() float64 {
	return float64(sum(s.Later.Writes)+s.Calls.Writes[budgets]) / float64(s.Clusters)
}

// growth are the writes for one more worker.
func (s Sample) growth() float64 { return float64(sum(s.Growth.Writes)) / float64(s.Grown) }

// row is a figure of both contenders.
type row struct {
	what, promise string
	// format is of one figure, with its unit.
	format string
	layout string
	of     func(Sample) float64
	// ratio is shown where more is simply worse.
	ratio bool
}

func rows(clusters int) []row {
	return []row{
		{fmt.Sprintf("%d clusters, all ready", clusters), "≤ 1.1 × floor", "%.1f s", Spread, func(s Sample) float64 { return s.Times.AllReady }, true},
		{"status says ready, p50", "", "%.2f s", Spread, func(s Sample) float64 { return s.Times.P50 }, true},
		{"status says ready, p95", "", "%.2f s", Spread, func(s Sample) float64 { return s.Times.P95 }, true},
		{"CPU per cluster", "≤ 1.3 × floor", "%.2f ms", Spread, func(s Sample) float64 { return s.CPU }, true},
		{"the API server's CPU per cluster", "", "%.1f ms", Spread, func(s Sample) float64 { return s.ServerCPU }, true},
		{"API calls per cluster until ready, writes and events", "≤ 10", "%.2f", Spread, Sample.calls, true},
		{"API calls per cluster in the minute after", "", "%.2f", Spread, Sample.later, false},
		{"passes per cluster", "", "%.1f", Spread, func(s Sample) float64 { return orNaN(s.Passes) }, false},
		{"reads past the cache per cluster", "", "%.2f", Spread, func(s Sample) float64 { return float64(sum(s.Calls.Reads)) / float64(s.Clusters) }, false},
		{"calls for one more worker", "2", "%.2f", Spread, Sample.growth, true},
		{"memory, resident", memoryPromise(clusters), "%.0f MiB", Spread, func(s Sample) float64 { return s.Memory.Resident }, true},
		{"memory, anonymous", "", "%.0f MiB", Spread, func(s Sample) float64 { return s.Memory.Anonymous }, true},
		{"memory, peak", "", "%.0f MiB", Spread, func(s Sample) float64 { return s.Memory.Peak }, true},
		{"all in one namespace: all ready", "", "%.1f s", One, func(s Sample) float64 { return s.Times.AllReady }, true},
		{"all in one namespace: CPU per cluster", "no change", "%.2f ms", One, func(s Sample) float64 { return s.CPU }, true},
		{"restart over all, until calm", "3 s", "%.1f s", Spread, restarted(func(r Restart) float64 { return r.Seconds }), false},
		{"restart over all, writes", "0", "%.0f", Spread, restarted(func(r Restart) float64 { return float64(sum(r.Calls.Writes)) }), false},
		{"restart over all, CPU per cluster", "", "%.2f ms", Spread, restarted(func(r Restart) float64 { return r.CPU }), false},
		{"restart over all, memory, resident", "", "%.0f MiB", Spread, restarted(func(r Restart) float64 { return r.Memory.Resident }), false},
	}
}

// orNaN is for a figure that a contender does not have.
func orNaN(value float64) float64 {
	if value == 0 {
		return math.NaN()
	}
	return value
}

func memoryPromise(clusters int) string {
	return map[int]string{500: "≤ 80 MiB", 2000: "≤ 200 MiB"}[clusters]
}

// restarted reads a figure of the restart; a contender without one has no such sample.
func restarted(of func(Restart) float64) func(Sample) float64 {
	return func(s Sample) float64 {
		if s.Restart == nil {
			return math.NaN()
		}
		return of(*s.Restart)
	}
}

// median is over the rounds; NaN where there is none.
func (r Result) median(contender string, row row) float64 {
	var values []float64
	for _, s := range r.Samples {
		if s.Contender == contender && s.Layout == row.layout {
			values = append(values, row.of(s))
		}
	}
	return quantile(values, 0.5)
}

// page is the result as Markdown.
func (r Result) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Measured: a fleet of %d clusters\n\nMade by `%s` from [fleet-%d.json](fleet-%d.json). Commit %s, %s, %d cores, %d GiB, Linux %s. "+
		"How, and what the rows mean: [benchmarks](../benchmarks.md).\n\n",
		r.Clusters, r.Command, r.Clusters, r.Clusters, r.Commit, r.Date, r.Machine.Cores, r.Machine.MemoryGiB, r.Machine.Kernel)
	b.WriteString("| medians | floor | Heliostat | ratio | promised |\n|---|---|---|---|---|\n")
	for _, row := range rows(r.Clusters) {
		floor, operator := r.median(Floor, row), r.median(Operator, row)
		if math.IsNaN(floor) && math.IsNaN(operator) {
			continue
		}
		ratio := ""
		if row.ratio && !math.IsNaN(floor) && !math.IsNaN(operator) && floor > 0 {
			ratio = fmt.Sprintf("%.2f", operator/floor)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.what, figure(row.format, floor), figure(row.format, operator), ratio, row.promise)
	}
	r.namespaces(&b)
	r.details(&b)
	return b.String()
}

// namespaces compares the layouts.
func (r Result) namespaces(b *strings.Builder) {
	for _, contender := range []string{Floor, Operator} {
		cpu := func(layout string) float64 {
			return r.median(contender, row{layout: layout, of: func(s Sample) float64 { return s.CPU }})
		}
		if change := cpu(One)/cpu(Spread) - 1; !math.IsNaN(change) {
			fmt.Fprintf(b, "\nAll in one namespace, the %s's CPU changes by %+.0f %%.\n", contender, 100*change)
		}
	}
}

// details are the calls and the runs one by one.
func (r Result) details(b *strings.Builder) {
	shown := map[string]bool{}
	for _, s := range r.Samples {
		if shown[s.Contender] || s.Layout != Spread {
			continue
		}
		shown[s.Contender] = true
		fmt.Fprintf(b, "\n## Calls of the %s, first round\n\n- per cluster: %s\n- in the minute after: %s\n- reads per cluster: %s\n- refused, per cluster: %s\n- for one more worker: %s\n",
			s.Contender, orNone(per(s.Calls.Writes, s.Clusters)), orNone(per(s.Later.Writes, s.Clusters)), orNone(per(s.Calls.Reads, s.Clusters)),
			orNone(per(s.Calls.Failed, s.Clusters)), orNone(per(s.Growth.Writes, s.Grown)))
	}
	b.WriteString("\n## Runs, in their order\n\n" +
		"| round | layout | | all ready | p50 | p95 | CPU | server's CPU | calls |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range r.Samples {
		fmt.Fprintf(b, "| %d | %s | %s | %.1f s | %.2f s | %.2f s | %.2f ms | %.1f ms | %.2f |\n",
			s.Round, s.Layout, s.Contender, s.Times.AllReady, s.Times.P50, s.Times.P95, s.CPU, s.ServerCPU, s.calls())
	}
}

func figure(format string, value float64) string {
	if math.IsNaN(value) {
		return ""
	}
	return fmt.Sprintf(format, value)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
