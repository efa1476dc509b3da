package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/bench/dashboards"
)

// loads are what wrk is asked for: how many threads and connections, and for how long.
var (
	manySmall   = []string{"-t2", "-c64", "-d8s"}
	oneSmall    = []string{"-t1", "-c1", "-d5s"}
	oneDownload = []string{"-t1", "-c1", "-d8s", "--timeout", "60s"}
)

// rates sends the same requests to both ends in turn.
func (m *measurement) rates(ctx context.Context) (round dashboards.Rates, err error) {
	nginx, err := m.startNginx(ctx)
	if err != nil {
		return round, err
	}
	defer func() { err = errors.Join(err, nginx.Stop()) }()
	server, err := m.startServer(ctx)
	if err != nil {
		return round, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	requests := func(l dashboards.Load) float64 { return l.Requests }
	megabytes := func(l dashboards.Load) float64 { return l.MiB }
	half := func(l dashboards.Load) float64 { return l.P50 }
	for _, one := range []struct {
		into *dashboards.Pair
		of   func(dashboards.Load) float64
		load []string
		path string
	}{
		{&round.Small, requests, manySmall, smallPath}, {&round.Download, megabytes, oneDownload, downloadPath},
		{&round.Took, half, oneSmall, smallPath},
	} {
		ends := map[*float64]*end{&one.into.Nginx: nginx, &one.into.Proxy: server}
		for into, at := range ends {
			load, err := m.wrk(ctx, at.url(one.path), one.load)
			if err != nil {
				return round, err
			}
			*into = one.of(load)
		}
	}
	direct, err := m.wrk(ctx, "http://"+headIP+":8265"+smallPath, oneSmall)
	round.Direct = direct.P50
	return round, err
}

// wrk loads an address, with a caller's token.
func (m *measurement) wrk(ctx context.Context, url string, load []string) (dashboards.Load, error) {
	args := append([]string{"--latency", "-H", "Authorization: Bearer " + m.tokens[0]}, load...)
	out, err := exec.CommandContext(ctx, "wrk", append(args, url)...).CombinedOutput()
	if err != nil {
		return dashboards.Load{}, fmt.Errorf("load %s: %w: %s", url, err, out)
	}
	if strings.Contains(url, downloadPath) { // the download that wrk breaks off at its end counts as one that timed out
		out = []byte(strings.ReplaceAll(string(out), "Socket errors: connect 0, read 0, write 0, timeout", "timeouts"))
	}
	return dashboards.ParseWrk(string(out))
}
