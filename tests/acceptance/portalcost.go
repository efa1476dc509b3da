package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/bench/portals"
)

// portalLatency asks the server and the API server the same in turn.
var portalLatency = scenario{
	name: "portal-latency",
	promise: fmt.Sprintf("with 5,000 objects the first page of 100 lines takes at p99 at most as long as the API server's own list of 100 objects, and under "+
		"%.0f ms; a get that is passed through takes at most %.1f times as long as a direct one, at p50", portals.PromisedPageMs, portals.PromisedGet),
	play: func(ctx context.Context, state string) (Outcome, error) {
		rounds, text, err := beside[portals.Latency](ctx, state, "latency")
		if err != nil {
			return Outcome{}, err
		}
		server, direct, isPageKept := portals.Page(rounds)
		ratio, isGetKept := portals.Get(rounds)
		return Outcome{
			Measured: fmt.Sprintf("a page %.1f ms at p99 (%.1f at p50), the list %.1f ms (%.1f); a get %.2f times as long",
				server.P99, server.P50, direct.P99, direct.P50, ratio),
			Kept: isPageKept && isGetKept, Samples: text,
		}, nil
	},
}

// The callers who watch speak either protocol: browsers and Go's client HTTP/2, Python's and Node's HTTP/1.1.
var (
	portalWatching      = watchingBy("portal-watch", "HTTP/2")
	portalWatchingHTTP1 = watchingBy("portal-watch-http1", "HTTP/1.1")
	portalMemory        = holdingBy("portal-memory", "HTTP/2")
	portalMemoryHTTP1   = holdingBy("portal-memory-http1", "HTTP/1.1")
)

// watchingBy has callers watch the API server by HTTP/2, and the server by a protocol.
func watchingBy(name, protocol string) scenario {
	return scenario{
		name: name,
		promise: fmt.Sprintf("1,000 callers who watch 2,000 clusters by %s get 100 changes a second, at p99 less than %.0f ms after the write was sent, and "+
			"for each event the server uses at most %.2f of the CPU that the API server uses for the same watches by HTTP/2",
			protocol, portals.PromisedDelayMs, portals.PromisedWatchCPU),
		play: func(ctx context.Context, state string) (Outcome, error) {
			rounds, text, err := beside[portals.Watching](ctx, state, "watch", "-protocol", protocol)
			if err != nil {
				return Outcome{}, err
			}
			share, delay, isKept := portals.Watched(rounds)
			return Outcome{Measured: fmt.Sprintf("a change comes after %.0f ms at p99; %.3f of the CPU", delay, share), Kept: isKept, Samples: text}, nil
		},
	}
}

// holdingBy has the server and a program with the same informers side by side, and then callers who watch by a protocol.
func holdingBy(name, protocol string) scenario {
	return scenario{
		name: name,
		promise: fmt.Sprintf("with 5,000 objects the server holds at most %.1f times as much memory as a program with the same informers, and at most %.0f KiB "+
			"more for each of 1,000 watchers by %s", portals.PromisedMemory, portals.PromisedWatcherKiB, protocol),
		play: func(ctx context.Context, state string) (Outcome, error) {
			rounds, text, err := beside[portals.Holding](ctx, state, "memory", "-protocol", protocol)
			if err != nil {
				return Outcome{}, err
			}
			ratio, each, isKept := portals.Held(rounds)
			return Outcome{Measured: fmt.Sprintf("%.2f times as much, and %.0f KiB for each watcher", ratio, each), Kept: isKept, Samples: text}, nil
		},
	}
}

// beside measures the server beside the API server, and returns the rounds and their text.
func beside[R any](ctx context.Context, state, what string, flags ...string) ([]R, json.RawMessage, error) {
	return figuresOf[R](ctx, state, bench{tool: "portals", what: what, rounds: portalRounds, flags: flags})
}

// bench is a tool below tests/bench, what it measures how often, and its further flags.
type bench struct {
	tool, what string
	rounds     int
	flags      []string
}

// figuresOf measures by a tool on a control plane of its own, and returns the rounds and their text.
func figuresOf[R any](ctx context.Context, state string, by bench) ([]R, json.RawMessage, error) {
	file, err := filepath.Abs(filepath.Join(state, by.tool+"-"+by.what+".json"))
	if err != nil {
		return nil, nil, fmt.Errorf("name the file of figures: %w", err)
	}
	err = onControlPlane(ctx, func(environment []string) error {
		return command(ctx, environment, "go", append([]string{
			"run", "./tests/bench/" + by.tool + "/measure", "-what", by.what, "-rounds", fmt.Sprint(by.rounds), "-out", file,
		}, by.flags...)...)
	})
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, errors.Join(err, fmt.Errorf("read the figures of %s: %w", by.what, err))
	}
	rounds, err := parse[R](text)
	return rounds, text, err
}

// besideTable tells of rounds in a table with a row for each.
func besideTable[R any](head string, row func(R) string) func(json.RawMessage) string {
	return func(samples json.RawMessage) string {
		rounds, err := parse[R](samples)
		if err != nil {
			return err.Error() + "\n"
		}
		var b strings.Builder
		b.WriteString(head)
		for i, one := range rounds {
			fmt.Fprintf(&b, "| %d | %s |\n", i+1, row(one))
		}
		return b.String()
	}
}

var (
	portalLatencyTable = besideTable("Milliseconds, p50, p99 and the longest.\n\n"+
		"| round | requests of each sort | page of the server | list of the API server | get passed through | direct get |\n|---|---|---|---|---|---|\n",
		func(l portals.Latency) string {
			return fmt.Sprintf("%d | %s | %s | %s | %s", l.Requests, l.Page.Server, l.Page.Direct, l.Get.Server, l.Get.Direct)
		})
	portalWatchTable = besideTable("The same rate of changes three times: one caller watches the API server, all watch the server, all watch the API server. CPU is in "+
		"microseconds for each event that a watcher got: of the server; of the API server for its own watches, what the changes cost apart; of the API server "+
		"for reviews of the rights of the server's callers. Delays are p50, p99 and the longest in milliseconds.\n\n"+
		"| round | watchers | changes a second: server, API server | events for each watcher: server, API server | CPU: server | API server | reviews | delay: server | API server | API server with one caller | watches that the API server broke off |\n"+
		"|---|---|---|---|---|---|---|---|---|---|---|\n",
		func(w portals.Watching) string {
			direct, server := w.PerEvent()
			return fmt.Sprintf("%d | %.0f, %.0f | %.0f, %.0f | %.1f | %.1f | %.1f | %s | %s | %s | %d", w.Watchers, w.Server.Rate(), w.Direct.Rate(), w.Server.Events, w.Direct.Events,
				server, direct, w.Reviews(), w.Server.Delays, w.Direct.Delays, w.Alone.Delays, w.Direct.Broken)
		})
	portalMemoryTable = besideTable("Resident memory in MiB, while 50 changes a second are made.\n\n"+
		"| round | objects, pods | informers alone | server | server with its watchers | KiB for each watcher |\n|---|---|---|---|---|---|\n",
		func(h portals.Holding) string {
			return fmt.Sprintf("%d, %d | %.1f | %.1f | %.1f | %.0f", h.Objects, h.Pods, h.Informers, h.Server, h.Watched, h.WatcherKiB())
		})
)
