package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// findGone returns an error for each result of a command, scenario or test that no longer exists.
func findGone(files []file, there repository) []error {
	var gone []error
	for _, one := range files {
		for _, what := range one.findGone(there) {
			gone = append(gone, fmt.Errorf("%s: %w", one.Name, what))
		}
	}
	return gone
}

func (f file) findGone(there repository) []error {
	var gone []error
	switch {
	case f.Area != "":
		gone = f.findGoneScenarios(there)
	case f.Command != "":
		if why := there.refuse(f.Command); why != "" {
			gone = append(gone, fmt.Errorf("%q made it, and %s: delete the file and its page, or rename the command in it", f.Command, why))
		}
	case f.Faults != nil:
		gone = f.findGoneTests(there)
	case strings.HasSuffix(f.Name, ".json"):
		gone = append(gone, fmt.Errorf(`nothing says how to make it again: add "command", or delete the file`))
	}
	for _, command := range f.Commands {
		if why := there.refuse(command); why != "" {
			gone = append(gone, fmt.Errorf("it names %q, and %s: delete the page, or correct the command", command, why))
		}
	}
	return gone
}

// findGoneTests looks at the file of tests/seeded.
func (f file) findGoneTests(there repository) []error {
	var gone []error
	for _, one := range f.Faults {
		if !slices.Contains(there.faults, one.ID) {
			gone = append(gone, fmt.Errorf("tests/seeded/faults has no fault %s: remove its row", one.ID))
		} else if why := there.refuseTest(one); why != "" {
			gone = append(gone, fmt.Errorf("fault %s: %s: run go run ./tests/seeded -only %s -again, or rename the test in the file",
				one.ID, why, one.ID))
		}
	}
	return gone
}

// findGoneScenarios looks at a file of make accept.
func (f file) findGoneScenarios(there repository) []error {
	scenarios, ok := there.scenarios[f.Area]
	if !ok {
		return []error{fmt.Errorf("make accept has no area %q: delete the file and its page, or rename both with the area", f.Area)}
	}
	var gone []error
	for _, one := range f.Outcomes {
		if !slices.Contains(scenarios, one.Scenario) {
			gone = append(gone, fmt.Errorf("the area %s has no scenario %q: delete its outcome and its row of the page, or rename both with the scenario",
				f.Area, one.Scenario))
		}
	}
	return gone
}

// refuse says why a command of make cannot be given, nothing if it can.
func (r repository) refuse(command string) string {
	words := strings.Fields(command)
	if len(words) < 2 || words[0] != "make" {
		return "it is no command of make"
	}
	for _, word := range words[1:] {
		name, value, isVariable := strings.Cut(word, "=")
		switch {
		case name == "AREA" && isVariable && r.scenarios[value] == nil:
			return "make accept has no area " + value
		case isVariable && !strings.Contains(r.makefile, "$("+name+")") && !slices.Contains(fromEnvironment, name):
			return "the Makefile uses no variable " + name
		case !isVariable && !regexp.MustCompile(`(?m)^([\w/-]+ )*`+regexp.QuoteMeta(word)+`( [\w/-]+)*:`).MatchString(r.makefile):
			return "the Makefile has no target " + word
		}
	}
	return ""
}

// fromEnvironment are variables that make hands to scripts without naming them.
var fromEnvironment = []string{"FRESH", "KEEP", "NAME"}

// refuseTest says why the test that found a fault cannot be run, nothing if it can. Of a subtest the function must exist.
// A layer on a Kubernetes names its steps and specs by their texts, which nobody looks up here.
func (r repository) refuseTest(found fault) string {
	if found.After.Layer != "unit" && found.After.Layer != "chart" {
		return ""
	}
	name, test, _ := strings.Cut(found.After.Test, " ")
	test, _, _ = strings.Cut(test, "/")
	tests, ok := r.tests["ray-operator/internal/"+name] // tests/seeded leaves this out
	if !ok {
		tests, ok = r.tests[name]
	}
	switch {
	case !ok:
		return "there is no package " + name + " with tests"
	case strings.HasPrefix(test, "Test") && !slices.Contains(tests, test):
		return "the package " + name + " has no test " + test
	default: // one without a name hung, or panicked
		return ""
	}
}
