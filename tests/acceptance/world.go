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
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// world tells every story of the cluster controller again.
var world = storiesOf("world", "of the cluster controller", "./ray-operator/internal/cluster")

// serviceWorlds tell every story of the service controller again, in parts: each takes up to an hour
// of two cores.
func serviceWorlds() []scenario {
	const directory, gateway, inPlace, inTrouble = "./ray-operator/internal/service", "Gateway", "InPlace", "GatewayInTrouble|GatewayThatWasWell"
	return []scenario{
		storiesOf("service-world", "of the service controller, but those of gateways and of pods replaced in place,", directory, "-skip="+gateway+"|"+inPlace),
		storiesOf("service-world-gateway", "of the service controller with a gateway that is well", directory, "-run="+gateway, "-skip="+inTrouble),
		storiesOf("service-world-gateway-trouble", "of the service controller with a gateway in trouble", directory, "-run="+inTrouble),
		storiesOf("service-world-in-place", "of the service controller that replaces pods in place", directory, "-run="+inPlace),
	}
}

// storiesOf tells every story of a package, or of those of its tests that flags of go test choose,
// again at every point where something can go wrong; continuous integration runs a sample.
func storiesOf(name, which, directory string, flags ...string) scenario {
	return scenario{
		name: name,
		promise: "the operator failed, killed before and after each write, blind, late or set back in time, its status or record lost at each step: " +
			"every story " + which + " ends the same, with no rule broken on the way",
		play: func(ctx context.Context, _ string) (Outcome, error) { return playWorld(ctx, directory, flags) },
	}
}

// stories is how many points of disturbance a test of stories ran, of how many.
type stories struct {
	Test       string
	Run, Known int
}

func playWorld(ctx context.Context, directory string, flags []string) (Outcome, error) {
	c := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-json", "-count=1", "-timeout", "150m"}, flags, []string{directory, "-points=all"})...)
	c.Stderr = os.Stderr
	output, err := c.StdoutPipe()
	if err != nil {
		return Outcome{}, fmt.Errorf("read the tests' output: %w", err)
	}
	if err := c.Start(); err != nil {
		return Outcome{}, fmt.Errorf("run the tests of %s: %w", directory, err)
	}
	told, failures, err := countPoints(output)
	failed := c.Wait()
	if err != nil {
		return Outcome{}, errors.Join(failed, err)
	}
	run, known := 0, 0
	for _, of := range told {
		run, known = run+of.Run, known+of.Known
	}
	samples, err := json.Marshal(told)
	return Outcome{
		Measured: fmt.Sprintf("%d of %d points, %d failed", run, known, failures), Samples: samples,
		Kept: failed == nil && failures == 0 && run > 0 && run == known,
	}, err
}

var points = regexp.MustCompile(`points of disturbance run: (\d+) of (\d+)`)

// countPoints reads what "go test -json" says: the points that each test counted, and how many tests
// failed, with those above and below each other. It says what these said.
func countPoints(output io.Reader) (told []stories, failures int, err error) {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	said := map[string][]string{}
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, 0, fmt.Errorf("read the tests' output: %w", err)
		}
		switch event.Action {
		case "output":
			said[event.Test] = append(said[event.Test], event.Output)
		case "fail":
			failures++
			fmt.Fprintln(os.Stderr, strings.Join(said[event.Test], ""))
			delete(said, event.Test)
		case "pass", "skip":
			delete(said, event.Test)
		}
		if found := points.FindStringSubmatch(event.Output); found != nil {
			run, _ := strconv.Atoi(found[1]) // the expression lets digits through only
			known, _ := strconv.Atoi(found[2])
			told = append(told, stories{event.Test, run, known})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, 0, fmt.Errorf("read the tests' output: %w", err)
	}
	return told, failures, nil
}
