package sidecar

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
)

// Metrics are those of the autoscaler: some by the names that Ray's own has, for the boards
// that exist, and those of its own work.
type Metrics struct {
	registry  *prometheus.Registry
	clock     clock.PassiveClock
	rounds    prometheus.Histogram
	decisions prometheus.Histogram
	results   *prometheus.CounterVec
	ray       map[string]*prometheus.Desc

	mu sync.Mutex
	// at is when the last round ended, tally what it saw, stopped how many nodes were
	// drained since the process began.
	at      time.Time
	tally   tally
	stopped int
}

// tally counts what a round sees: nodes by group, resources by name.
type tally struct {
	session                string
	active, pending, going map[string]float64
	resources, pendingOnes map[string]float64
	drained                map[string]bool
}

// Names of Ray's own that have a meaning here, with their label and what they tell.
const (
	activeNodes      = "autoscaler_active_nodes"
	pendingNodes     = "autoscaler_pending_nodes"
	failedNodes      = "autoscaler_recently_failed_nodes"
	clusterResources = "autoscaler_cluster_resources"
	pendingResources = "autoscaler_pending_resources"
	stoppedNodes     = "autoscaler_stopped_nodes_total"
)

// NewMetrics makes them.
func NewMetrics(clock clock.PassiveClock) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), clock: clock, at: clock.Now(),
		rounds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "heliostat_autoscaler_round_seconds", Buckets: prometheus.ExponentialBuckets(0.001, 2, 13),
			Help: "Duration of rounds in which the head answered, including its requests.",
		}),
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "heliostat_autoscaler_decision_seconds", Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12),
			Help: "Duration of decisions alone.",
		}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_autoscaler_decisions_total",
			Help: "Rounds by result: Changed, Unchanged, or Failed if the head did not answer.",
		}, []string{"result"}),
		ray: map[string]*prometheus.Desc{},
	}
	for _, result := range []string{"Changed", "Unchanged", "Failed"} {
		m.results.WithLabelValues(result)
	}
	for _, one := range []struct{ name, label, help string }{
		{activeNodes, "NodeType", "Nodes that Ray lists as alive."},
		{pendingNodes, "NodeType", "Pods that are no node of Ray's yet."},
		{failedNodes, "NodeType", "Nodes that are on their way out."},
		{clusterResources, "resource", "What the nodes of the cluster have."},
		{pendingResources, "resource", "What the nodes will have that are on their way."},
		{stoppedNodes, "", "Nodes that were drained since the autoscaler began."},
	} {
		labels := []string{"SessionName"}
		if one.label != "" {
			labels = []string{one.label, "SessionName"}
		}
		m.ray[one.name] = prometheus.NewDesc(one.name, one.help, labels, nil)
	}
	m.registry.MustRegister(m.rounds, m.decisions, m.results, m,
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	return m
}

func (m *Metrics) round(took time.Duration) {
	m.rounds.Observe(took.Seconds())
	m.alive()
}

func (m *Metrics) failed() {
	m.results.WithLabelValues("Failed").Inc()
	m.alive()
}

func (m *Metrics) alive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = m.clock.Now()
}

func (m *Metrics) decided(took time.Duration, changed bool) {
	m.decisions.Observe(took.Seconds())
	result := "Unchanged"
	if changed {
		result = "Changed"
	}
	m.results.WithLabelValues(result).Inc()
}

func (m *Metrics) show(seen tally) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid := range seen.drained {
		if !m.tally.drained[uid] {
			m.stopped++
		}
	}
	m.tally = seen
}

// Describe as prometheus.Collector says.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, one := range m.ray {
		to <- one
	}
}

// mostNames is of how many resources there are series: users may invent as many as they
// like.
const mostNames = 64

// Collect as prometheus.Collector says. What a label cannot hold is left out.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	seen, stopped := m.tally, m.stopped
	m.mu.Unlock()
	for name, values := range map[string]map[string]float64{
		activeNodes: seen.active, pendingNodes: seen.pending, failedNodes: seen.going,
		clusterResources: seen.resources, pendingResources: seen.pendingOnes,
	} {
		names := slices.Sorted(maps.Keys(values))
		for _, label := range names[:min(mostNames, len(names))] {
			if utf8.ValidString(label) {
				to <- prometheus.MustNewConstMetric(m.ray[name], prometheus.GaugeValue, values[label], label, seen.session)
			}
		}
	}
	to <- prometheus.MustNewConstMetric(m.ray[stoppedNodes], prometheus.CounterValue, float64(stopped), seen.session)
}

// stuck is after how long without a round the process is not well.
const stuck = time.Minute

// Handler serves /metrics and /healthz.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2, DisableCompression: true}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := m.health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux
}

var errStuck = errors.New("there was no round for a minute")

func (m *Metrics) health() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock.Since(m.at) > stuck {
		return errStuck
	}
	return nil
}

// headType is what Ray's own autoscaler calls the kind of the head's node.
const headType = "headgroup"

// tally counts what is seen.
func (m *Memory) tally(s *sight, in decision.Input) tally {
	t := tally{
		session: s.Demand.Session, active: map[string]float64{}, pending: map[string]float64{}, going: map[string]float64{},
		resources: map[string]float64{}, pendingOnes: map[string]float64{}, drained: map[string]bool{},
	}
	shapes := make(map[string]decision.Resources, len(in.Groups))
	for _, group := range in.Groups {
		shapes[group.Name] = group.Resources
		t.active[group.Name], t.pending[group.Name], t.going[group.Name] = 0, 0, 0
	}
	for i := range in.Nodes {
		node := &in.Nodes[i]
		name := node.Group
		if name == "" {
			name = headType
		}
		t.active[name]++
		if node.Draining || node.Going {
			t.going[name]++
		}
		for resource, amount := range node.Total {
			t.resources[resource] += amount
		}
	}
	for i := range in.Pods {
		pod := &in.Pods[i]
		if pod.Going {
			continue
		}
		t.pending[pod.Group]++
		for resource, amount := range shapes[pod.Group] {
			t.pendingOnes[resource] += amount
		}
	}
	for uid, going := range m.leaving.told {
		if going.drained {
			t.drained[uid] = true
		}
	}
	return t
}
