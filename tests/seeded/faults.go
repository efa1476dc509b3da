package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Fault is one way to break the product: a text of one file that another one replaces.
type Fault struct {
	ID   string `json:"id"`
	Area string `json:"area"`
	// Sort is what kind of fault it is, such as "missed wake" or "order of writes".
	Sort string `json:"sort"`
	// Breaks says what a user loses by it.
	Breaks string `json:"breaks"`
	File   string `json:"file"`
	// Old occurs exactly once in the file; New stands in its place.
	Old string `json:"old"`
	New string `json:"new"`
	// Focus limits the specs on real Ray to those that it matches. Without it all run.
	Focus string `json:"focus,omitempty"`
}

// areas are those that need at least leastOfArea faults each.
func areas() []string { return []string{"cluster", "job", "service", "store", "autoscaler"} }

const leastOfArea = 10

// readFaults reads the rows of all files of a directory, in the order of the areas.
func readFaults(directory string) ([]Fault, error) {
	var all []Fault
	for _, area := range areas() {
		path := filepath.Join(directory, area+".yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the faults: %w: run it in the repository", err)
		}
		var rows []Fault
		if err := yaml.UnmarshalStrict(text, &rows); err != nil {
			return nil, fmt.Errorf("read the faults in %s: %w", path, err)
		}
		for i := range rows {
			rows[i].Area = area
		}
		all = append(all, rows...)
	}
	return all, check(all)
}

// check refuses rows that lack something, and ids that occur twice.
func check(all []Fault) error {
	var ids []string
	for _, fault := range all {
		for _, text := range []string{fault.ID, fault.Sort, fault.Breaks, fault.File, fault.Old} {
			if text == "" {
				return fmt.Errorf("fault %q: id, sort, breaks, file and old are needed", fault.ID)
			}
		}
		if fault.Old == fault.New {
			return fmt.Errorf("fault %s: it changes nothing", fault.ID)
		}
		if slices.Contains(ids, fault.ID) {
			return fmt.Errorf("fault %s: there are two of this id", fault.ID)
		}
		ids = append(ids, fault.ID)
	}
	return nil
}

// hash names a row as far as it matters to what finds it.
func (f Fault) hash() string {
	sum := sha256.Sum256([]byte(f.File + "\x00" + f.Old + "\x00" + f.New))
	return hex.EncodeToString(sum[:6])
}

// notThereError says that a fault's text does not occur exactly once.
type notThereError struct {
	file  string
	times int
}

func (e *notThereError) Error() string {
	return fmt.Sprintf("its text occurs %d times in %s, want once", e.times, e.file)
}

// seed returns the file's text with the fault in it, and the text as it was.
func (f Fault) seed(root string) (seeded, plain string, err error) {
	text, err := os.ReadFile(filepath.Join(root, f.File))
	if os.IsNotExist(err) {
		return "", "", &notThereError{file: f.File}
	}
	if err != nil {
		return "", "", fmt.Errorf("read the file of a fault: %w", err)
	}
	plain = string(text)
	if times := strings.Count(plain, f.Old); times != 1 {
		return "", "", &notThereError{file: f.File, times: times}
	}
	return strings.Replace(plain, f.Old, f.New, 1), plain, nil
}
