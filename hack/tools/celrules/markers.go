package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var (
	errNoID      = errors.New("no marker +heliostat:rule follows")
	errNoKebab   = errors.New("an ID is of lower-case letters and hyphens")
	errNoMessage = errors.New("it has no message")
	errTwoIDs    = errors.New("a message has one rule")
)

const (
	celMarker = "// +kubebuilder:validation:XValidation:"
	idMarker  = "// +heliostat:rule="
)

// kebab is the form of an ID.
var kebab = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

var message = regexp.MustCompile(`,message=("(?:[^"\\]|\\.)*")`)

// readIDs returns the IDs of rules by their messages, from the markers in a directory's Go files.
func readIDs(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_types.go"))
	if err != nil {
		return nil, fmt.Errorf("list the types: %w", err)
	}
	ids := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the types: %w", err)
		}
		if err := takeIDs(ids, string(text)); err != nil {
			return nil, fmt.Errorf("%s:%w", file, err)
		}
	}
	return ids, nil
}

// takeIDs adds the IDs of a file.
func takeIDs(ids map[string]string, text string) error {
	lines := append(strings.Split(text, "\n"), "")
	for i, line := range lines[:len(lines)-1] {
		if !strings.Contains(line, celMarker) {
			continue
		}
		found := message.FindStringSubmatch(line)
		if found == nil {
			return fmt.Errorf("%d: %w", i+1, errNoMessage)
		}
		said, err := strconv.Unquote(found[1])
		if err != nil {
			return fmt.Errorf("%d: read the message: %w", i+1, err)
		}
		id, is := strings.CutPrefix(strings.TrimSpace(lines[i+1]), idMarker)
		if !is {
			return fmt.Errorf("%d: %w", i+1, errNoID)
		}
		if !kebab.MatchString(id) {
			return fmt.Errorf("%d: %w: %q", i+1, errNoKebab, id)
		}
		if former, has := ids[said]; has && former != id {
			return fmt.Errorf("%d: %w: %s and %s both say %q", i+1, errTwoIDs, former, id, said)
		}
		ids[said] = id
	}
	return nil
}
