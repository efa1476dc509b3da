package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// admission sends many generated clusters to a real API server and compares its answer with
// that of the rules; continuous integration sends some hundreds.
var admission = scenario{
	name:    "admission",
	promise: "of 10,000 generated clusters the API server refuses those that the Go rules refuse, with the same field and remedy, and takes the others",
	play:    playAdmission,
}

// generated says how many inputs are made: mixtures of settings, and changes of one field.
const generated = "-n 8000 -mutations 3000 -seed 1"

var agreed = regexp.MustCompile(`(\d+ inputs, \d+ of them bad), .*: (\d+) disagreements`)

func playAdmission(ctx context.Context, _ string) (Outcome, error) {
	output, failed := integration(ctx, "TestTheAPIServerAndTheRulesAgree", "HELIOSTAT_ADMISSION="+generated)
	found := agreed.FindStringSubmatch(output)
	if found == nil {
		return Outcome{}, errors.Join(errors.New("the test did not say how many inputs it sent"), failed)
	}
	return Outcome{Measured: found[1] + ", " + found[2] + " disagreements", Kept: failed == nil && found[2] == "0"}, nil
}

// integration runs the tests on a real API server whose names match an expression, on a fresh one, with settings of
// their environment, and gives what they printed. They judge durations.
func integration(ctx context.Context, test string, settings ...string) (printed string, err error) {
	defer func() {
		down := context.WithoutCancel(ctx) // also after an interrupt
		err = errors.Join(err, command(down, nil, "bin/localkube", "down", "--name", instance()))
	}()
	if err := command(ctx, nil, "bin/localkube", "up", "--name", instance(), "--control-plane-only"); err != nil {
		return "", err
	}
	kubeconfig, err := exec.CommandContext(ctx, "bin/localkube", "kubeconfig", "--name", instance()).Output()
	if err != nil {
		return "", fmt.Errorf("find the kubeconfig: %w", err)
	}
	audit, err := auditLog(ctx)
	if err != nil {
		return "", err
	}
	var output bytes.Buffer
	c := exec.CommandContext(ctx, "go", "test", "-v", "-count=1", "-timeout", "120m", "-run", "^"+test+"$", "./tests/integration", "-judge")
	c.Env = append(append(os.Environ(), "KUBECONFIG="+strings.TrimSpace(string(kubeconfig)), "LOCALKUBE_AUDIT_LOG="+audit), settings...)
	c.Stdout, c.Stderr = io.MultiWriter(&output, os.Stdout), os.Stderr
	if err := c.Run(); err != nil {
		return output.String(), fmt.Errorf("run %s: %w", test, err)
	}
	return output.String(), nil
}

// auditLog is where the instance's API server writes what it was asked.
func auditLog(ctx context.Context) (string, error) {
	status, err := exec.CommandContext(ctx, "bin/localkube", "status", "--name", instance()).Output()
	if err != nil {
		return "", fmt.Errorf("find the audit log: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if path, ok := strings.CutPrefix(line, "audit log"); ok {
			return strings.TrimSpace(path), nil
		}
	}
	return "", errors.New("find the audit log: localkube status does not name it")
}
