package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/heliostat-dev/heliostat/tests/bench/beside"
	"github.com/heliostat-dev/heliostat/tests/bench/portals"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// settleFor is how long changes are made before memory is read, so that garbage of the start is gone, and readFor how
	// long it is read.
	settleFor = 60 * time.Second
	readFor   = 20 * time.Second
	// settleRate is of these changes, a second.
	settleRate = 50
)

// holding reads the memory of the server and of a program with the same informers, side by side, and then of the server with
// watchers.
func (m *measurement) holding(ctx context.Context) (round portals.Holding, err error) {
	round.Objects, round.Watchers, round.Pods = m.objects, m.watchers, m.pods
	tokens, err := m.tokens(ctx, m.watchers)
	if err != nil {
		return round, err
	}
	informers, err := m.Start("bin/informers", "--kubeconfig="+os.Getenv("KUBECONFIG"))
	if err != nil {
		return round, err
	}
	defer func() { err = errors.Join(err, informers.Stop()) }()
	s, err := m.startServer(ctx)
	if err != nil {
		return round, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	held, err := m.settle(ctx, informers, s.Process)
	if err != nil {
		return round, err
	}
	round.Informers, round.Server = held[0], held[1]
	c, err := m.watch(ctx, m.watched(s), tokens, watching{path: "/v1/objects/watch"}, linesOfEvent)
	if err != nil {
		return round, err
	}
	defer c.end()
	if err := c.until(ctx, float64(m.objects)); err != nil {
		return round, err
	}
	if held, err = m.settle(ctx, s.Process); err != nil {
		return round, err
	}
	round.Watched = held[0]
	return round, nil
}

// settle makes changes, and returns the resident memory of programs, the median of what is read each second meanwhile.
func (m *measurement) settle(ctx context.Context, programs ...*beside.Process) ([]float64, error) {
	if _, err := m.changes.run(ctx, settleRate, settleFor); err != nil {
		return nil, err
	}
	read := make([][]float64, len(programs))
	for end := time.Now().Add(readFor); time.Now().Before(end); {
		if _, err := m.changes.run(ctx, settleRate, time.Second); err != nil {
			return nil, err
		}
		for i, one := range programs {
			memory, err := live.MemoryOf(one.Process.Pid)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", one.Path, err)
			}
			read[i] = append(read[i], memory.Resident)
		}
	}
	medians := make([]float64, 0, len(programs))
	for _, all := range read {
		medians = append(medians, portals.Quantile(all, 0.5))
	}
	return medians, nil
}
