package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// What is promised of the times of gangs.
const (
	promisedGangRestart  = 2.0 // seconds, for 95 of 100 restarts
	promisedGangStart    = 1.2 // times as long as by a driver made by hand
	promisedGangPods     = 5.0 // times as soon as pods
	promisedSparkFirst   = 1.3 // times as long as by a Master and Workers made by hand
	promisedSparkWork    = 1.15
	promisedGangMemory   = 10.0 // MiB more than of a driver made by hand
	promisedGuardMemory  = 6.0  // MiB
	promisedGangCPU      = 0.01 // cores
	promisedGangOutput   = 0.5  // of the rate of a file
	gangRounds           = 1000
	promisedGangZombies  = 10
	processesOfGangRound = 4
)

// gangTimes measures how soon gangs start, and start again.
var gangTimes = scenario{
	name: live.GangTimesLabel,
	promise: fmt.Sprintf("after a process has failed, and the others end at once, all four run again within %.0f s in 95 of 100 cases; "+
		"a gang starts at most %.1f times as late as the same processes by a driver made by hand", promisedGangRestart, promisedGangStart),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return onFrameworks(ctx, "frameworks", showSpecs(ctx, state, live.GangTimesLabel, 1, judgeGangTimes))
	},
}

func judgeGangTimes(ran []types.SpecReport) (Outcome, error) {
	samples, measured, err := entry[live.GangTimes](ran, live.GangTimesEntry)
	if err != nil {
		return Outcome{}, err
	}
	restart, start, byHand := percentile(measured.Restarts, 95), percentile(measured.Starts, 50), percentile(measured.ByHand, 50)
	isWhole := len(measured.Restarts) >= live.GangRestartsMeasured && min(len(measured.Starts), len(measured.ByHand)) >= live.GangStartsMeasured
	return Outcome{
		Measured: fmt.Sprintf("%d restarts, 95 of 100 within %.2f s, median %.2f s; a start takes %.2f s, by hand %.2f s: %.2f times as long; medians of %d",
			len(measured.Restarts), restart, percentile(measured.Restarts, 50), start, byHand, start/byHand, len(measured.Starts)),
		Kept: isWhole && restart < promisedGangRestart && start <= promisedGangStart*byHand, Samples: samples,
	}, nil
}

// sparkTimes measures how soon applications of Spark start, and how long they compute.
var sparkTimes = scenario{
	name: live.SparkTimesLabel,
	promise: fmt.Sprintf("the first task of an application of Spark begins at most %.1f times as late as by a Master and Workers in Ray's actors made by hand; "+
		"it computes at most %.2f times as long as in local-cluster mode on the same cores", promisedSparkFirst, promisedSparkWork),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return onFrameworks(ctx, "frameworks-spark", showSpecs(ctx, state, live.SparkTimesLabel, 1, judgeSparkTimes))
	},
}

func judgeSparkTimes(ran []types.SpecReport) (Outcome, error) {
	samples, measured, err := entry[live.SparkTimes](ran, live.SparkTimesEntry)
	if err != nil {
		return Outcome{}, err
	}
	first, byHand := percentile(measured.Firsts, 50), percentile(measured.FirstsByHand, 50)
	work, local := percentile(measured.Works, 50), percentile(measured.WorksOfLocal, 50)
	return Outcome{
		Measured: fmt.Sprintf("the first task begins after %.1f s, by hand after %.1f s: %.2f times as late; it computes for %.1f s, in local-cluster mode %.1f s: "+
			"%.2f times as long; medians of %d", first, byHand, first/byHand, work, local, work/local, len(measured.Works)),
		Kept: len(measured.Works) >= live.SparkRunsMeasured && first <= promisedSparkFirst*byHand && work <= promisedSparkWork*local, Samples: samples,
	}, nil
}

// gangPods compares gangs on a cluster that is there with pods, of JobSet where the variable JOBSET names its source.
var gangPods = scenario{
	name: live.GangPodsLabel,
	promise: fmt.Sprintf("on a cluster that is there, a gang of four starts at least %.0f times as soon as the same processes in pods of their own",
		promisedGangPods),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return onFrameworks(ctx, "frameworks", showSpecs(ctx, state, live.GangPodsLabel, 1, judgeGangPods))
	},
}

