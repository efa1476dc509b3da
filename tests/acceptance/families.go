package main

import (
	"context"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// ipv6Alone plays specs that are otherwise played with both families where there is IPv6 alone.
var ipv6Alone = scenario{
	name: live.IPv6Label,
	promise: "on a Kubernetes with IPv6 alone a cluster has workers while tasks wait, jobs succeed and have their output through the server for portals and its dashboards, " +
		"a service loses no request through a change of its image, and policies keep out whom they should",
	play: func(ctx context.Context, state string) (Outcome, error) {
		return onNodes(ctx, []string{"--ip-families", "ipv6"}, showSpecs(ctx, state, live.IPv6Label, 1, countPlayed))
	},
}
