package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// file is one file of results, as far as it says what made it.
type file struct {
	// Name is its path from the repository's root.
	Name string `json:"-"`
	// Area and Outcomes are of make accept.
	Area     string    `json:"area"`
	Outcomes []outcome `json:"outcomes"`
	// Command, Commit and Date are of a benchmark.
	Command string `json:"command"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	// Faults are of tests/seeded.
	Faults []fault `json:"-"`
	// Commands are those that a page without figures of its own names.
	Commands []string `json:"-"`
}

// outcome is what one scenario of an area showed.
type outcome struct {
	Scenario string `json:"scenario"`
	Commit   string `json:"commit"`
	Date     string `json:"date"`
}

// fault is a seeded fault, with the test that found it.
type fault struct {
	ID    string `json:"id"`
	After struct {
		Commit string `json:"commit"`
		Layer  string `json:"layer"`
		Test   string `json:"test"`
	} `json:"after"`
}

// readFiles reads the figures and the pages of a directory.
func readFiles(directory string) ([]file, error) {
	names, err := filepath.Glob(filepath.Join(directory, "*"))
	if err != nil || len(names) == 0 {
		return nil, errors.Join(err, fmt.Errorf("find results in %s: run it in the repository", directory))
	}
	var files []file
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		one, err := parseFile(filepath.ToSlash(name), text)
		if err != nil {
			return nil, err
		}
		files = append(files, one)
	}
	return files, nil
}

// makeCommand matches a command of make that a page shows as code.
var makeCommand = regexp.MustCompile("`(make [a-z][^`\n]*)`")

func parseFile(name string, text []byte) (file, error) {
	one := file{Name: name}
	var err error
	switch {
	case filepath.Ext(name) != ".json":
		for _, found := range makeCommand.FindAllSubmatch(text, -1) {
			one.Commands = append(one.Commands, string(found[1]))
		}
	case bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")):
		err = json.Unmarshal(text, &one.Faults)
	default:
		err = json.Unmarshal(text, &one)
	}
	if err != nil {
		return one, fmt.Errorf("parse the results in %s: %w", name, err)
	}
	return one, nil
}

// repository has what results can name.
type repository struct {
	// scenarios are those of each area of make accept.
	scenarios map[string][]string
	makefile  string
	// tests are the functions that test, by the directory of their package.
	tests map[string][]string
	// faults are the IDs of the seeded ones.
	faults []string
}

// faultID matches the head of a row of seeded faults.
var faultID = regexp.MustCompile(`(?m)^- id: (\S+)$`)

func readRepository(scenarios io.Reader) (repository, error) {
	there := repository{scenarios: map[string][]string{}, tests: map[string][]string{}}
	lines := bufio.NewScanner(scenarios)
	for lines.Scan() {
		area, scenario, _ := strings.Cut(lines.Text(), " ")
		there.scenarios[area] = append(there.scenarios[area], scenario)
	}
	if err := lines.Err(); err != nil {
		return there, fmt.Errorf("read the scenarios: %w", err)
	}
	if len(there.scenarios) == 0 {
		return there, errors.New("read the scenarios: there are none: use go run ./tests/acceptance -list | go run ./tests/results check")
	}
	text, err := os.ReadFile("Makefile")
	if err != nil {
		return there, fmt.Errorf("read the Makefile: %w", err)
	}
	there.makefile = string(text)
	lists, err := filepath.Glob("tests/seeded/faults/*.yaml")
	if err != nil {
		return there, fmt.Errorf("find the seeded faults: %w", err)
	}
	for _, name := range lists {
		if text, err = os.ReadFile(name); err != nil {
			return there, fmt.Errorf("read the seeded faults: %w", err)
		}
		for _, found := range faultID.FindAllSubmatch(text, -1) {
			there.faults = append(there.faults, string(found[1]))
		}
	}
	return there, filepath.WalkDir(".", there.addTests)
}

// testFunction matches the head of a function that go test runs.
var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w*)\(`)

// addTests notes the tests of a file, for filepath.WalkDir.
func (r repository) addTests(name string, entry fs.DirEntry, err error) error {
	if err != nil {
		return fmt.Errorf("look for tests: %w", err)
	}
	if entry.IsDir() && slices.Contains([]string{".git", ".state", "bin", "node_modules", "testdata"}, entry.Name()) {
		return filepath.SkipDir
	}
	if !strings.HasSuffix(name, "_test.go") {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("look for tests: %w", err)
	}
	directory := filepath.ToSlash(filepath.Dir(name))
	for _, found := range testFunction.FindAllSubmatch(text, -1) {
		r.tests[directory] = append(r.tests[directory], string(found[1]))
	}
	return nil
}
