package telemetry

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// eachCluster makes series of single clusters, for most of them at most: a namespace and a name are labels, so that their
// number grows with the clusters, which tenants make.
type eachCluster struct {
	most                              int
	phase, workers, epoch, unmeasured *prometheus.Desc
}

func newEachCluster(most int) eachCluster {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return eachCluster{
		most: most,
		phase: of("heliostat_cluster_phase", "1 for the phase in the status of a cluster.",
			"namespace", "cluster", "phase"),
		workers: of("heliostat_cluster_workers", "Workers of a cluster that the spec requests (desired), that have a pod (created) and whose pod is ready (ready).",
			"namespace", "cluster", "state"),
		epoch:      of("heliostat_cluster_epoch", "Number of heads that a cluster has had.", "namespace", "cluster"),
		unmeasured: of("heliostat_clusters_unmeasured", "Clusters without their own series, because older clusters use the maximum."),
	}
}

func (e *eachCluster) describe(to chan<- *prometheus.Desc) {
	if e.most > 0 {
		to <- e.phase
		to <- e.workers
		to <- e.epoch
		to <- e.unmeasured
	}
}

func (e *eachCluster) collect(clusters []v1beta1.ComputeCluster, to chan<- prometheus.Metric) {
	if e.most <= 0 {
		return
	}
	gauge := func(of *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, labels...)
	}
	measured := oldest(clusters, e.most)
	for _, cluster := range measured {
		status := &cluster.Status
		gauge(e.phase, 1, cluster.Namespace, cluster.Name, cmp.Or(status.Phase, v1beta1.PhasePending))
		gauge(e.workers, float64(status.Workers.Desired), cluster.Namespace, cluster.Name, "desired")
		gauge(e.workers, float64(status.Workers.Created), cluster.Namespace, cluster.Name, "created")
		gauge(e.workers, float64(status.Workers.Ready), cluster.Namespace, cluster.Name, "ready")
		gauge(e.epoch, float64(status.Epoch), cluster.Namespace, cluster.Name)
	}
	gauge(e.unmeasured, float64(len(clusters)-len(measured)))
}

// oldest returns the clusters that were made first, so that one that has series keeps them as long as it is there. Those of
// one moment are in the order of their names.
func oldest(clusters []v1beta1.ComputeCluster, most int) []*v1beta1.ComputeCluster {
	all := make([]*v1beta1.ComputeCluster, len(clusters))
	for i := range clusters {
		all[i] = &clusters[i]
	}
	slices.SortFunc(all, func(a, b *v1beta1.ComputeCluster) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(most, len(all))]
}
