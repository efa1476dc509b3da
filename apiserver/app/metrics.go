package app

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// newRegistry returns a registry with what Go tells of the process.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// metrics counts and measures. None is about a single caller or object.
type metrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer, streams func() int) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_server_requests_total",
			Help: "Answered requests, by route and code. A watch counts when it ends.",
		}, []string{"route", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "heliostat_server_request_duration_seconds",
			Help:    "Duration of requests, except watches.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"route"}),
	}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "heliostat_server_streams",
		Help: "Open watches.",
	}, func() float64 { return float64(streams()) })
	for _, collector := range []prometheus.Collector{m.requests, m.durations, open} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register the metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) answered(asked request, code int, took time.Duration) {
	m.requests.WithLabelValues(asked.route, strconv.Itoa(code)).Inc()
	if !asked.isStream {
		m.durations.WithLabelValues(asked.route).Observe(took.Seconds())
	}
}
