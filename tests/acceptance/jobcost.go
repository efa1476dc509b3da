package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/heliostat-dev/heliostat/tests/bench/jobs"
)

// costlyJobs is how many jobs are measured, and how many clusters hang beside them.
const costlyJobs = 100

// jobCost measures what jobs cost the API server and the operator, alone and beside heads
// that hang.
var jobCost = scenario{
	name: "job-cost",
	promise: fmt.Sprintf("a job takes at most %.0f API calls and %.0f ms of the operator's CPU through its whole life, events apart; beside %d clusters "+
		"whose job API hangs, a reconcile and a submission take at most %.2f times as long", jobs.PromisedCalls, jobs.PromisedCPUMs, costlyJobs, jobs.Unchanged),
	play: func(ctx context.Context, state string) (Outcome, error) {
		text, failed, err := measured(ctx, state, "TestAJobCostsLittle", fmt.Sprintf("%s=%d", jobs.CostVariable, costlyJobs))
		if err != nil {
			return Outcome{}, err
		}
		var costs jobs.Costs
		if err := json.Unmarshal(text, &costs); err != nil {
			return Outcome{}, errors.Join(failed, fmt.Errorf("parse the figures: %w", err))
		}
		reconcile, submission := costs.Ratios()
		return Outcome{
			Measured: fmt.Sprintf("%s; beside %d that hang a reconcile takes %.2f times as long, a submission %.2f times", costs.Alone, costs.Hung, reconcile, submission),
			Kept: failed == nil && costs.Hung >= costlyJobs && costs.Alone.Calls <= jobs.PromisedCalls && costs.Alone.CPUMs <= jobs.PromisedCPUMs &&
				max(reconcile, submission) <= jobs.Unchanged*costs.Slower(),
			Samples: text,
		}, nil
	},
}
