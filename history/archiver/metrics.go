package archiver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// measures are what the program counts. None has the name of a cluster or namespace: code of users makes these.
type measures struct {
	registry     *prometheus.Registry
	storeErrors  *prometheus.CounterVec
	packs        prometheus.Counter
	passes       prometheus.Histogram
	passFailures prometheus.Counter
}

func newMeasures() *measures {
	m := &measures{
		registry: prometheus.NewRegistry(),
		storeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_archiver_store_errors_total", Help: "Calls of the store that failed, by call.",
		}, []string{"call"}),
		packs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "heliostat_archiver_packs_total", Help: "Packs that were written.",
		}),
		passes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "heliostat_archiver_pass_duration_seconds", Help: "Duration of passes of retention and compaction.",
			Buckets: []float64{0.1, 0.5, 1, 5, 10, 30, 60, 300, 900},
		}),
		passFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "heliostat_archiver_pass_errors_total", Help: "Passes of retention and compaction that did not do all.",
		}),
	}
	for _, call := range []string{"write", "read", "delete", "list", "check"} {
		m.storeErrors.WithLabelValues(call)
	}
	m.registry.MustRegister(m.storeErrors, m.packs, m.passes, m.passFailures,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// follow measures what an archiver has now.
func (m *measures) follow(a *archiver) {
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "heliostat_archiver_" + name, Help: help}, value))
	}
	gauge("streams", "Collectors with a stream.", func() float64 { return float64(a.states.Totals().Streams) })
	gauge("behind_seconds", "Age of the oldest byte that a collector could send.", func() float64 {
		return float64(a.states.Totals().Behind) / 1000
	})
	gauge("spool_bytes", "Bytes on the spool that are in no pack.", func() float64 { return float64(a.archive.Spooled().Bytes) })
	gauge("spool_limit_bytes", "Bytes that the spool holds.", func() float64 { return float64(a.archive.Spooled().Most) })
	gauge("unpacked_seconds", "Age of the oldest segment of the spool that is no pack.", func() float64 {
		oldest := a.archive.Spooled().Oldest
		if oldest == 0 {
			return 0
		}
		return float64(max(a.now()-oldest, 0)) / 1000
	})
	gauge("writer", "1 where the replica has the Lease, and writes records and retention.", func() float64 {
		if a.isWriter.Load() {
			return 1
		}
		return 0
	})
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "heliostat_archiver_received_bytes_total", Help: "Bytes of files that were acknowledged.",
	}, func() float64 { return float64(a.states.Totals().Received) }))
}

// passed counts a pass of retention.
func (m *measures) passed(took time.Duration, isFailed bool) {
	m.passes.Observe(took.Seconds())
	if isFailed {
		m.passFailures.Inc()
	}
}

// handler serves metrics and health.
func (a *archiver) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.measures.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := a.unready(); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	return mux
}

// serveMetrics serves until it is closed.
func serveMetrics(listener net.Listener, server *http.Server) error {
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func newMetricsServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.Background() },
	}
}
