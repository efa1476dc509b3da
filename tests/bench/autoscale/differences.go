package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// promised is how many times as many nodes as Ray's scheduler ours may ask for.
const promised = 1.2

// Difference is a kind of node of which the two ask for different numbers.
type Difference struct {
	Snapshot string `json:"snapshot"`
	Kind     string `json:"kind"`
	Ray      int    `json:"ray"`
	Ours     int    `json:"ours"`
	// Why is in words.
	Why string `json:"why"`
}

// reasons are why the two differ, by snapshot and kind of node.
type reasons map[string]map[string]string

func readReasons(path string) (reasons, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read why the decisions differ: %w: run it in the repository", err)
	}
	var all reasons
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, fmt.Errorf("read why the decisions differ in %s: %w", path, err)
	}
	return all, nil
}

// compare lists where the decisions that both made differ.
func (r *Result) compare(why reasons) {
	r.Differences = nil
	for i := range r.Rays {
		theirs, ours := &r.Rays[i], named(r.Ours, r.Rays[i].Name)
		if theirs.TooLong > 0 || ours == nil {
			continue
		}
		either := maps.Clone(theirs.Asked)
		maps.Copy(either, ours.Asked)
		for _, kind := range slices.Sorted(maps.Keys(either)) {
			if d := (Difference{theirs.Name, kind, theirs.Asked[kind], ours.Asked[kind], why[theirs.Name][kind]}); d.Ray != d.Ours {
				r.Differences = append(r.Differences, d)
			}
		}
	}
}

// wrong is what keeps a result from being a comparison, or from what was promised.
func (r *Result) wrong(why reasons) error {
	var all []error
	for i := range r.Rays {
		theirs, ours := &r.Rays[i], named(r.Ours, r.Rays[i].Name)
		switch {
		case ours == nil:
			all = append(all, fmt.Errorf("%s: there is no decision of ours", theirs.Name))
		case ours.Left > 0 || theirs.Left > 0:
			all = append(all, fmt.Errorf("%s: without a place are %d of Ray's and %d of ours: there is nothing to compare", theirs.Name, theirs.Left, ours.Left))
		case theirs.TooLong == 0 && float64(ours.nodes()) > promised*float64(theirs.nodes()):
			all = append(all, fmt.Errorf("%s: we ask for %d nodes, Ray for %d: promised are at most %.1f times as many", theirs.Name, ours.nodes(), theirs.nodes(), promised))
		}
	}
	return errors.Join(append(all, r.unexplained(why)...)...)
}

// unexplained are differences without words, and words without a difference. A snapshot that
// Ray did not decide has no differences.
func (r *Result) unexplained(why reasons) []error {
	var all []error
	told := map[[2]string]bool{}
	for _, d := range r.Differences {
		told[[2]string{d.Snapshot, d.Kind}] = true
		if d.Why == "" {
			all = append(all, fmt.Errorf("%s: Ray asks for %d %s, we for %d: say why in differences.yaml", d.Snapshot, d.Ray, d.Kind, d.Ours))
		}
	}
	for _, snapshot := range slices.Sorted(maps.Keys(why)) {
		for _, kind := range slices.Sorted(maps.Keys(why[snapshot])) {
			if theirs := named(r.Rays, snapshot); !told[[2]string{snapshot, kind}] && theirs != nil && theirs.TooLong == 0 {
				all = append(all, fmt.Errorf("%s: the same number of %s is asked for: take its words out of differences.yaml", snapshot, kind))
			}
		}
	}
	return all
}
