// Package sidecar makes the autoscaler's rounds, beside a cluster's head.
//
// In: what the head's GCS tells of demand and nodes, the operator's snapshot of the cluster, and the time.
// Out: the decision for the operator, idle nodes that are told to go, reports by which Ray and
// its libraries know what is done, and metrics.
//
// It must never let a worker go of which Ray has not said that it is gone, tell a node to
// go while no operator would hear of it, take no answer for an empty one, or hold any
// credential but the cluster's token. What it remembers may be lost at any time.
package sidecar

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/server"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/process"
)

// Config is what the process is told.
type Config struct {
	// GCS, Listen and Metrics are host:port: of the head's GCS, of the port for the operator,
	// and of the one for metrics and health.
	GCS, Listen, Metrics string
	// Head is the UID of the pod that this runs in; empty takes snapshots for any.
	Head string
	// Token gives the cluster's token again each time; nil is none.
	Token func() (string, error)
	// Client is what the connection to GCS is encrypted with, Server the one that the operator makes; nil are those of
	// a cluster without encryption.
	Client, Server *tls.Config
	Log            *slog.Logger
	Clock          clock.Clock
}

// Limits of the port for metrics, which the code of users can reach.
const (
	readers     = 8
	readTimeout = 5 * time.Second
	maxHeader   = 8 << 10
)

// Run listens to the operator and makes rounds until its context ends.
func Run(ctx context.Context, cfg Config) error {
	stream, err := process.Listen(ctx, cfg.Listen, cfg.Clock, cfg.Log)
	if err != nil {
		return fmt.Errorf("listen for the operator: %w", err)
	}
	web, err := process.Listen(ctx, cfg.Metrics, cfg.Clock, cfg.Log)
	if err != nil {
		_ = stream.Close() // the failure is another
		return fmt.Errorf("listen for who reads metrics: %w", err)
	}
	link := server.New(server.Options{Token: cfg.Token, Head: cfg.Head, TLS: cfg.Server})
	metrics := NewMetrics(cfg.Clock)
	loop := Loop{Dial: cfg.dial, Link: link, Clock: cfg.Clock, Log: cfg.Log, Metrics: metrics, Address: reachable(web.Addr())}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return link.Serve(ctx, stream) })
	group.Go(func() error { return serve(ctx, web, metrics.Handler()) })
	group.Go(func() error {
		loop.Run(ctx)
		return nil
	})
	return group.Wait()
}

func (cfg Config) dial() (Head, error) {
	options := headclient.Options{MaxReply: headclient.RayMaxReply}
	if cfg.Token != nil {
		options.Token = func(context.Context) (string, error) { return cfg.Token() }
	}
	if cfg.Client != nil {
		options.Trust = trust{cfg.Client}
	}
	head, err := headclient.Dial(cfg.GCS, options)
	if err != nil {
		return nil, err // a nil *Client is no Head
	}
	return head, nil
}

// trust is a headclient.Trust that is the same for each connection.
type trust struct{ config *tls.Config }

// Config returns what the connection is encrypted with.
func (t trust) Config(context.Context) (*tls.Config, error) { return t.config, nil }

// serve serves HTTP until its context ends.
func serve(ctx context.Context, on net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadTimeout: readTimeout, WriteTimeout: 2 * readTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // anyone who reaches the port could fill the log
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // what is cut off is a scrape
	if err := server.Serve(netutil.LimitListener(on, readers)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// reachable is where others find a listener: its own address or, where it listens on all,
// the first of this machine that is not for itself alone. It is empty where there is none.
func reachable(listener net.Addr) string {
	at, err := netip.ParseAddrPort(listener.String())
	if err != nil {
		return ""
	}
	if !at.Addr().IsUnspecified() {
		return at.String()
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return net.JoinHostPort(network.IP.String(), strconv.Itoa(int(at.Port())))
		}
	}
	return ""
}
