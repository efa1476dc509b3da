package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// Phases of a cluster's way to be ready, as values of a label.
const (
	// PhaseHeadReady ends when the head is ready, PhaseWorkersReady when every wanted
	// worker is, and PhaseReady when the cluster is.
	PhaseHeadReady    = "head_ready"
	PhaseWorkersReady = "workers_ready"
	PhaseReady        = "ready"
)

// Metrics counts and measures. A nil one does nothing.
type Metrics struct {
	phases   *prometheus.HistogramVec
	writes   *prometheus.CounterVec
	delays   *prometheus.HistogramVec
	lines    *prometheus.GaugeVec
	reasons  *prometheus.CounterVec
	drains   *prometheus.HistogramVec
	jobs     jobMetrics
	stores   storeMetrics
	services serviceMetrics
}

// NewMetrics makes the metrics and registers them. It fails if one of their names is taken.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "heliostat_cluster_phase_duration_seconds",
			Help: "Time from the creation or resumption of clusters, or from the creation of a lost head's successor, to the end of a phase.",
			// From a head that has its image to one that waits for a node with a GPU.
			Buckets: []float64{1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1800, 3600},
		}, []string{"phase"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_cluster_writes_total",
			Help: "Writes for clusters and jobs, by kind, verb and code of the API server's response.",
		}, []string{"kind", "verb", "code"}),
		delays: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "heliostat_cluster_write_duration_seconds",
			Help:    "Response time of the API server for writes for clusters and jobs.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}, []string{"verb"}),
		lines: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "heliostat_controller_waiting",
			Help: "Objects that wait because their namespace already uses its share of a controller's workers.",
		}, []string{"controller"}),
		reasons:  newReasons(),
		drains:   newDrains(),
		jobs:     newJobMetrics(),
		stores:   newStoreMetrics(),
		services: newServiceMetrics(),
	}
	for _, phase := range []string{PhaseHeadReady, PhaseWorkersReady, PhaseReady} {
		m.phases.WithLabelValues(phase) // there from the start, so that a rate has its zero
	}
	for _, kind := range []launcher.Kind{launcher.Exit, launcher.Lost, launcher.OutOfMemory, launcher.Drained, launcher.PortTaken} {
		m.jobs.restarts.WithLabelValues(string(kind)) // as above
	}
	for _, state := range []string{trialSucceeded, trialFailed, trialPruned} {
		m.jobs.trials.WithLabelValues(state) // as above
	}
	for _, collector := range []prometheus.Collector{
		m.phases, m.writes, m.delays, m.lines, m.reasons, m.drains, m.jobs.starts, m.jobs.runs, m.jobs.ends, m.jobs.gathers, m.jobs.restarts,
		m.jobs.trials,
		m.stores.unswept, m.stores.swept, m.stores.recoveries, m.services.starts, m.services.upgrades, m.services.durations,
	} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register the metrics: %w", err)
		}
	}
	return m, nil
}

// Waiting returns what tells how many objects wait for the workers of a controller.
func (m *Metrics) Waiting(controller string) func(objects int) {
	if m == nil {
		return func(int) {}
	}
	gauge := m.lines.WithLabelValues(controller)
	return func(objects int) { gauge.Set(float64(objects)) }
}

// Wrote counts a write, as kube.Wrote says.
func (m *Metrics) Wrote(kind, verb string, err error, seconds float64) {
	if m == nil {
		return
	}
	m.writes.WithLabelValues(kind, verb, code(err)).Inc()
	m.delays.WithLabelValues(verb).Observe(seconds)
}

// code is that of the API server's answer, or "none" where there was no answer.
func code(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return strconv.Itoa(http.StatusOK)
	case errors.As(err, &status):
		return strconv.Itoa(int(status.Status().Code))
	default:
		return "none"
	}
}

// Phase observes how long a phase took.
func (m *Metrics) Phase(phase string, seconds float64) {
	if m != nil {
		m.phases.WithLabelValues(phase).Observe(seconds)
	}
}

// Changed observes the phases and the recovery of a head that end with a cluster's change of
// status: cluster holds the former one. Each phase ends once per epoch.
func (m *Metrics) Changed(cluster *v1beta1.ComputeCluster, status *v1beta1.ComputeClusterStatus, now time.Time) {
	m.countReason(kindCluster, cluster.Status.Conditions, status.Conditions)
	for _, ended := range phasesEnded(cluster, status, now) {
		m.Phase(ended.phase, ended.took.Seconds())
	}
	if took, ok := recovery(cluster, status, now); ok {
		m.Recovered(storeKind(cluster.Spec.ControlStore), took.Seconds())
	}
}

type phaseEnd struct {
	phase string
	took  time.Duration
}

// sameMoment is by how much the times may differ that two objects made in one pass carry.
const sameMoment = 5 * time.Second

// phasesEnded finds conditions that became True and were False, or not told, since the epoch began: one
// that turned False later than its head was made had been True in this epoch, or was False
// for more workers, and either was counted before.
func phasesEnded(cluster *v1beta1.ComputeCluster, status *v1beta1.ComputeClusterStatus, now time.Time) []phaseEnd {
	if status.Head == nil || status.Head.CreationTime == nil {
		return nil
	}
	made := status.Head.CreationTime.Time
	var ended []phaseEnd
	for _, phase := range []struct{ condition, name string }{
		{v1beta1.ConditionHeadReady, PhaseHeadReady}, {v1beta1.ConditionWorkersReady, PhaseWorkersReady},
		{v1beta1.ConditionReady, PhaseReady},
	} {
		before := meta.FindStatusCondition(cluster.Status.Conditions, phase.condition)
		// The first status may say so already. That all of no workers are ready says nothing.
		counts := cluster.Status.ObservedGeneration == 0 && (phase.name != PhaseWorkersReady || status.Workers.Desired > 0)
		if before != nil {
			counts = before.Status != metav1.ConditionTrue && !before.LastTransitionTime.After(made.Add(sameMoment))
		}
		if !counts || !meta.IsStatusConditionTrue(status.Conditions, phase.condition) {
			continue
		}
		ended = append(ended, phaseEnd{phase.name, now.Sub(beginOf(cluster, status, made))})
	}
	return ended
}

// beginOf is when someone began to wait for an epoch: for the first one when the cluster
// was created or resumed, for others when the head was made.
func beginOf(cluster *v1beta1.ComputeCluster, status *v1beta1.ComputeClusterStatus, made time.Time) time.Time {
	if status.Epoch > 1 {
		return made
	}
	begin := cluster.CreationTimestamp.Time
	suspended := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionSuspended)
	if suspended != nil && suspended.Status == metav1.ConditionFalse && suspended.LastTransitionTime.After(begin) {
		begin = suspended.LastTransitionTime.Time
	}
	return begin
}
