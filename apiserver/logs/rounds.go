package logs

import (
	"context"
	"fmt"
	"time"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// searchHolds is for how long callers get what a search has found, from its end on.
const searchHolds = time.Second

// searchBounds bound searches that run at once: each asks all Ray nodes of a cluster.
var searchBounds = limits.Bounds{All: 256, User: 16, Namespace: 32, Target: 16}

// searched is what a search is for.
type searched struct {
	head heads.Head
	of   heads.Process
}

// search is a search for the logs of a process, which all callers share that come while it runs or soon after.
type search struct {
	// done is closed at its end, when the rounds and the error are there.
	done   chan struct{}
	rounds heads.Rounds
	err    error
}

// ListRounds returns the rounds of a process whose logs are on Ray nodes of a cluster. Errors are those of heads.
func (l *Logs) ListRounds(ctx context.Context, on heads.Reference, of heads.Process, who limits.Holder) (heads.Rounds, error) {
	head, err := l.settings.Heads.FindHead(on)
	if err != nil {
		return heads.Rounds{}, err
	}
	s, err := l.beginSearch(searched{head, of}, who)
	if err != nil {
		return heads.Rounds{}, err
	}
	select {
	case <-s.done:
		return s.rounds, s.err
	case <-ctx.Done():
		return heads.Rounds{}, context.Cause(ctx)
	}
}

// beginSearch returns the search that there is already, or begins one.
func (l *Logs) beginSearch(of searched, who limits.Holder) (*search, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() != nil {
		return nil, errEnds
	}
	if known := l.searches[of]; known != nil {
		return known, nil
	}
	giveBack, err := l.searching.Take(who.For(string(of.head.Cluster.UID)))
	if err != nil {
		return nil, busy(err)
	}
	s := &search{done: make(chan struct{})}
	l.searches[of] = s
	l.upstream.Go(func() {
		s.rounds, s.err = l.settings.Heads.ListRounds(l.life, of.head, of.of)
		s.err = l.explain(l.life, s.err)
		giveBack()
		close(s.done)
		_ = l.wait(l.life, searchHolds) // it ends early where the server does
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.searches, of)
	})
	return s, nil
}

// notThere returns that there is no log of a process in a round, 0 for any.
func notThere(of ProcessReference, found heads.Rounds) error {
	what, why := of.Name, found.Missing()
	if of.Round > 0 {
		what = fmt.Sprintf("round %d of %s", of.Round, of.Name)
	}
	if why == "" {
		why = "the process did not start, or its Ray node is gone with the log"
	}
	return &heads.Refusal{
		Sort: heads.NotFound, Code: reason.OutputGone.Code, Remedy: "List the rounds of the process",
		Message: fmt.Sprintf("there is no log of %s in attempt %d: %s", what, of.Job.Attempt, why),
	}
}
