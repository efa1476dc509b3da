package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// demandRounds times 20 demands are measured.
const demandRounds = 5

// demand shows how soon a demand has its pod.
var demand = scenario{
	name:    "demand",
	promise: fmt.Sprintf("a demand has its pod after %.1f s (p50) and %.1f s (p95), of 100", promisedDemandHalf.Seconds(), promisedDemandMost.Seconds()),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.DemandLabel, demandRounds, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.Demand](ran, live.DemandEntry)
			if err != nil {
				return Outcome{}, err
			}
			if len(told) != 1 {
				return Outcome{}, errors.New("no spec measured demands")
			}
			samples, err := json.Marshal(told[0])
			kept := told[0].At(0.5) < promisedDemandHalf.Seconds() && told[0].At(0.95) < promisedDemandMost.Seconds()
			return Outcome{Measured: told[0].String(), Kept: kept, Samples: samples}, err
		})
	},
}

// givenBack shows how soon idle workers are told to go.
var givenBack = within(live.GivenBackLabel, live.GivenBackEntry, promisedGivenBack, 10,
	"idle workers are told to go %.0f s after the last result, with an idle limit of 5 s, %d times")

// churnRounds times forty tasks are run.
const churnRounds = 5

// churn shows that what scales down loses nothing.
var churn = scenario{
	name: live.ChurnLabel,
	promise: fmt.Sprintf("%d times 40 tasks that nothing may run twice, in waves as idle workers go after 2 s and the autoscaler is killed: "+
		"none lost, and no object that is still referred to", churnRounds),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.ChurnLabel, churnRounds, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.Churn](ran, live.ChurnEntry)
			if err != nil {
				return Outcome{}, err
			}
			var sum live.Churn
			for _, one := range told {
				sum.Done, sum.Read, sum.Gone = sum.Done+one.Done, sum.Read+one.Read, sum.Gone+one.Gone
			}
			samples, err := json.Marshal(told)
			return Outcome{Measured: fmt.Sprintf("%d times, %s", len(told), sum), Kept: len(told) >= churnRounds, Samples: samples}, err
		})
	},
}

// apiAway shows that an autoscaled cluster stands a minute without an API server.
var apiAway = within(live.AwayLabel, live.AwayEntry, promisedBack, 1,
	"the API server is away for a minute: what runs is left alone, and what waits has its pods %.0f s after it is back, %d time")

// again shows that what waits is served after the head was lost.
var anew = within(live.AnewLabel, live.AnewEntry, promisedAnew, 1,
	"the control service dies, and then the head: what is submitted afterwards has its worker and is done after %.0f s, %d time each")

// autoscalerTrouble shows that an autoscaler stays within its bounds, whatever happens around it.
var autoscalerTrouble = passing(live.AutoscalerTroubleLabel, "an autoscaler stays within the bounds of its cluster while job code gives orders, "+
	"floods its port and takes its place; it keeps all workers while the control service gives no answer; "+
	"it makes workers for Ray Data")

// selected shows that what selects labels has a worker of a group without any.
var selected = within(live.SelectedLabel, live.SelectedEntry, promisedSelected, 3,
	"tasks that select a type of accelerator and a market are done on a group at zero after %.0f s, %d times")

// slice shows that a trainer's reservation makes a whole TPU slice.
var slice = within(live.SliceLabel, live.SliceEntry, promisedSlice, 1,
	"a TPU slice of two hosts with fake devices that is reserved at zero has work on each host after %.0f s, %d time")

// elasticRolling shows that no task is lost while the workers of an autoscaled cluster are replaced.
var elasticRolling = scenario{
	name:    live.ElasticRollLabel,
	promise: fmt.Sprintf("all workers of an autoscaled group replaced %d times under a stream of tasks that nothing may run twice: none lost", elasticRollRounds),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.ElasticRollLabel, elasticRollRounds, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.Roll](ran, live.RollEntry)
			if err != nil {
				return Outcome{}, err
			}
			return count(told)
		})
	},
}

// elasticRollRounds times all workers are replaced.
const elasticRollRounds = 3

// neverStart shows that workers that never start are not made over and over.
var neverStart = scenario{
	name:    live.FailingLabel,
	promise: "30 minutes with an image that does not exist: never more workers than the demand, and the work is done once the image is mended",
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.FailingLabel, 1, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.Failing](ran, live.FailingEntry)
			if err != nil {
				return Outcome{}, err
			}
			if len(told) != 1 {
				return Outcome{}, errors.New("no spec counted workers that never start")
			}
			samples, err := json.Marshal(told[0])
			return Outcome{Measured: told[0].String(), Kept: told[0].Most <= told[0].Demand && told[0].Minutes >= 30, Samples: samples}, err
		})
	},
}

// quiet shows what an idle cluster's autoscaler costs.
var quiet = scenario{
	name: live.QuietLabel,
	promise: fmt.Sprintf("ten idle minutes: the autoscaler's container is charged less than %.0f MB and takes less than %.0f ms of CPU a round, "+
		"and the operator makes no call about the cluster", live.PromisedQuietBytes/1e6, live.PromisedQuietCPU.Seconds()*1000),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.QuietLabel, 1, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.Quiet](ran, live.QuietEntry)
			if err != nil {
				return Outcome{}, err
			}
			if len(told) != 1 {
				return Outcome{}, errors.New("no spec measured an idle cluster")
			}
			samples, err := json.Marshal(told[0])
			return Outcome{Measured: told[0].String(), Kept: told[0].Kept(), Samples: samples}, err
		})
	},
}
