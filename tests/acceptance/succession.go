package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
)

// succession shows how soon another operator leads, on an API server that serves nothing else. The tests judge the
// times.
var succession = scenario{
	name: "succession",
	promise: "a standby leads at most 20 s after its leader is killed or paused, and 3 s after it is told to end; " +
		"an operator ends at most 10 s after SIGTERM, and 12 s after it goes on as a former leader; " +
		"a deleted Lease is there again after 20 s; " +
		"five jobs that wait for one place take at most 30 s",
	play: func(ctx context.Context, _ string) (Outcome, error) {
		output, failed := integration(ctx, "("+strings.Join([]string{
			"TestAStandbyFollowsAKilledLeader", "TestAStandbyFollowsALeaderThatEnds",
			"TestALeaderThatWasPausedEndsWhenItGoesOn", "TestADeletedLeaseIsMadeAnew",
			"TestProbesAndEndOfAnOperator", "TestAPlaceThatIsGivenBackIsTaken",
		}, "|")+")")
		return succeeded(output, failed)
	},
}

// timedLine is what the tests say of a time that they measured.
var timedLine = regexp.MustCompile(
	`_test\.go:\d+: ((?:killed|paused|told to end|ended|a deleted Lease|one after the other)\b.*)`)

func succeeded(output string, failed error) (Outcome, error) {
	var lines []string
	for _, found := range timedLine.FindAllStringSubmatch(output, -1) {
		lines = append(lines, found[1])
	}
	if len(lines) == 0 {
		return Outcome{}, errors.Join(errors.New("the tests did not say how long anything took"), failed)
	}
	return Outcome{Measured: strings.Join(lines, "; "), Kept: failed == nil}, nil
}
