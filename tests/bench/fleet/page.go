package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// line is a sample for a person who watches the bench.
func (s Sample) line() string {
	text := fmt.Sprintf("round %d, %-6s %-8s: all ready %.1f s, status p50 %.1f s, p95 %.1f s, CPU %.2f ms, %.2f calls",
		s.Round, s.Layout, s.Contender, s.Times.AllReady, s.Times.P50, s.Times.P95, s.CPU, s.calls())
	if s.Memory.Resident > 0 {
		text += fmt.Sprintf(", %.0f MiB", s.Memory.Resident)
	}
	if s.Passes > 0 {
		text += fmt.Sprintf(", %.1f passes", s.Passes)
	}
	if s.Idle != nil {
		text += fmt.Sprintf(", at rest %.2f reads and %.2f writes per second", s.Idle.perSecond(s.Idle.Calls.Reads), s.Idle.perSecond(s.Idle.Calls.Writes))
	}
	if s.Deletion != nil {
		text += fmt.Sprintf(", %.2f calls and %.2f ms for each deletion", s.deletion(), s.Deletion.CPU)
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

// deletion are the writes and reads for one cluster that is deleted.
func (s Sample) deletion() float64 {
	return float64(sum(s.Deletion.Calls.Writes)+sum(s.Deletion.Calls.Reads)) / float64(s.Clusters)
}

func (i Idle) perSecond(counts map[string]int) float64 { return float64(sum(counts)) / i.Seconds }

// row is a figure of all contenders.
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
		{fmt.Sprintf("%d clusters, all ready", clusters), "≤ 1.15 × floor", "%.1f s", Spread, func(s Sample) float64 { return s.Times.AllReady }, true},
		{"status says ready, p50", "", "%.2f s", Spread, func(s Sample) float64 { return s.Times.P50 }, true},
		{"status says ready, p95", "", "%.2f s", Spread, func(s Sample) float64 { return s.Times.P95 }, true},
		{"CPU per cluster", "≤ 1.4 × floor", "%.2f ms", Spread, func(s Sample) float64 { return s.CPU }, true},
		{"the API server's CPU per cluster", "", "%.1f ms", Spread, func(s Sample) float64 { return s.ServerCPU }, true},
		{"API calls per cluster until ready, writes and events", "≤ 8", "%.2f", Spread, Sample.calls, true},
		{"API calls per cluster in the minute after", "", "%.2f", Spread, Sample.later, false},
		{"passes per cluster", "", "%.1f", Spread, func(s Sample) float64 { return orNaN(s.Passes) }, false},
		{"reads past the cache per cluster", "", "%.2f", Spread, func(s Sample) float64 { return float64(sum(s.Calls.Reads)) / float64(s.Clusters) }, false},
		{"calls for one more worker", "2", "%.2f", Spread, Sample.growth, true},
		{"memory, resident", memoryPromise(clusters), "%.0f MiB", Spread, func(s Sample) float64 { return s.Memory.Resident }, true},
		{"memory, anonymous", "", "%.0f MiB", Spread, func(s Sample) float64 { return s.Memory.Anonymous }, true},
		{"memory, peak", "", "%.0f MiB", Spread, func(s Sample) float64 { return s.Memory.Peak }, true},
		{"at rest: writes per second", "0", "%.2f", Spread, resting(func(i Idle) float64 { return i.perSecond(i.Calls.Writes) }), false},
		{"at rest: reads per second", "", "%.2f", Spread, resting(func(i Idle) float64 { return i.perSecond(i.Calls.Reads) }), false},
		{"at rest: CPU per second", "", "%.2f ms", Spread, resting(func(i Idle) float64 { return i.CPU }), false},
		{"all in one namespace: all ready", "", "%.1f s", One, func(s Sample) float64 { return s.Times.AllReady }, true},
		{"all in one namespace: CPU per cluster", "no change", "%.2f ms", One, func(s Sample) float64 { return s.CPU }, true},
		{"restart over all, until calm", "3 s", "%.1f s", Spread, restarted(func(r Restart) float64 { return r.Seconds }), false},
		{"restart over all, writes", "0", "%.0f", Spread, restarted(func(r Restart) float64 { return float64(sum(r.Calls.Writes)) }), false},
		{"restart over all, CPU per cluster", "", "%.2f ms", Spread, restarted(func(r Restart) float64 { return r.CPU }), false},
		{"restart over all, memory, resident", "", "%.0f MiB", Spread, restarted(func(r Restart) float64 { return r.Memory.Resident }), false},
		{"with jobs, services and idle policies: all ready", "", "%.1f s", Mixed, func(s Sample) float64 { return s.Times.AllReady }, false},
		{"… CPU per cluster", "", "%.2f ms", Mixed, func(s Sample) float64 { return s.CPU }, false},
		{"… API calls per cluster until ready", "", "%.2f", Mixed, Sample.calls, false},
		{"… memory, resident", memoryPromise(clusters), "%.0f MiB", Mixed, func(s Sample) float64 { return s.Memory.Resident }, false},
		{"… at rest: GETs of Secrets per second", "< 1", "%.2f", Mixed, resting(func(i Idle) float64 { return float64(i.Calls.Reads["get secrets"]) / i.Seconds }), false},
		{"… at rest: reads per second", "", "%.2f", Mixed, resting(func(i Idle) float64 { return i.perSecond(i.Calls.Reads) }), false},
		{"… at rest: writes per second", "0", "%.2f", Mixed, resting(func(i Idle) float64 { return i.perSecond(i.Calls.Writes) }), false},
		{"… at rest: CPU per second", "", "%.2f ms", Mixed, resting(func(i Idle) float64 { return i.CPU }), false},
		{"… restart over all, until calm", "", "%.1f s", Mixed, restarted(func(r Restart) float64 { return r.Seconds }), false},
		{"… restart over all, writes", "0", "%.0f", Mixed, restarted(func(r Restart) float64 { return float64(sum(r.Calls.Writes)) }), false},
		{"… API calls per deleted cluster", "", "%.2f", Mixed, deleted(Sample.deletion), false},
		{"all deleted, nothing left", "", "%.1f s", Spread, deleted(func(s Sample) float64 { return s.Deletion.Seconds }), true},
		{"API calls per deleted cluster", "≤ 1", "%.2f", Spread, deleted(Sample.deletion), false},
		{"CPU per deleted cluster", "", "%.2f ms", Spread, deleted(func(s Sample) float64 { return s.Deletion.CPU }), true},
		{"the API server's CPU per deleted cluster", "", "%.1f ms", Spread, deleted(func(s Sample) float64 { return s.Deletion.ServerCPU }), true},
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
	return map[int]string{500: "≤ 75 MiB", 2000: "≤ 180 MiB"}[clusters]
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

// resting reads a figure of the time at rest.
func resting(of func(Idle) float64) func(Sample) float64 {
	return func(s Sample) float64 {
		if s.Idle == nil {
			return math.NaN()
		}
		return of(*s.Idle)
	}
}

// deleted reads a figure of the deletion.
func deleted(of func(Sample) float64) func(Sample) float64 {
	return func(s Sample) float64 {
		if s.Deletion == nil {
			return math.NaN()
		}
		return of(s)
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
	r.table(&b)
	r.namespaces(&b)
	r.details(&b)
	return b.String()
}

// contenders are those that were measured, the floor first and then ours.
func (r Result) contenders() []string {
	var others []string
	for _, s := range r.Samples {
		if !slices.Contains(contenders(), s.Contender) && !slices.Contains(others, s.Contender) {
			others = append(others, s.Contender)
		}
	}
	return append(contenders(), others...)
}

// table compares the contenders: a column for each, and beside it the ratio to the floor.
func (r Result) table(b *strings.Builder) {
	b.WriteString("| medians | floor |")
	for _, contender := range r.contenders()[1:] {
		fmt.Fprintf(b, " %s | × floor |", strings.Replace(contender, Operator, "Heliostat", 1))
	}
	fmt.Fprintf(b, " promised |\n|---|---|%s---|\n", strings.Repeat("---|---|", len(r.contenders())-1))
	for _, row := range rows(r.Clusters) {
		floor, seen := r.median(Floor, row), false
		cells := figure(row.format, floor)
		for _, contender := range r.contenders()[1:] {
			value := r.median(contender, row)
			ratio := ""
			if row.ratio && !math.IsNaN(value) && floor > 0 {
				ratio = fmt.Sprintf("%.2f", value/floor)
			}
			cells += fmt.Sprintf(" | %s | %s", figure(row.format, value), ratio)
			seen = seen || !math.IsNaN(value)
		}
		if seen || !math.IsNaN(floor) {
			fmt.Fprintf(b, "| %s | %s | %s |\n", row.what, cells, row.promise)
		}
	}
}

// namespaces compares the layouts.
func (r Result) namespaces(b *strings.Builder) {
	for _, contender := range r.contenders() {
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
		if shown[s.Contender+s.Layout] || s.Layout == One {
			continue
		}
		shown[s.Contender+s.Layout] = true
		among := ""
		if s.Layout == Mixed {
			among = " with jobs, services and idle policies"
		}
		fmt.Fprintf(b, "\n## Calls of the %s%s, first round\n\n- per cluster: %s\n- in the minute after: %s\n- reads per cluster: %s\n- refused, per cluster: %s\n- for one more worker: %s\n"+
			"- reads for one more worker: %s\n",
			s.Contender, among, orNone(per(s.Calls.Writes, s.Clusters)), orNone(per(s.Later.Writes, s.Clusters)), orNone(per(s.Calls.Reads, s.Clusters)),
			orNone(per(s.Calls.Failed, s.Clusters)), orNone(per(s.Growth.Writes, s.Grown)), orNone(per(s.Growth.Reads, s.Grown)))
		if s.Idle != nil {
			fmt.Fprintf(b, "- at rest, in %.0f s: %s\n", s.Idle.Seconds, orNone(s.Idle.Calls.all()))
		}
		if s.Restart != nil {
			fmt.Fprintf(b, "- restarted: %s\n", orNone(s.Restart.Calls.all()))
		}
		if s.Deletion != nil {
			calls := s.Deletion.Calls
			fmt.Fprintf(b, "- per deleted cluster: %s\n- reads per deleted cluster: %s\n",
				orNone(per(calls.Writes, s.Clusters)), orNone(per(calls.Reads, s.Clusters)))
		}
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
