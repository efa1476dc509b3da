package telemetry

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// Fleet counts clusters, workers and jobs at each scrape, from the statuses in the cache. No
// label of these names an object, so the number of series does not grow with the clusters. Series
// of single clusters are there for as many clusters as somebody asked for.
type Fleet struct {
	// Reader reads from the cache.
	Reader client.Reader
	// Leading reports whether this operator is the one that works; a standby stays silent,
	// so that sums over all operators are right.
	Leading func() bool

	clusters, workers, jobs *prometheus.Desc
	each                    eachCluster
}

// scrapeLimit is how long a scrape waits for a cache that is not filled yet.
const scrapeLimit = 5 * time.Second

// NewFleet makes the collector and registers it, with series of their own for so many clusters. It fails if one of its
// names is taken.
func NewFleet(registry prometheus.Registerer, reader client.Reader, leading func() bool, measured int) error {
	fleet := &Fleet{
		Reader: reader, Leading: leading, each: newEachCluster(measured),
		clusters: prometheus.NewDesc("heliostat_clusters", "Clusters by the phase in their status.", []string{"phase"}, nil),
		workers: prometheus.NewDesc("heliostat_workers",
			"Workers of all clusters that the specs request (desired), that have a pod (created) and whose pod is ready (ready).", []string{"state"}, nil),
		jobs: prometheus.NewDesc("heliostat_jobs", "Jobs by the phase in their status.", []string{"phase"}, nil),
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
	f.each.describe(to)
}

// Collect as prometheus.Collector says. What cannot be read is left out of the scrape.
func (f *Fleet) Collect(to chan<- prometheus.Metric) {
	if !f.Leading() {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), scrapeLimit)
	defer stop()
	var list v1alpha1.ComputeClusterList
	if err := f.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		to <- prometheus.NewInvalidMetric(f.clusters, err)
		return
	}
	phases, workers := tally(list.Items)
	for phase, count := range phases {
		to <- prometheus.MustNewConstMetric(f.clusters, prometheus.GaugeValue, float64(count), phase)
	}
	for state, count := range workers {
		to <- prometheus.MustNewConstMetric(f.workers, prometheus.GaugeValue, float64(count), state)
	}
	f.each.collect(list.Items, to)
	var jobs v1alpha1.ClusterJobList
	if err := f.Reader.List(ctx, &jobs, client.UnsafeDisableDeepCopy); err != nil {
		to <- prometheus.NewInvalidMetric(f.jobs, err)
		return
	}
	for phase, count := range tallyJobs(jobs.Items) {
		to <- prometheus.MustNewConstMetric(f.jobs, prometheus.GaugeValue, float64(count), phase)
	}
}

// tally counts clusters by phase, each known phase included, and workers by state. A
// cluster without a status is pending.
func tally(clusters []v1alpha1.ComputeCluster) (phases, workers map[string]int) {
	phases = map[string]int{
		v1alpha1.PhasePending: 0, v1alpha1.PhaseStarting: 0, v1alpha1.PhaseReady: 0, v1alpha1.PhaseRecovering: 0,
		v1alpha1.PhaseUpdating: 0, v1alpha1.PhaseSuspending: 0, v1alpha1.PhaseSuspended: 0, v1alpha1.PhaseFailed: 0,
	}
	workers = map[string]int{"desired": 0, "created": 0, "ready": 0}
	for i := range clusters {
		status := &clusters[i].Status
		phase := status.Phase
		if phase == "" {
			phase = v1alpha1.PhasePending
		}
		phases[phase]++
		workers["desired"] += int(status.Workers.Desired)
		workers["created"] += int(status.Workers.Created)
		workers["ready"] += int(status.Workers.Ready)
	}
	return phases, workers
}
