package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Full counts of what only computes.
const (
	histories = 1_000_000
	rolls     = 10_000
)

// decisions shows that the autoscaler's decisions keep within their bounds whatever happens.
var decisions = computed("histories",
	fmt.Sprintf("%d random histories with workers that never start, start late, fail now and then, are drained and are rolled: "+
		"never more workers than demand plus minimum, no demand has two, and each history comes to rest", histories),
	[]string{fmt.Sprintf("HELIOSTAT_AUTOSCALE_N=%d", histories)},
	"./ray-operator/internal/autoscaler/decision", "-run=^TestNeverMorePodsThanDemandPlusMinimum$")

// elasticRolls shows that a rolling update of an autoscaled group ends, within its bounds.
var elasticRolls = computed("elastic-rolls",
	fmt.Sprintf("%d random rolling updates of autoscaled groups, whatever the autoscaler wants meanwhile: "+
		"each ends, within maxUnavailable, maxSurge, maxReplicas and maxNodes", rolls),
	nil, "./ray-operator/internal/cluster", "-run=^TestRollOfAnAutoscaledGroup_KeepsItsBounds$", fmt.Sprintf("-rapid.checks=%d", rolls))

// computed is a scenario of tests that need no Kubernetes.
func computed(name, promise string, environment []string, directory string, flags ...string) scenario {
	return scenario{name: name, promise: promise, play: func(ctx context.Context, _ string) (Outcome, error) {
		args := append([]string{"test", "-count=1", "-timeout", "150m", directory}, flags...)
		err := command(ctx, environment, "go", args...)
		if err != nil {
			return Outcome{Measured: err.Error()}, ctx.Err()
		}
		return Outcome{Measured: "all of them", Kept: true}, ctx.Err()
	}}
}

// decisionTime shows how long a decision for a large cluster takes.
var decisionTime = scenario{
	name: "decision",
	promise: fmt.Sprintf("a decision for 2,000 nodes, 10,000 requests of 50 shapes and 100 placement groups takes %d ms of CPU",
		promisedDecision.Milliseconds()),
	play: func(ctx context.Context, state string) (Outcome, error) {
		root, err := os.Getwd()
		if err != nil {
			return Outcome{}, fmt.Errorf("find the repository: %w", err)
		}
		answers := filepath.Join(root, state, "decisions.json")
		if err := command(ctx, []string{"HELIOSTAT_ANSWERS=" + answers},
			"go", "test", "-count=1", "./ray-operator/internal/autoscaler/decision", "-run=^TestSnapshotsTakeFewNodes$"); err != nil {
			return Outcome{}, err
		}
		text, err := os.ReadFile(answers)
		if err != nil {
			return Outcome{}, fmt.Errorf("read the times of decisions: %w", err)
		}
		return judgeDecision(text)
	},
}

// judgeDecision finds the time of the large cluster among those that the test wrote.
func judgeDecision(text []byte) (Outcome, error) {
	var answers []struct {
		Name    string  `json:"name"`
		Seconds float64 `json:"seconds"`
	}
	if err := json.Unmarshal(text, &answers); err != nil {
		return Outcome{}, fmt.Errorf("parse the times of decisions: %w", err)
	}
	for _, one := range answers {
		if strings.HasPrefix(one.Name, "2000 nodes, 10000 pending") {
			return Outcome{
				Measured: fmt.Sprintf("%.1f ms", one.Seconds*1000), Kept: one.Seconds <= promisedDecision.Seconds(), Samples: text,
			}, nil
		}
	}
	return Outcome{}, errors.New("no decision for 2,000 nodes was measured")
}
