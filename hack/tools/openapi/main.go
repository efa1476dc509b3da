// Command openapi fails if an OpenAPI document breaks clients that were written or generated for an earlier one.
//
// In: the earlier document, the present one, and a file of changes that are accepted, one a line. Out: each change that breaks
// clients and is not accepted, and each accepted one that is not made.
//
// It must never accept more than the line says: a change is named with its route.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oasdiff/oasdiff/checker"
	"github.com/oasdiff/oasdiff/diff"
	"github.com/oasdiff/oasdiff/load"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: openapi EARLIER PRESENT ACCEPTED")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

// check compares two documents in files, and fails where one breaks clients of the other by a change that is not accepted.
func check(earlier, present, accepted string) error {
	text, err := os.ReadFile(accepted)
	if err != nil {
		return fmt.Errorf("read what is accepted: %w", err)
	}
	changes, err := breaks(earlier, present)
	if err != nil {
		return fmt.Errorf("compare %s with %s: %w", present, earlier, err)
	}
	var all []error
	known := linesOf(string(text))
	for _, change := range changes {
		if !slices.Contains(known, change) {
			all = append(all, errors.New(change))
		}
	}
	for _, line := range known {
		if !slices.Contains(changes, line) {
			all = append(all, fmt.Errorf("%s is accepted in %s, and not made: remove the line", line, accepted))
		}
	}
	return errors.Join(all...)
}

// linesOf returns the lines of a text that say something.
func linesOf(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// levels are those of changes that break clients of this server, and that others may do without. An answer has every field,
// so clients count on it; an unknown field or parameter is refused; and generated clients name their methods by operations.
func levels() map[string]checker.Level {
	return map[string]checker.Level{
		"response-optional-property-removed": checker.ERR,
		"request-property-removed":           checker.ERR,
		"request-parameter-removed":          checker.ERR,
		"api-operation-id-removed":           checker.ERR,
		"response-property-any-of-removed":   checker.ERR,
	}
}

// breaks returns the changes between two documents that break clients, each with its route.
func breaks(earlier, present string) ([]string, error) {
	var specs [2]*load.SpecInfo
	for i, file := range []string{earlier, present} {
		var err error
		if specs[i], err = load.NewSpecInfo(openapi3.NewLoader(), load.NewSource(file)); err != nil {
			return nil, err
		}
	}
	found, sources, err := diff.GetWithOperationsSourcesMap(diff.NewConfig(), specs[0], specs[1])
	if err != nil {
		return nil, err
	}
	config := checker.NewConfig(checker.GetAllChecks(), checker.WithSeverityLevels(levels()))
	var lines []string
	say := checker.NewDefaultLocalizer()
	for _, change := range checker.CheckBackwardCompatibilityUntilLevel(config, found, sources, checker.WARN) {
		lines = append(lines, fmt.Sprintf("%s %s: %s [%s]", change.GetOperation(), change.GetPath(),
			change.GetUncolorizedText(say), change.GetId()))
	}
	return lines, nil
}
