package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// layer is one of those that "make test" runs.
type layer struct {
	name string
	// concerns reports whether the layer can find a fault at all.
	concerns func(Fault) bool
	// find returns what found the fault, nil if nothing did.
	find func(ctx context.Context, scratch *scratch, fault Fault, timeout time.Duration) (*finding, error)
}

// finding is the first test that failed.
type finding struct{ test string }

func (f *finding) name() string {
	if f == nil {
		return ""
	}
	return f.test
}

// layers are listed from the cheapest to the dearest.
func layers() []layer {
	anything := func(Fault) bool { return true }
	return []layer{
		{"unit", func(f Fault) bool { return strings.HasSuffix(f.File, ".go") }, findInUnit},
		{"chart", func(f Fault) bool { return strings.HasPrefix(f.File, "helm-chart/") }, findInChart},
		{"integration", anything, findInStep("integration")},
		{"e2e", anything, findInStep("e2e")},
		{"rights", func(f Fault) bool { return strings.HasPrefix(f.File, "helm-chart/") }, findInStep("rights")},
	}
}

func layerNames() []string {
	var names []string
	for _, layer := range layers() {
		names = append(names, layer.name)
	}
	return names
}

// findInUnit tests the changed package, then those that depend on it, nearest first.
func findInUnit(ctx context.Context, scratch *scratch, fault Fault, timeout time.Duration) (*finding, error) {
	packages, err := dependents(ctx, scratch.dir, filepath.ToSlash(filepath.Dir(fault.File)))
	if err != nil {
		return nil, err
	}
	for _, one := range packages {
		ways := [][]string{{}}
		if one.hasPoints() { // most faults show in the undisturbed stories, for a tenth of the price
			ways = [][]string{{"-points=none"}, {}}
		}
		for _, way := range ways {
			arguments := append([]string{"-failfast", "-vet=off", "-timeout", timeout.String(), one.ImportPath}, way...)
			found, err := goTest(ctx, scratch.dir, os.Environ(), arguments...)
			if found != nil || err != nil {
				return found, err
			}
		}
	}
	return nil, nil
}

func findInChart(ctx context.Context, scratch *scratch, _ Fault, _ time.Duration) (*finding, error) {
	environment := append(os.Environ(), "HELM="+filepath.Join(scratch.dir, "bin/helm"))
	return goTest(ctx, scratch.dir, environment, "-C", "hack/tools", "-count=1", "-failfast", "./chart")
}

// event is a line that go test -json prints.
type event struct{ Action, Package, Test, Output string }

// goTest runs go test and returns the first test that fails.
func goTest(ctx context.Context, dir string, environment []string, arguments ...string) (*finding, error) {
	if arguments[0] == "-C" { // go takes it only in front
		dir, arguments = filepath.Join(dir, arguments[1]), arguments[2:]
	}
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, arguments...)...)
	command.Dir, command.Env = dir, environment
	var said strings.Builder
	command.Stderr = &said
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("read what go test says: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start go test: %w", err)
	}
	found, lines := firstFailure(out)
	err = command.Wait()
	switch {
	case err == nil:
		return nil, nil
	case found == nil:
		return nil, fmt.Errorf("run go test %s: %w\n%s%s", strings.Join(arguments, " "), err, said.String(), lines)
	}
	return found, nil
}

// firstFailure reads the events of go test to their end. It also returns the last that was said.
func firstFailure(out io.Reader) (*finding, string) {
	var found *finding
	var lines []string
	timedOut := ""
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<24)
	for scanner.Scan() {
		var e event
		if json.Unmarshal(scanner.Bytes(), &e) != nil {
			continue
		}
		if e.Output != "" {
			lines = append(lines[max(0, len(lines)-40):], e.Output)
		}
		if strings.HasPrefix(e.Output, "panic: test timed out") {
			timedOut = " (timeout)"
		}
		if e.Action == "fail" && found == nil && (e.Test != "" || timedOut != "") {
			found = &finding{test: short(e.Package) + " " + e.Test + timedOut}
		}
		if e.Action == "fail" && found == nil && strings.Contains(strings.Join(lines, ""), "panic:") {
			found = &finding{test: short(e.Package) + " (panic)"}
		}
	}
	return found, strings.Join(lines, "")
}

// short takes the module's name off a package's path.
func short(path string) string {
	_, rest, ok := strings.Cut(path, "/heliostat/")
	if !ok {
		return path
	}
	return strings.TrimPrefix(rest, "ray-operator/internal/")
}

// failed finds the tests of go test and the specs of Ginkgo that failed, in a step's log.
var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|\[FAIL\] ([^\x1b\n]+)|^(panic: test timed out)`)

// findInStep runs a step of tests/run.sh. Go's own tests end with the first failure. A tree whose
// run.sh knows E2E_FOCUS runs only the specs that the fault names.
func findInStep(step string) func(context.Context, *scratch, Fault, time.Duration) (*finding, error) {
	return func(ctx context.Context, scratch *scratch, fault Fault, _ time.Duration) (*finding, error) {
		command := exec.CommandContext(ctx, filepath.Join(scratch.dir, "tests/run.sh"), step)
		command.Dir = scratch.dir
		flags := strings.TrimSpace(os.Getenv("GOFLAGS") + " -failfast")
		command.Env = append(os.Environ(), "GOFLAGS="+flags, "E2E_FOCUS="+fault.Focus, "CGO_ENABLED=0")
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		command.WaitDelay = time.Minute
		text, err := command.CombinedOutput()
		if err == nil {
			return nil, nil
		}
		if exit := new(exec.ExitError); !errors.As(err, &exit) {
			return nil, fmt.Errorf("run the step %s: %w", step, err)
		}
		log, readErr := os.ReadFile(filepath.Join(scratch.dir, ".state/logs/test", step+".log"))
		if readErr != nil {
			return nil, fmt.Errorf("the step %s did not begin: %w\n%s", step, err, text)
		}
		if match := failed.FindStringSubmatch(string(log)); match != nil {
			return &finding{test: strings.TrimSpace(match[1] + match[2] + match[3])}, nil
		}
		if step == "rights" {
			return &finding{test: "rights"}, nil
		}
		return nil, fmt.Errorf("the step %s failed without a test that did: %w\n%s", step, err, text)
	}
}
