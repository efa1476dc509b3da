// Command schema fails if the kinds break what users may rely on: docs/reference/compatibility.md says what that is.
//
// "schema print DEFINITION..." reads CustomResourceDefinitions, and prints a line for each field and each rule.
// "schema check EARLIER PRESENT ACCEPTED [released]" compares two such prints. It prints each change by which an object, or a
// program that reads or writes one, may stop to work, unless a line of the file ACCEPTED is the same. After the first release
// nothing is accepted.
//
// It must never pass over a part of a schema that it does not know: that is an error.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "schema:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New(`give "print DEFINITION..." or "check EARLIER PRESENT ACCEPTED [released]"`)

func run(args []string, out io.Writer) error {
	switch {
	case len(args) > 1 && args[0] == "print":
		lines, err := Print(args[1:])
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, lines)
		return err
	case len(args) == 4 && args[0] == "check":
		return check(args[1], args[2], args[3], false)
	case len(args) == 5 && args[0] == "check" && args[4] == "released":
		return check(args[1], args[2], args[3], true)
	default:
		return errUsage
	}
}

// Print returns the lines of definitions in files.
func Print(files []string) (string, error) {
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read a definition: %w", err)
		}
		fields, err := Read(text)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", file, err)
		}
		for _, field := range fields {
			all = append(all, field.lines()...)
		}
	}
	return strings.Join(all, "\n") + "\n", nil
}

// check compares two prints in files, and fails where one breaks users of the other by a change that is not accepted.
func check(earlier, present, accepted string, isReleased bool) error {
	var texts [3]string
	for i, file := range []string{earlier, present, accepted} {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read what to compare: %w", err)
		}
		texts[i] = string(text)
	}
	before, err := parse(texts[0])
	if err != nil {
		return fmt.Errorf("read %s: %w", earlier, err)
	}
	after, err := parse(texts[1])
	if err != nil {
		return fmt.Errorf("read %s: %w", present, err)
	}
	known := linesOf(texts[2])
	if isReleased && len(known) > 0 {
		return fmt.Errorf("%s: there is a release, so nothing is accepted any more: remove its lines, and undo the changes", accepted)
	}
	var all []error
	changes := Breaks(before, after)
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
