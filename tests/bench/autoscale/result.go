package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// Answer is a decision for a snapshot.
type Answer struct {
	Name string `json:"name"`
	// Ray is its version, where Ray decided.
	Ray string `json:"ray,omitempty"`
	// Seconds is the CPU time of a decision, TooLong the limit where it was not done by then.
	Seconds float64 `json:"seconds,omitempty"`
	TooLong float64 `json:"tooLong,omitempty"`
	// Asked is how many nodes more of each kind are asked for, Left how many requests and
	// placement groups got no place.
	Asked map[string]int `json:"asked,omitempty"`
	Left  int            `json:"left"`
}

// Size is how large a snapshot is.
type Size struct {
	Nodes   int `json:"nodes"`
	Pending int `json:"pending"`
	Shapes  int `json:"shapes"`
	Gangs   int `json:"gangs"`
}

// Result is what a run showed.
type Result struct {
	Command string `json:"command"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Cores   int    `json:"cores"`
	// Sizes are by snapshot, Kinds what a node of each kind has.
	Sizes map[string]Size               `json:"sizes"`
	Kinds map[string]map[string]float64 `json:"kinds"`
	// Rays are Ray's decisions, Ours ours before Ray was timed, Again after that.
	Rays        []Answer     `json:"rays"`
	Ours        []Answer     `json:"ours"`
	Again       []Answer     `json:"again"`
	Differences []Difference `json:"differences"`
}

// learn reads how large a snapshot is, and what its nodes have.
func (r *Result) learn(name, folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "node_types.json"))
	if err != nil {
		return fmt.Errorf("read what the snapshot %s is like: %w", name, err)
	}
	var facts struct {
		Case  Size `json:"case"`
		Types map[string]struct {
			Resources map[string]float64 `json:"resources"`
		} `json:"node_types"`
	}
	if err := json.Unmarshal(text, &facts); err != nil {
		return fmt.Errorf("read what the snapshot %s is like: %w", name, err)
	}
	r.Sizes[name] = facts.Case
	for kind, has := range facts.Types {
		r.Kinds[kind] = has.Resources
	}
	return nil
}

// total is how much of a resource the nodes have that are asked for.
func (r *Result) total(a *Answer, resource string) float64 {
	all := 0.0
	for kind, n := range a.Asked {
		all += r.Kinds[kind][resource] * float64(n)
	}
	return all
}

func (a *Answer) nodes() int {
	total := 0
	for _, n := range a.Asked {
		total += n
	}
	return total
}

// took is the time of a decision in words.
func (a *Answer) took() string {
	switch {
	case a.TooLong > 0:
		return fmt.Sprintf("not done after %.0f s", a.TooLong)
	case a.Seconds < 1:
		return fmt.Sprintf("%.1f ms", a.Seconds*1000)
	default:
		return fmt.Sprintf("%.1f s", a.Seconds)
	}
}

// kinds lists the nodes that are asked for.
func (a *Answer) kinds() string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(a.Asked)) {
		all = append(all, fmt.Sprintf("%d %s", a.Asked[kind], kind))
	}
	return strings.Join(all, ", ")
}

// named is the answer for a snapshot, nil if there is none.
func named(answers []Answer, name string) *Answer {
	if at := slices.IndexFunc(answers, func(a Answer) bool { return a.Name == name }); at >= 0 {
		return &answers[at]
	}
	return nil
}

// comparison is the table of both.
func (r *Result) comparison() string {
	var text strings.Builder
	text.WriteString("| snapshot | Ray's own | ours | ratio | nodes: Ray's own | ours | ratio | CPUs: Ray's own | ours | GPUs: Ray's own | ours |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range r.Rays {
		theirs, size := &r.Rays[i], r.Sizes[r.Rays[i].Name]
		ours, again := named(r.Ours, theirs.Name), named(r.Again, theirs.Name)
		if ours == nil || again == nil {
			continue
		}
		cells := []string{
			fmt.Sprintf("%s: %d nodes, %d pending in %d shapes, %d gangs", theirs.Name, size.Nodes, size.Pending, size.Shapes, size.Gangs),
			theirs.took(), ours.took() + ", " + again.took(), "", "", fmt.Sprint(ours.nodes()), "",
			"", fmt.Sprint(r.total(ours, "CPU")), "", fmt.Sprint(r.total(ours, "GPU")),
		}
		if theirs.TooLong == 0 {
			cells[3] = fmt.Sprintf("%.0f ×", theirs.Seconds/ours.Seconds)
			cells[4], cells[6] = fmt.Sprint(theirs.nodes()), fmt.Sprintf("%.2f", float64(ours.nodes())/float64(theirs.nodes()))
			cells[7], cells[9] = fmt.Sprint(r.total(theirs, "CPU")), fmt.Sprint(r.total(theirs, "GPU"))
		}
		text.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return text.String()
}

// alone is the table of what is not given to Ray's.
func (r *Result) alone() string {
	var text strings.Builder
	text.WriteString("| ours alone | |\n|---|---|\n")
	for i := range r.Ours {
		if again := named(r.Again, r.Ours[i].Name); again != nil && named(r.Rays, r.Ours[i].Name) == nil {
			fmt.Fprintf(&text, "| %s | %s, %s |\n", r.Ours[i].Name, r.Ours[i].took(), again.took())
		}
	}
	return text.String()
}

// asked lists what each asks for.
func (r *Result) asked() string {
	var text strings.Builder
	for i := range r.Rays {
		theirs := &r.Rays[i]
		fmt.Fprintf(&text, "- %s: Ray ", theirs.Name)
		if theirs.TooLong > 0 {
			text.WriteString("does not say")
		} else {
			text.WriteString(theirs.kinds())
		}
		if ours := named(r.Ours, theirs.Name); ours != nil {
			fmt.Fprintf(&text, "; ours %s", ours.kinds())
		}
		text.WriteString("\n")
	}
	return text.String()
}

func (r *Result) page() string {
	var text strings.Builder
	fmt.Fprintf(&text, "# Measured: decisions of the autoscaler\n\nMade by `%s` from [autoscale.json](autoscale.json). Commit %s, %s, %d cores.\n\n", r.Command, r.Commit, r.Date, r.Cores)
	text.WriteString("The CPU time of one decision, by Ray's own scheduler (one call, Python) and by ours (the mean of twenty, before and after Ray's\n" +
		"were timed; collecting garbage included), for the same snapshots of a head's state, and what the nodes have that each asks for. Both\n" +
		"decide in one thread: on a machine with nothing else to do it is the wall time. Neither leaves anything without a place.\n")
	fmt.Fprintf(&text, "Promised: at most %.1f times as many nodes as Ray's own.\n\n%s", promised, r.comparison())
	text.WriteString("\nWithout Ray, each worker busy and unlike each other one:\n\n" + r.alone())
	text.WriteString("\n## What each asks for\n\n" + r.asked())
	text.WriteString("\n## Where they differ, and why\n\n| snapshot | nodes | Ray's own | ours | why |\n|---|---|---|---|---|\n")
	for _, d := range r.Differences {
		fmt.Fprintf(&text, "| %s | %s | %d | %d | %s |\n", d.Snapshot, d.Kind, d.Ray, d.Ours, d.Why)
	}
	return text.String()
}

// write writes the JSON file and the page.
func (r *Result) write(dir string) error { return live.WriteResult(dir, "autoscale", r, r.page()) }
