package main

import (
	"bytes"
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

	"github.com/heliostat-dev/heliostat/tests/bench/jobs"
)

// admission sends many generated clusters to a real API server and compares its answer with
// that of the rules; continuous integration sends some hundreds.
var admission = scenario{
	name:    "admission",
	promise: "of 10,000 generated clusters the API server refuses those that the Go rules refuse, with the same field and remedy, and takes the others; so it is for some hundreds of jobs, services and schedules; and each of four users is refused what they have no right to name",
	play:    playAdmission,
}

// generated says how many inputs are made: mixtures of settings, and changes of one field.
const generated = "-n 8000 -mutations 3000 -seed 1"

// generatedOfOthers says how many are made of jobs, of services and of schedules.
const generatedOfOthers = "-n 300 -mutations 300 -seed 1"

// rightsOfAll has all four users send all objects that need a right, with so many mixtures of rights.
const rightsOfAll = "-n 60 -seed 1"

var decided = regexp.MustCompile(`(\d+) decisions, (\d+) of them refusals`)

var agreed = regexp.MustCompile(`(\d+ inputs, \d+ of them bad), .*: (\d+) disagreements`)

func playAdmission(ctx context.Context, _ string) (Outcome, error) {
	output, failed := integration(ctx, "TestTheAPIServerAndTheRulesAgree", "HELIOSTAT_ADMISSION="+generated)
	found := agreed.FindStringSubmatch(output)
	if found == nil {
		return Outcome{}, errors.Join(errors.New("the test did not say how many inputs it sent"), failed)
	}
	kept := failed == nil && found[2] == "0"
	output, failed = integration(ctx, "TestTheAPIServerAndTheRulesAgree(OnJobs|OnServices|_OnSchedules)", "HELIOSTAT_ADMISSION="+generatedOfOthers)
	others := agreed.FindAllStringSubmatch(output, -1)
	if len(others) != 3 {
		return Outcome{}, errors.Join(fmt.Errorf("three tests should have said how many inputs they sent, %d did", len(others)), failed)
	}
	measured := "clusters: " + found[1] + ", " + found[2] + " disagreements"
	for _, one := range others {
		measured += "; another kind: " + one[1] + ", " + one[2] + " disagreements"
		kept = kept && one[2] == "0"
	}
	kept = kept && failed == nil
	output, failed = integration(ctx, "TestRights_AreThoseOfWhoWrites", "HELIOSTAT_RIGHTS="+rightsOfAll)
	decisions := decided.FindStringSubmatch(output)
	if decisions == nil {
		return Outcome{}, errors.Join(errors.New("the test did not say how many decisions it compared"), failed)
	}
	measured += fmt.Sprintf("; rights: %s decisions, %s of them refusals", decisions[1], decisions[2])
	return Outcome{Measured: measured, Kept: kept && failed == nil}, nil
}

// integration runs the tests on a real API server whose names match an expression, on a fresh one, with settings of
// their environment, and gives what they printed. They judge durations.
func integration(ctx context.Context, test string, settings ...string) (printed string, err error) {
	test = "^" + test + "$"
	return onAPIServer(ctx, []string{"-v", "-count=1", "-timeout", "120m", "-run", test, "./tests/integration", "-judge"}, settings...)
}

// onAPIServer runs go test on a fresh API server, with settings of the environment, and gives what it printed.
func onAPIServer(ctx context.Context, arguments []string, settings ...string) (printed string, err error) {
	err = onControlPlane(ctx, func(environment []string) error {
		var output bytes.Buffer
		c := exec.CommandContext(ctx, "go", append([]string{"test"}, arguments...)...)
		c.Env = append(append(os.Environ(), environment...), settings...)
		c.Stdout, c.Stderr = io.MultiWriter(&output, os.Stdout), os.Stderr
		failed := c.Run()
		if printed = output.String(); failed != nil {
			return fmt.Errorf("run go test %s: %w", strings.Join(arguments, " "), failed)
		}
		return nil
	})
	return printed, err
}

// onControlPlane plays something on a local Kubernetes without nodes, whose place is in the environment that it is given.
func onControlPlane(ctx context.Context, play func(environment []string) error) (err error) {
	defer func() {
		down := context.WithoutCancel(ctx) // also after an interrupt
		err = errors.Join(err, command(down, nil, "bin/localkube", "down", "--name", instance()))
	}()
	if err := command(ctx, nil, "bin/localkube", "up", "--name", instance(), "--control-plane-only"); err != nil {
		return err
	}
	kubeconfig, err := exec.CommandContext(ctx, "bin/localkube", "kubeconfig", "--name", instance()).Output()
	if err != nil {
		return fmt.Errorf("find the kubeconfig: %w", err)
	}
	audit, err := statusOf(ctx, auditLog)
	if err != nil {
		return err
	}
	return play([]string{"KUBECONFIG=" + strings.TrimSpace(string(kubeconfig)), "LOCALKUBE_AUDIT_LOG=" + audit, "LOCALKUBE_NAME=" + instance()})
}

// measured runs a test on a real API server that writes figures, and gives these. The first error is of what failed
// meanwhile; the second says that there are no figures.
func measured(ctx context.Context, state, test string, settings ...string) (figures json.RawMessage, failed, err error) {
	file, err := filepath.Abs(filepath.Join(state, test+"-figures.json"))
	if err != nil {
		return nil, nil, fmt.Errorf("name the file of figures: %w", err)
	}
	if err := os.RemoveAll(file); err != nil {
		return nil, nil, fmt.Errorf("remove former figures: %w", err)
	}
	_, failed = integration(ctx, test, append(settings, jobs.ResultsVariable+"="+file)...)
	if figures, err = os.ReadFile(file); err != nil {
		return nil, failed, errors.Join(failed, fmt.Errorf("read the figures: %w", err))
	}
	return figures, failed, nil
}

// Keys of localkube's status.
const (
	auditLog = "audit log"
	kubectl  = "kubectl"
	cpuStat  = "cpu stat"
)

// statusOf returns what localkube says of the instance under a key, such as "audit log".
func statusOf(ctx context.Context, key string) (string, error) {
	status, err := exec.CommandContext(ctx, "bin/localkube", "status", "--name", instance()).Output()
	if err != nil {
		return "", fmt.Errorf("ask localkube for its status: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, key); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("find the %s: localkube status does not name it", key)
}
