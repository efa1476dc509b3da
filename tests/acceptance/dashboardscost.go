package main

import (
	"context"
	"fmt"

	"github.com/heliostat-dev/heliostat/tests/bench/dashboards"
)

// How often each is measured. WebSockets take minutes, and always the same memory.
const (
	dashboardRounds       = 3
	dashboardSocketRounds = 1
)

// dashboardRates loads the proxy and nginx by wrk, in turn.
var dashboardRates = scenario{
	name: "dashboard-rates",
	promise: fmt.Sprintf("beside nginx, with TLS on both and permissions checked by the proxy alone: small requests at %.1f of its rate or more, downloads of "+
		"1 GB at %.1f or more, and at p50 at most %.1f times the time that it adds",
		dashboards.PromisedSmall, dashboards.PromisedDownload, dashboards.PromisedAdded),
	play: func(ctx context.Context, state string) (Outcome, error) {
		rounds, text, err := figuresOf[dashboards.Rates](ctx, state, bench{tool: "dashboards", what: "rates", rounds: dashboardRounds})
		if err != nil {
			return Outcome{}, err
		}
		small, download, added, isKept := dashboards.Rated(rounds)
		return Outcome{
			Measured: fmt.Sprintf("%.2f of its small requests, %.2f of its downloads, %.2f times the time that it adds", small, download, added),
			Kept:     isKept, Samples: text,
		}, nil
	},
}

// dashboardSockets holds as many WebSockets by the one and then by the other.
var dashboardSockets = scenario{
	name: "dashboard-sockets",
	promise: fmt.Sprintf("5,000 open WebSockets of two callers to one cluster, or as many as the machine lets a process have files for, take at most %.0f times nginx's "+
		"memory, and all are released within %.0f s", dashboards.PromisedMemory, dashboards.PromisedReleased),
	play: func(ctx context.Context, state string) (Outcome, error) {
		rounds, text, err := figuresOf[dashboards.Sockets](ctx, state, bench{tool: "dashboards", what: "sockets", rounds: dashboardSocketRounds})
		if err != nil {
			return Outcome{}, err
		}
		memory, released, isKept := dashboards.Held(rounds)
		return Outcome{
			Measured: fmt.Sprintf("%s, %.2f times as much; released after %.1f s", rounds[0], memory, released),
			Kept:     isKept, Samples: text,
		}, nil
	},
}

// dashboardBusy asks the API while the proxy is as busy as it can be.
var dashboardBusy = scenario{
	name: "dashboard-busy",
	promise: fmt.Sprintf("while %d uploads of 1 MiB a second and as many WebSockets as there can be are under way, /v1/objects takes at p99 at most %.1f "+
		"times as long as while there are none", dashboards.Uploads, dashboards.PromisedBusy),
	play: func(ctx context.Context, state string) (Outcome, error) {
		rounds, text, err := figuresOf[dashboards.Busy](ctx, state, bench{tool: "dashboards", what: "busy", rounds: dashboardRounds})
		if err != nil {
			return Outcome{}, err
		}
		times, isKept := dashboards.Slowed(rounds)
		return Outcome{
			Measured: fmt.Sprintf("%.2f times as long, with %d WebSockets", times, rounds[0].Open), Kept: isKept, Samples: text,
		}, nil
	},
}

var (
	dashboardRatesTable = besideTable("nginx, then the proxy: requests a second of 64 connections, MiB a second of one download, and milliseconds at p50 of one "+
		"request at a time, which takes the head itself as long as the last column says.\n\n"+
		"| round | small requests | download | one request | head itself |\n|---|---|---|---|---|\n",
		func(r dashboards.Rates) string {
			return fmt.Sprintf("%.0f, %.0f | %.0f, %.0f | %.3f, %.3f | %.3f", r.Small.Nginx, r.Small.Proxy, r.Download.Nginx, r.Download.Proxy,
				r.Took.Nginx, r.Took.Proxy, r.Direct)
		})
	dashboardSocketsTable = besideTable("nginx, then the server: memory in MiB before, with all open, and a minute after they were closed; seconds until no file "+
		"of them was open.\n\n| round | open | before | open | a minute after | released |\n|---|---|---|---|---|---|\n",
		func(s dashboards.Sockets) string {
			return fmt.Sprintf("%d | %.0f, %.0f | %.0f, %.0f | %.0f, %.0f | %.1f, %.1f", s.Open, s.Idle.Nginx, s.Idle.Proxy, s.Held.Nginx, s.Held.Proxy,
				s.After.Nginx, s.After.Proxy, s.Released.Nginx, s.Released.Proxy)
		})
	dashboardBusyTable = besideTable("Milliseconds of /v1/objects, p50, p99 and the longest. Beyond the limits one upload and one WebSocket were asked for.\n\n"+
		"| round | uploads | WebSockets | refused beyond | calm | busy |\n|---|---|---|---|---|---|\n",
		func(b dashboards.Busy) string {
			return fmt.Sprintf("%d | %d | %d | %s | %s", b.Uploads, b.Open, b.Refused, b.Calm, b.Busy)
		})
)
