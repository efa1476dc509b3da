package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// instance is the local Kubernetes that scenarios bring up, one at a time. INSTANCE names
// another one, so that two checkouts can show scenarios side by side.
func instance() string { return cmp.Or(os.Getenv("INSTANCE"), "accept") }

// onNodes plays a scenario on a fresh local Kubernetes with two nodes that hold the
// images of Ray, the operator and Redis, and devices and address families as in make test. Options are further ones of
// localkube up, or replace these.
func onNodes(ctx context.Context, options []string, play func(kubeconfig string) (Outcome, error)) (Outcome, error) {
	return onNodesWith(ctx, []string{"ray", "operator", "redis"}, options, play)
}

// onNodesWith plays a scenario as onNodes does, with other images.
func onNodesWith(ctx context.Context, names, options []string, play func(kubeconfig string) (Outcome, error)) (outcome Outcome, err error) {
	images, err := exec.CommandContext(ctx, "bin/images", append([]string{"build"}, names...)...).Output()
	if err != nil {
		return Outcome{}, fmt.Errorf("build the images: %w: make build makes the program", err)
	}
	defer func() {
		down := context.WithoutCancel(ctx) // also after an interrupt
		err = errors.Join(err, command(down, nil, "bin/localkube", "down", "--name", instance()))
	}()
	up := append([]string{"up", "--name", instance(), "--nodes", "2", "--gpus", "2", "--ip-families", "ipv4,ipv6"}, options...)
	for _, image := range strings.Fields(string(images)) {
		up = append(up, "--image", image)
	}
	if err := command(ctx, nil, "bin/localkube", up...); err != nil {
		return Outcome{}, err
	}
	kubeconfig, err := exec.CommandContext(ctx, "bin/localkube", "kubeconfig", "--name", instance()).Output()
	if err != nil {
		return Outcome{}, fmt.Errorf("find the kubeconfig: %w", err)
	}
	return play(strings.TrimSpace(string(kubeconfig)))
}

// specs runs the specs of tests/e2e that have a label and gives what they reported, one
// after another, in their order. An error of failed specs comes with the report. Flags are
// further ones of the specs.
func specs(ctx context.Context, kubeconfig, state, label string, flags ...string) ([]types.SpecReport, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the repository: %w", err)
	}
	file := filepath.Join(root, state, label+"-report.json")
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove a former report: %w", err)
	}
	args := []string{"test", "-v", "-count=1", "-timeout", "60m", "./tests/e2e", "-ginkgo.label-filter=" + label, "-ginkgo.json-report=" + file}
	environment := []string{"KUBECONFIG=" + kubeconfig, "LOCALKUBE=" + filepath.Join(root, "bin", "localkube"), "LOCALKUBE_NAME=" + instance()}
	for variable, key := range map[string]string{"KUBECTL": kubectl, "LOCALKUBE_AUDIT_LOG": auditLog, "LOCALKUBE_CPU_STAT": cpuStat} {
		value, err := statusOf(ctx, key)
		if err != nil {
			return nil, err
		}
		environment = append(environment, variable+"="+value)
	}
	failed := command(ctx, environment, "go", append(args, flags...)...)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.Join(failed, fmt.Errorf("read the report: %w", err))
	}
	all, err := ranOf(text)
	return all, errors.Join(failed, err)
}

// ranOf are the specs that a report of Ginkgo tells of and that were run.
func ranOf(report []byte) ([]types.SpecReport, error) {
	var suites []types.Report
	if err := json.Unmarshal(report, &suites); err != nil {
		return nil, fmt.Errorf("parse the report: %w", err)
	}
	var ran []types.SpecReport
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			if spec.LeafNodeType == types.NodeTypeIt && !spec.State.Is(types.SpecStateSkipped|types.SpecStatePending) {
				ran = append(ran, spec)
			}
		}
	}
	if len(ran) == 0 {
		return nil, errors.New("parse the report: no spec was run")
	}
	return ran, nil
}

// entries decodes what specs put into their report under a name, in their order.
func entries[T any](specs []types.SpecReport, name string) ([]T, error) {
	var all []T
	for i := range specs {
		for _, entry := range specs[i].ReportEntries {
			if entry.Name != name {
				continue
			}
			var one T
			if err := json.Unmarshal([]byte(entry.Value.AsJSON), &one); err != nil {
				return nil, fmt.Errorf("parse what %q reported as %s: %w", specs[i].LeafNodeText, name, err)
			}
			all = append(all, one)
		}
	}
	return all, nil
}
