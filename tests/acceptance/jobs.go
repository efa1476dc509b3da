package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/bench/byhand"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Full counts of jobs.
const (
	jobRounds      = 5
	headLostRounds = 5
	freedRounds    = 5
	realWaves      = 20
	apiSubmissions = 10_000
)

var (
	headLost = within(live.HeadLostLabel, live.HeadLostEntry, promisedHeadLost, headLostRounds,
		"an attempt whose head is deleted ends as HeadLost after %.0f s, and the next one runs on the next head, %d times")
	jobExamples = passing(live.JobExamplesLabel, "a batch on a shared cluster and a Ray Data pipeline run as the examples have them")
	jobStop     = passing(live.StopLabel, "a job that its annotation stops in any phase ends as Stopped, with its cluster, and does not come back")
	freed       = within(live.FreedLabel, live.FreedEntry, promisedFreed, freedRounds,
		"a suspended job has no pod left of its own cluster after %.0f s, %d times")
)

// jobTime compares a trivial job on its own cluster with the same by hand.
var jobTime = scenario{
	name: "job-time",
	promise: fmt.Sprintf("a trivial job on a cluster of its own, head and worker, takes at most %.1f times as long as by hand, and at most %.0f s",
		byhand.PromisedJobRatio, byhand.PromisedJobSeconds),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return onNodes(ctx, nil, func(kubeconfig string) (Outcome, error) { return measureJobs(ctx, kubeconfig, state) })
	},
}

func measureJobs(ctx context.Context, kubeconfig, state string) (Outcome, error) {
	root, err := os.Getwd()
	if err != nil {
		return Outcome{}, fmt.Errorf("find the repository: %w", err)
	}
	file := filepath.Join(root, state, "job-samples.json")
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Outcome{}, fmt.Errorf("remove former samples: %w", err)
	}
	failed := command(ctx, []string{"KUBECONFIG=" + kubeconfig}, "go", "test", "-v", "-count=1", "-timeout", "60m", "./tests/bench/byhand",
		"-run", "^TestAJobOnItsOwnCluster", "-rounds", fmt.Sprint(jobRounds), "-jobs-out", file)
	text, err := os.ReadFile(file)
	if err != nil {
		return Outcome{}, errors.Join(failed, fmt.Errorf("read the samples: %w", err))
	}
	rounds, err := parse[byhand.JobRound](text)
	if err != nil {
		return Outcome{}, errors.Join(failed, err)
	}
	m := byhand.SummariseJobs(rounds)
	return Outcome{
		Measured: fmt.Sprintf("%.2f s, by hand %.2f s: %.2f times as long; medians of %d", m.Operator, m.ByHand, m.Ratio(), len(rounds)),
		Kept:     failed == nil && m.Kept(), Samples: text,
	}, nil
}

func jobTable(samples json.RawMessage) string {
	rounds, err := parse[byhand.JobRound](samples)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	b.WriteString("Seconds from apply until the job has succeeded, the two sides in turn on the same two nodes.\n\n" +
		"| round | by hand | ClusterJob |\n|---|---|---|\n")
	for i, r := range rounds {
		fmt.Fprintf(&b, "| %d | %.2f | %.2f |\n", i+1, r.ByHand, r.Operator)
	}
	return b.String()
}

// submissions counts on real Ray, by what they did, how often jobs ran while their operator
// was killed again and again.
var submissions = scenario{
	name:    live.SubmissionsLabel,
	promise: fmt.Sprintf("%d jobs on real Ray while the operator is killed: each ran once", realWaves*live.SubmissionsWave),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.SubmissionsLabel, realWaves, func(ran []types.SpecReport) (Outcome, error) {
			counted, err := entries[live.Submissions](ran, live.SubmissionsEntry)
			if err != nil {
				return Outcome{}, err
			}
			return tally(counted)
		})
	},
}

func tally(counted []live.Submissions) (Outcome, error) {
	if len(counted) != 1 {
		return Outcome{}, fmt.Errorf("one spec should have counted submissions, %d did", len(counted))
	}
	samples, err := json.Marshal(counted)
	c := counted[0]
	return Outcome{Measured: c.String(), Kept: c.Jobs >= realWaves*live.SubmissionsWave && c.Doubled == 0 && c.Lost == 0 && c.Kills > 0, Samples: samples}, err
}

// manySubmissions does it to heads that stand in for Ray's, with every fault there is.
var manySubmissions = scenario{
	name: "many-submissions",
	promise: fmt.Sprintf("%d jobs, a quarter of them gangs, through a proxy that loses, delays, doubles and cuts requests, uploads and replies, operators killed and paused, "+
		"heads replaced, status and record wiped: 0 doubled, 0 lost", apiSubmissions),
	play: func(ctx context.Context, _ string) (Outcome, error) {
		output, failed := integration(ctx, "TestSubmissions", fmt.Sprintf("HELIOSTAT_SUBMISSIONS=%d", apiSubmissions))
		return doubledOrLost(output, failed)
	},
}

var countedByEffect = regexp.MustCompile(`\d+ jobs\b.*\b(\d+) doubled, (\d+) lost.*`)

func doubledOrLost(output string, failed error) (Outcome, error) {
	found := countedByEffect.FindStringSubmatch(output)
	if found == nil {
		return Outcome{}, errors.Join(errors.New("the test did not say how many jobs ran other than once"), failed)
	}
	doubled, _ := strconv.Atoi(found[1]) // the expression lets digits through only
	lost, _ := strconv.Atoi(found[2])
	return Outcome{Measured: found[0], Kept: failed == nil && doubled == 0 && lost == 0}, nil
}
