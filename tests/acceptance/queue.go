package main

import (
	"context"
	"regexp"
)

// queueing shows clusters and jobs that share a quota of Kueue.
var queueing = scenario{
	name:    "kueue",
	promise: "20 clusters and 50 jobs go through a queue of half their size, with preemption: all run, no attempt runs twice, the quota holds at every revision of their pods",
	play:    playQueue,
}

var sharedQuota = regexp.MustCompile(`\d+ clusters and \d+ jobs ran; at most \d+ of \d+ mCPU were used at once, and \d+ Workloads were evicted`)

func playQueue(ctx context.Context, _ string) (Outcome, error) {
	printed, failed := integration(ctx, "TestKueue")
	found := sharedQuota.FindString(printed)
	if failed != nil {
		found = failed.Error()
	}
	return Outcome{Measured: found, Kept: failed == nil && found != ""}, ctx.Err()
}
