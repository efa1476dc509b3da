package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
)

// Crashed is what became of requests while services were changed and their operators were
// killed, each time after one write more.
type Crashed struct {
	// Changes is how many there were, Crashes how often an operator was killed.
	Changes int `json:"changes"`
	Crashes int `json:"crashes"`
	// Steps are, by sort of change, the writes after which an operator was killed, and how often
	// after each.
	Steps   map[string]map[int]int `json:"steps"`
	Seconds float64                `json:"seconds"`
	// Load is what clients saw from the first change to the last one.
	Load loadgen.Phase `json:"load"`
}

// Count is how many requests were sent, and how many were not answered as they should.
func (c Crashed) Count() (sent, failed int) {
	for _, count := range c.Load.Sorts {
		sent, failed = sent+count.Sent, failed+count.Failed
	}
	return sent, failed
}

// String is the count in one line.
func (c Crashed) String() string {
	sent, failed := c.Count()
	text := fmt.Sprintf("%d requests in %d upgrades, the operator killed %d times: %d lost, in %.0f s", sent, c.Changes, c.Crashes, failed, c.Seconds)
	for _, sort := range slices.Sorted(maps.Keys(c.Load.Sorts)) {
		took := c.Load.Sorts[sort].Latency
		text += fmt.Sprintf("; %s: half below %.1f ms, 999 of 1000 below %.0f ms, the longest %.0f ms", sort, took.P50, took.P999, took.Max)
	}
	return text
}

// Table tells after which writes operators were killed, and how long requests took.
func (c Crashed) Table() string {
	var b strings.Builder
	b.WriteString("| change | the operator was killed after write | times |\n|---|---|---|\n")
	for _, change := range slices.Sorted(maps.Keys(c.Steps)) {
		steps, times := slices.Sorted(maps.Keys(c.Steps[change])), 0
		for _, n := range c.Steps[change] {
			times += n
		}
		fmt.Fprintf(&b, "| %s | %s | %d |\n", change, ranges(steps), times)
	}
	b.WriteString("\n| request | sent | lost |")
	lines := "\n|---|---|---|"
	for _, bound := range loadgen.Bounds() {
		fmt.Fprintf(&b, " ≤ %g ms |", bound)
		lines += "---|"
	}
	b.WriteString(" more |" + lines + "---|\n")
	for _, sort := range slices.Sorted(maps.Keys(c.Load.Sorts)) {
		count := c.Load.Sorts[sort]
		fmt.Fprintf(&b, "| %s | %d | %d |", sort, count.Sent, count.Failed)
		for _, n := range count.Latency.Histogram {
			fmt.Fprintf(&b, " %d |", n)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// ranges are numbers in order, those that follow one another as one range.
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		if last == i {
			parts = append(parts, fmt.Sprint(numbers[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d to %d", numbers[i], numbers[last]))
		}
		i = last + 1
	}
	return strings.Join(parts, ", ")
}
