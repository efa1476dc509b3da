package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// Full counts of the server for portals.
const (
	portalDecisions = 3000
	portalHistories = 2000
)

// portalRights compares the server's answers with those of the API server.
var portalRights = scenario{
	name: "portal-decisions",
	promise: fmt.Sprintf("of %d random requests of callers by token, and of as many by impersonation, the server answers each as "+
		"the API server answers the same identity", portalDecisions),
	play: func(ctx context.Context, _ string) (Outcome, error) {
		output, failed := integration(ctx, "TestServer_(DecidesAsTheAPIServer|ImpersonatesItsCallers)",
			fmt.Sprintf("HELIOSTAT_DECISIONS=%d", portalDecisions))
		return saidBy(output, answersByCode, 2, failed)
	},
}

// portalStreams plays histories of changes, cuts and resumes.
var portalStreams = scenario{
	name: "portal-histories",
	promise: fmt.Sprintf("through %d histories of changes, cuts and resumes on two replicas, each watcher's state equals the store's, "+
		"and nothing comes twice", portalHistories),
	play: func(ctx context.Context, _ string) (Outcome, error) {
		c := exec.CommandContext(ctx, "go", "test", "-v", "-count=1", "-run", "^TestWatch_EveryHistoryEndsRight$", "./apiserver/feed")
		c.Env = append(os.Environ(), fmt.Sprintf("HELIOSTAT_HISTORIES=%d", portalHistories))
		c.Stderr = os.Stderr
		output, failed := c.Output()
		return saidBy(string(output), streamsResumed, 1, failed)
	},
}

// What the tests say when they are over.
var (
	answersByCode  = regexp.MustCompile(`\d+ decisions, answers by code: map\[.*\]`)
	streamsResumed = regexp.MustCompile(`\d+ histories, .*`)
)

// saidBy returns what tests said of themselves, so many times, and whether they passed.
func saidBy(output string, what *regexp.Regexp, times int, failed error) (Outcome, error) {
	found := what.FindAllString(output, -1)
	if len(found) != times {
		return Outcome{}, errors.Join(fmt.Errorf("the tests said %d times what they did, want %d", len(found), times), failed)
	}
	return Outcome{Measured: strings.Join(found, "; "), Kept: failed == nil}, nil
}
