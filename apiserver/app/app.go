// Package app puts the server together: listeners, TLS, and what happens to every request before and after it is
// handed on.
//
// In: a Config, filled from flags by cmd/server. Out: a server that runs until its context ends, an audit line for each
// request that changes something, metrics and health on ports of their own.
//
// It must never write a token, a body or a query into a log, or answer a request without a token but by 401 or the page.
package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/heliostat-dev/heliostat/apiserver/connections"
	"github.com/heliostat-dev/heliostat/apiserver/passthrough"
	"github.com/heliostat-dev/heliostat/apiserver/rest"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/web"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Config is what can be set about the server.
type Config struct {
	// Address is host:port on which callers are served, always with TLS.
	Address string
	// CertFile and KeyFile have the server's certificate. They are read again when they change.
	CertFile, KeyFile string
	// GRPCAddress is host:port on which callers are served by gRPC, always with TLS; "0" turns off.
	GRPCAddress string
	// APIServer is the https address of the API server, and CAFile the certificate of its authority.
	APIServer, CAFile string
	// TokenFile has the token of the server's own account, and Namespace is where the server runs.
	TokenFile, Namespace string
	// Namespaces are those whose objects the server reads by itself; none is all.
	Namespaces []string
	// OutputDirectory is where outputs of jobs are kept while they are read.
	OutputDirectory string
	// Identity says who is believed to be whom.
	Identity access.Identity
	// History says where archivers are; without addresses no history is kept.
	History History
	// Page says where the page is from, and who can show it in a frame.
	Page web.Settings
	// Dashboards says where clusters and services are served.
	Dashboards Dashboards
	// SignIn is how users of the page sign in; nil is that each request brings a token.
	SignIn *SignIn
	// MetricsAddress and HealthAddress are host:port to listen on; "0" turns off.
	MetricsAddress, HealthAddress string
	// Log gets audit lines, and what goes wrong.
	Log *slog.Logger
	// Clock is what time is read from.
	Clock clock.WithTickerAndDelayedExecution
}

// How long callers may take, and what they may send.
const (
	headerWithin = 10 * time.Second
	idleWithin   = 2 * time.Minute
	// probeAfter is when a quiet connection is asked whether somebody is there.
	probeAfter = 15 * time.Second
	// maxHeader is how many bytes of headers are read. What has more than MaxHeader, and fewer than that, gets a Status.
	maxHeader = 2 * MaxHeader
	// endWithin is how long answers may go on after the server was told to end.
	endWithin = 20 * time.Second
)

