package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Fleet counts clusters, workers, jobs and services at each scrape, from the statuses in the cache. No
// label of these names an object, so the number of series does not grow with the clusters. Series
// of single clusters are there for as many clusters as somebody asked for.
type Fleet struct {
	// Reader reads from the cache.
	Reader client.Reader
	// Leading reports whether this operator is the one that works; a standby stays silent,
	// so that sums over all operators are right.
	Leading func() bool
	Clock   clock.PassiveClock

	clusters, workers, jobs, services, failing *prometheus.Desc
	each                                       eachCluster
}

// scrapeLimit is how long a scrape waits for a cache that is not filled yet.
const scrapeLimit = 5 * time.Second

// NewFleet makes the collector and registers it, with series of their own for so many clusters. It fails if one of its
// names is taken.
func NewFleet(registry prometheus.Registerer, reader client.Reader, leading func() bool, now clock.PassiveClock, measured int) error {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	fleet := &Fleet{
		Reader: reader, Leading: leading, Clock: now, each: newEachCluster(measured),
		clusters: of("heliostat_clusters", "Clusters by the phase in their status.", "phase"),
		workers: of("heliostat_workers",
			"Workers of all clusters that the specs request (desired), that have a pod (created) and whose pod is ready (ready).", "state"),
		jobs:     of("heliostat_jobs", "Jobs by the phase in their status.", "phase"),
		services: of("heliostat_services", "ClusterServices by the phase in their status.", "phase"),
		failing: of("heliostat_failing_conditions",
			"Objects with a condition that must be True and has not been for 10 minutes, by reason.", "kind", "condition", "reason"),
	}
	if err := registry.Register(fleet); err != nil {
		return fmt.Errorf("register the gauges: %w", err)
	}
	return nil
}

// Describe as prometheus.Collector says.
func (f *Fleet) Describe(to chan<- *prometheus.Desc) {
	to <- f.clusters
	to <- f.workers
	to <- f.jobs
	to <- f.services
	to <- f.failing
	f.each.describe(to)
}

// Collect as prometheus.Collector says. What cannot be read is left out of the scrape.
func (f *Fleet) Collect(to chan<- prometheus.Metric) {
	if !f.Leading() {
		return
	}
	var clusters v1beta1.ComputeClusterList
	var jobs v1beta1.ClusterJobList
	var services v1beta1.ClusterServiceList
	ctx, stop := context.WithTimeout(context.Background(), scrapeLimit)
	defer stop()
	failing, now := failures{}, f.Clock.Now()
	if f.list(ctx, &clusters, f.clusters, to) {
		phases, workers := tally(clusters.Items, failing, now)
		gauges(to, f.clusters, phases)
		gauges(to, f.workers, workers)
		f.each.collect(clusters.Items, to)
	}
	if f.list(ctx, &jobs, f.jobs, to) {
		gauges(to, f.jobs, tallyJobs(jobs.Items, failing, now))
	}
	if f.list(ctx, &services, f.services, to) {
		gauges(to, f.services, tallyServices(services.Items, failing, now))
	}
	for of, count := range failing {
		to <- prometheus.MustNewConstMetric(f.failing, prometheus.GaugeValue, float64(count), of.kind, of.condition, of.reason)
	}
}

// list reads objects from the cache, or has the scrape say why a gauge is missing.
func (f *Fleet) list(ctx context.Context, objects client.ObjectList, gauge *prometheus.Desc, to chan<- prometheus.Metric) bool {
	err := f.Reader.List(ctx, objects, client.UnsafeDisableDeepCopy)
	if err != nil {
		to <- prometheus.NewInvalidMetric(gauge, err)
	}
	return err == nil
}

// gauges sends a count for each value of a gauge's only label.
func gauges(to chan<- prometheus.Metric, gauge *prometheus.Desc, counts map[string]int) {
	for value, count := range counts {
		to <- prometheus.MustNewConstMetric(gauge, prometheus.GaugeValue, float64(count), value)
	}
}

// zero returns a count for each phase, so that a phase without objects is 0.
func zero(phases ...string) map[string]int {
	counts := make(map[string]int, len(phases))
	for _, phase := range phases {
		counts[phase] = 0
	}
	return counts
}

// tally counts clusters by phase, each known phase included, and workers by state. A
// cluster without a status is pending.
func tally(clusters []v1beta1.ComputeCluster, failing failures, now time.Time) (phases, workers map[string]int) {
	phases = zero(
		v1beta1.PhasePending, v1beta1.PhaseStarting, v1beta1.PhaseReady, v1beta1.PhaseRecovering, v1beta1.PhaseUpdating,
		v1beta1.PhaseSuspending, v1beta1.PhaseSuspended, v1beta1.PhaseFailed,
	)
	workers = zero("desired", "created", "ready")
	for i := range clusters {
		status := &clusters[i].Status
		phases[cmp.Or(status.Phase, v1beta1.PhasePending)]++
		workers["desired"] += int(status.Workers.Desired)
		workers["created"] += int(status.Workers.Created)
		workers["ready"] += int(status.Workers.Ready)
		failing.add(kindCluster, clusters[i].CreationTimestamp, status.Conditions, now)
	}
	return phases, workers
}

// tallyJobs counts jobs by phase, each known phase included. A job without a status is
// pending. One that has run is ready only in the end, so only jobs that wait can fail.
func tallyJobs(jobs []v1beta1.ClusterJob, failing failures, now time.Time) map[string]int {
	phases := zero(
		v1beta1.PhasePending, v1beta1.PhaseProvisioning, v1beta1.PhaseSubmitting, v1beta1.PhaseGathering, v1beta1.PhaseRunning, v1beta1.PhaseRetrying,
		v1beta1.PhaseSuspending, v1beta1.PhaseSuspended, v1beta1.PhaseSucceeded, v1beta1.PhaseFailed, v1beta1.PhaseStopped,
	)
	for i := range jobs {
		status := &jobs[i].Status
		phases[cmp.Or(status.Phase, v1beta1.PhasePending)]++
		if status.StartTime == nil && status.EndTime == nil {
			failing.add(kindJob, jobs[i].CreationTimestamp, status.Conditions, now)
		}
	}
	return phases
}

// tallyServices counts services by phase, each known phase included. A service without a status is pending.
func tallyServices(services []v1beta1.ClusterService, failing failures, now time.Time) map[string]int {
	phases := zero(
		v1beta1.PhasePending, v1beta1.PhaseStarting, v1beta1.PhaseReady, v1beta1.PhaseUpgrading, v1beta1.PhaseRollingBack,
		v1beta1.PhaseDegraded, v1beta1.PhaseSuspending, v1beta1.PhaseSuspended, v1beta1.PhaseDeleting,
	)
	for i := range services {
		status := &services[i].Status
		phases[cmp.Or(status.Phase, v1beta1.PhasePending)]++
		failing.add(kindService, services[i].CreationTimestamp, status.Conditions, now)
	}
	return phases
}
