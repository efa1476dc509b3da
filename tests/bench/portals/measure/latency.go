package main

import (
	"context"
	"fmt"
	"time"

	"github.com/heliostat-dev/heliostat/tests/bench/portals"
)

// What is asked for, and how often.
const (
	pagePath = "/v1/objects?limit=100"
	listPath = "/apis/heliostat.dev/v1beta1/computeclusters?limit=100"
	getPath  = "/apis/heliostat.dev/v1beta1/namespaces/team-0/computeclusters/cluster-0"

	warmUps = 50
	callers = 10
)

// latency sends the same requests to both ends in turn.
func (m *measurement) latency(ctx context.Context) (portals.Latency, error) {
	s, err := m.startServer(ctx)
	if err != nil {
		return portals.Latency{}, err
	}
	defer func() { _ = s.Stop() }()
	tokens, err := m.tokens(ctx, callers)
	if err != nil {
		return portals.Latency{}, err
	}
	var ends [2][]*caller
	for i, one := range []end{s.end, m.direct()} {
		for _, token := range tokens {
			made, err := one.caller(token)
			if err != nil {
				return portals.Latency{}, err
			}
			ends[i] = append(ends[i], made)
		}
	}
	round := portals.Latency{Objects: m.objects, Requests: m.requests}
	if round.Page, err = m.inTurn(ctx, ends, [2]string{pagePath, listPath}); err != nil {
		return round, err
	}
	round.Get, err = m.inTurn(ctx, ends, [2]string{getPath, getPath})
	return round, err
}

// inTurn asks the one end and then the other, again and again. Who is first alternates.
func (m *measurement) inTurn(ctx context.Context, ends [2][]*caller, paths [2]string) (portals.Pair, error) {
	var took [2][]float64
	for i := range warmUps + m.requests {
		for j := range 2 {
			at := (i + j) % 2
			began := time.Now()
			text, err := ends[at][i%callers].get(ctx, paths[at])
			if err != nil {
				return portals.Pair{}, err
			}
			if len(text) == 0 {
				return portals.Pair{}, fmt.Errorf("ask for %s: the answer is empty", paths[at])
			}
			if i >= warmUps {
				took[at] = append(took[at], ms(time.Since(began)))
			}
		}
	}
	return portals.Pair{Server: portals.TimesOf(took[0]), Direct: portals.TimesOf(took[1])}, nil
}