func judgeGangPods(ran []types.SpecReport) (Outcome, error) {
	samples, measured, err := entry[live.GangPods](ran, live.GangPodsEntry)
	if err != nil {
		return Outcome{}, err
	}
	gang, pods := medianOfStarts(measured.Gangs), medianOfStarts(measured.Pods)
	return Outcome{
		Measured: fmt.Sprintf("a start takes %.2f s, %s %.2f s: %.1f times as soon; a restart %.2f s, and %.2f s: %.1f times as soon; medians of %d",
			gang.Start, measured.Of, pods.Start, pods.Start/gang.Start, gang.Restart, pods.Restart, pods.Restart/gang.Restart, len(measured.Gangs)),
		Kept: min(len(measured.Gangs), len(measured.Pods)) >= live.GangStartsMeasured && pods.Start >= promisedGangPods*gang.Start, Samples: samples,
	}, nil
}

// gangCost measures what the launcher takes, and how fast output arrives.
var gangCost = scenario{
	name: live.GangCostLabel,
	promise: fmt.Sprintf("driver and agent hold at most %.0f MiB more than those of a driver made by hand, and a guard at most %.0f MiB; a place with 16 calm processes takes "+
		"less than %.0f %% of a core; 100 MB of lines that a program writes one by one arrive whole, at %.1f × of a file or faster",
		promisedGangMemory, promisedGuardMemory, 100*promisedGangCPU, promisedGangOutput),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return onFrameworks(ctx, "frameworks", showSpecs(ctx, state, live.GangCostLabel, 1, judgeGangCost))
	},
}

func judgeGangCost(ran []types.SpecReport) (Outcome, error) {
	samples, m, err := entry[live.GangCosts](ran, live.GangCostEntry)
	if err != nil {
		return Outcome{}, err
	}
	flushed, buffered := percentile(m.Flushed, 50), percentile(m.Buffered, 50)
	isSmall := m.Driver-m.DriverByHand <= promisedGangMemory && m.Agent-m.AgentByHand <= promisedGangMemory && m.Guard <= promisedGuardMemory
	return Outcome{
		Measured: fmt.Sprintf("driver %.1f MiB, by hand %.1f; agent %.1f MiB, by hand %.1f; guard %.1f MiB; a place takes %.2f %% of a core, by hand %.2f %%, "+
			"the driver %.2f %%, by hand %.2f %%; "+
			"lines one by one arrive at %.2f × of a file, as Python divides them at %.2f ×; medians of %d",
			m.Driver, m.DriverByHand, m.Agent, m.AgentByHand, m.Guard, 100*m.CPU, 100*m.CPUByHand, 100*m.DriverCPU, 100*m.DriverCPUByHand, flushed, buffered, len(m.Flushed)),
		Kept: isSmall && m.CPU < promisedGangCPU && len(m.Flushed) >= live.GangStartsMeasured && flushed >= promisedGangOutput, Samples: samples,
	}, nil
}

func medianOfStarts(all []live.GangStart) live.GangStart {
	var starts, restarts []float64
	for _, one := range all {
		starts, restarts = append(starts, one.Start), append(restarts, one.Restart)
	}
	return live.GangStart{Start: percentile(starts, 50), Restart: percentile(restarts, 50)}
}

// gangZombies counts what rounds leave below a process 1 that reaps nothing.
var gangZombies = scenario{
	name: "gang-zombies",
	promise: fmt.Sprintf("after %d rounds of %d processes below a process 1 that reaps nothing, as in a pod, there are at most %d zombies",
		gangRounds, processesOfGangRound, promisedGangZombies),
	play: func(ctx context.Context, _ string) (Outcome, error) {
		program := exec.CommandContext(ctx, "unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
			"python3", "-B", "ray-operator/launcher/tests/zombies.py", fmt.Sprint(gangRounds))
		out, err := program.CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return Outcome{Measured: strings.Join(lines[max(0, len(lines)-2):], "; "), Kept: err == nil}, ctx.Err()
	},
}

// entry decodes the only entry of a name that specs reported.
func entry[T any](ran []types.SpecReport, name string) (json.RawMessage, T, error) {
	var none T
	all, err := entries[T](ran, name)
	if err != nil {
		return nil, none, err
	}
	if len(all) != 1 {
		return nil, none, fmt.Errorf("find %s: %d specs reported them", name, len(all))
	}
	samples, err := json.Marshal(all)
	return samples, all[0], err
}

// percentile is the least value that as many of 100 values are at most, and 0 where there are none.
func percentile(values []float64, percent int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(float64(len(sorted)*percent)/100))-1)]
}