// Run serves until the context ends.
func Run(ctx context.Context, cfg Config) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	kubernetes, err := access.New(access.Options{
		Address: cfg.APIServer, CAFile: cfg.CAFile, TokenFile: cfg.TokenFile, Identity: cfg.Identity, Scheme: scheme, Clock: cfg.Clock,
	})
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	certificate, err := certwatcher.New(cfg.CertFile, cfg.KeyFile)
	if err != nil {
		return fmt.Errorf("read the server's certificate: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // also where not all could be started
	group, ctx := errgroup.WithContext(ctx)
	registry := newRegistry()
	front, portal, err := newFront(ctx, cfg, kubernetes, registry)
	if err != nil {
		return err
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.GetCertificate, ClientAuth: tls.NoClientCert}
	kubernetes.ConfigureTLS(settings)
	group.Go(func() error { return certificate.Start(ctx) })
	group.Go(func() error { return portal.run(ctx) })
	limits := connections.New()
	calls := portal.api.NewGRPC(credentials.NewTLS(settings.Clone()), front.aroundCall(), grpc.StatsHandler(limits.ForGRPC()))
	all := []server{
		{cfg.Address, serving(newServer(front, settings, cfg.Log, cfg.Clock))},
		{cfg.GRPCAddress, func(ctx context.Context, listener net.Listener) error {
			return serveGRPC(ctx, limits.Listen(listener), calls)
		}},
		{cfg.MetricsAddress, serving(newServer(metricsOf(registry), nil, cfg.Log, cfg.Clock))},
		{cfg.HealthAddress, serving(newServer(health(portal.view.IsSynced), nil, cfg.Log, cfg.Clock))},
	}
	if !cfg.Dashboards.isOff() {
		clusters, err := newDashboards(ctx, cfg, front, portal, registry)
		if err != nil {
			return err
		}
		all = append(all, server{cfg.Dashboards.Address, clusters.serving(newServer(clusters, settings.Clone(), cfg.Log, cfg.Clock))})
	}
	for _, one := range all {
		if one.address == "0" {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", one.address)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		group.Go(func() error { return one.serve(ctx, listener) })
	}
	cfg.Log.Info("Serving", "address", cfg.Address, "apiServer", cfg.APIServer, "identity", cfg.Identity.Mode)
	if err := group.Wait(); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// server is what serves at an address; "0" is nowhere.
type server struct {
	address string
	serve   func(ctx context.Context, listener net.Listener) error
}

// newFront returns what every request meets, and the half of the server that has to be run.
func newFront(
	ctx context.Context, cfg Config, kubernetes *access.Kubernetes, registry prometheus.Registerer,
) (*front, *portal, error) {
	streams, requests := limits.NewStreams(), limits.NewRequests()
	measured, err := newMetrics(registry, streams.Count)
	if err != nil {
		return nil, nil, err
	}
	portal, err := newPortal(cfg, kubernetes)
	if err != nil {
		return nil, nil, err
	}
	built, err := web.New(cfg.Page)
	if err != nil {
		return nil, nil, err
	}
	proxy := passthrough.New(ctx, passthrough.Needs{
		Kubernetes: kubernetes, Streams: streams, Requests: requests, Clock: cfg.Clock, Log: cfg.Log})
	signIn, clusters, err := newSignIn(cfg, kubernetes)
	if err != nil {
		return nil, nil, err
	}
	return &front{
		kubernetes: kubernetes, objects: objects{kubernetes, proxy}, sessions: sessions{signIn, cfg.Clock}, clusters: clusters,
		verbs: verbs{kubernetes: kubernetes, api: portal.api, streams: streams, requests: requests, clock: cfg.Clock},
		page:  page{built}, metrics: measured, log: cfg.Log, clock: cfg.Clock,
	}, portal, nil
}

// serving returns what serves a listener by HTTP.
func serving(server *http.Server) func(ctx context.Context, listener net.Listener) error {
	return func(ctx context.Context, listener net.Listener) error { return serve(ctx, listener, server) }
}

// newScheme returns the kinds that the server reads and writes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), eventsv1.AddToScheme(scheme),
		v1beta1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	return scheme, nil
}

func newServer(handler http.Handler, settings *tls.Config, log *slog.Logger, now clock.PassiveClock) *http.Server {
	return &http.Server{
		Handler:           endUnread(handler, now),
		TLSConfig:         settings,
		ReadHeaderTimeout: headerWithin,
		IdleTimeout:       idleWithin,
		MaxHeaderBytes:    maxHeader,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: rest.MaxConcurrentStreams, MaxReceiveBufferPerConnection: rest.Window,
			MaxReceiveBufferPerStream: rest.Window, SendPingTimeout: probeAfter, PingTimeout: probeAfter},
		// Any peer can make a handshake fail, so it is no error of the server.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// serve serves on a listener until the context ends, and then what is under way for a while.
func serve(ctx context.Context, listener net.Listener, server *http.Server) error {
	limits := connections.New()
	listener = limits.Listen(listener)
	server.ConnContext = func(ctx context.Context, one net.Conn) context.Context { return limits.With(ctx, one.RemoteAddr()) }
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
		defer cancel()
		err := server.Shutdown(late)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		ended <- err
	}()
	var err error
	if server.TLSConfig != nil {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	}
	return <-ended
}

// health says that the server is there, and that it is ready when it has read everything once. Where the API server goes away
// later it still answers, and says so.
func health(isReady func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }) // who asks and goes needs no answer
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !isReady() {
			http.Error(w, "the server has not read all objects yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	return mux
}

func metricsOf(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}
