package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/bench/portals"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// lookingEach is each how many callers look into what comes.
	lookingEach = 50
	// warmFor is how long changes are made before what they cost is counted, and lastFor how long the last may take.
	warmFor = 5 * time.Second
	lastFor = 30 * time.Second
	// linesOfEvent are those of a server-sent event: its ID, its type, its data and an empty one.
	linesOfEvent = 4
)

// crowd are callers who watch.
type crowd struct {
	readings []*reading
	ends     context.CancelFunc
	gone     sync.WaitGroup
	// linesOf is how many lines an event has.
	linesOf int64
	failed  chan error
}

// watch begins a watch of each caller at an end.
func (m *measurement) watch(ctx context.Context, at end, tokens []string, what watching, linesOf int64) (*crowd, error) {
	open, stop := context.WithCancel(ctx)
	c := &crowd{ends: stop, linesOf: linesOf, readings: make([]*reading, len(tokens)), failed: make(chan error, len(tokens))}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, token := range tokens {
		group.Go(func() error {
			one, err := at.caller(token)
			if err != nil {
				return err
			}
			body, err := one.open(open, what.path+what.since)
			if err != nil {
				return err
			}
			own := what
			own.isLooking = i%lookingEach == 0
			c.readings[i] = &reading{}
			c.gone.Go(func() {
				if err := c.readings[i].watch(open, one, body, own); err != nil {
					c.failed <- err
				}
				one.CloseIdleConnections()
			})
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// end ends all watches.
func (c *crowd) end() {
	c.ends()
	c.gone.Wait()
}

// events is how many each watcher got, on average.
func (c *crowd) events() float64 {
	var lines int64
	for _, one := range c.readings {
		lines += one.lines.Load() / c.linesOf
	}
	return float64(lines) / float64(len(c.readings))
}

// arrivals are those of the callers who look, and broken is how often the other end broke a watch off. The watches are over.
func (c *crowd) arrivals() (all []arrival, broken int) {
	for _, one := range c.readings {
		all, broken = append(all, one.arrivals...), broken+one.broken
	}
	return all, broken
}

// watching makes the same changes while one caller watches the API server, while all watch the server, and while all watch
// the API server.
func (m *measurement) watching(ctx context.Context) (round portals.Watching, err error) {
	round.Watchers = m.watchers
	s, err := m.startServer(ctx)
	if err != nil {
		return round, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	tokens, err := m.tokens(ctx, m.watchers)
	if err != nil {
		return round, err
	}
	for _, phase := range []struct {
		into  *portals.Phase
		watch func() (*crowd, error)
	}{
		{&round.Alone, func() (*crowd, error) { return m.watchDirect(ctx, tokens[:1]) }},
		{&round.Server, func() (*crowd, error) { return m.watchServer(ctx, s, tokens) }},
		{&round.Direct, func() (*crowd, error) { return m.watchDirect(ctx, tokens) }},
	} {
		if *phase.into, err = m.phase(ctx, s, phase.watch); err != nil {
			return round, err
		}
		fmt.Printf("  %+v\n", *phase.into)
	}
	return round, nil
}

// watched is where the server's callers watch, by their protocol.
func (m *measurement) watched(s *server) end {
	return end{url: s.url, authority: s.authority, isHTTP1: m.protocol == protocolHTTP1}
}

// watchServer begins watches where a page ends, as portals do.
func (m *measurement) watchServer(ctx context.Context, s *server, tokens []string) (*crowd, error) {
	first, err := s.caller(tokens[0])
	if err != nil {
		return nil, err
	}
	text, err := first.get(ctx, "/v1/objects?kinds=clusters&limit=1")
	if err != nil {
		return nil, err
	}
	var page struct{ Cursor string }
	if err := json.Unmarshal(text, &page); err != nil {
		return nil, fmt.Errorf("read the first page: %w", err)
	}
	return m.watch(ctx, m.watched(s), tokens, watching{path: "/v1/objects/watch?kinds=clusters&since=", since: page.Cursor}, linesOfEvent)
}

// watchDirect begins the same watches where a list ends.
func (m *measurement) watchDirect(ctx context.Context, tokens []string) (*crowd, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ComputeClusterList"))
	if err := m.List(ctx, list, client.Limit(1)); err != nil {
		return nil, fmt.Errorf("list the clusters: %w", err)
	}
	what := watching{path: "/apis/heliostat.dev/v1beta1/computeclusters?watch=true&resourceVersion=", since: list.ResourceVersion}
	return m.watch(ctx, m.direct(), tokens, what, 1)
}

// spent is what both have used.
func (m *measurement) spent(s *server) (apiServer, own float64, err error) {
	first, err := live.CPUTime(m.apiServer)
	if err != nil {
		return 0, 0, err
	}
	second, err := live.CPUTime(s.Cmd.Process.Pid)
	return first.Seconds(), second.Seconds(), err
}

// phase counts what changes cost both, from the first change until the last one has arrived.
func (m *measurement) phase(ctx context.Context, s *server, watch func() (*crowd, error)) (p portals.Phase, err error) {
	c, err := watch()
	if err != nil {
		return p, err
	}
	defer c.end()
	warm, err := m.changes.run(ctx, m.rate, warmFor)
	if err == nil {
		err = c.until(ctx, float64(warm))
	}
	if err != nil {
		return p, err
	}
	had := c.events()
	began := time.Now()
	apiServer, own, err := m.spent(s)
	if err != nil {
		return p, err
	}
	if p.Changes, err = m.changes.run(ctx, m.rate, m.during); err != nil {
		return p, err
	}
	late := c.until(ctx, had+float64(p.Changes))
	if p.APIServerCPU, p.ServerCPU, err = m.spent(s); err != nil {
		return p, err
	}
	p.APIServerCPU, p.ServerCPU, p.Seconds = p.APIServerCPU-apiServer, p.ServerCPU-own, time.Since(began).Seconds()
	p.Events = c.events() - had
	if late != nil {
		fmt.Println("  not all events came:", late)
	}
	c.end()
	arrivals, broken := c.arrivals()
	p.Broken, p.Delays = broken, portals.TimesOf(m.changes.delays(arrivals))
	return p, nil
}

// until waits until each watcher has as many events.
func (c *crowd) until(ctx context.Context, want float64) error {
	return live.Until(ctx, lastFor, "all events", func(context.Context) error {
		select {
		case err := <-c.failed:
			return err
		default:
		}
		if got := c.events(); got < want {
			return fmt.Errorf("%.1f of %.0f for each watcher", got, want)
		}
		return nil
	})
}
