package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// aged is a cluster that was made so many seconds after the first.
func aged(name string, seconds int) *v1beta1.ComputeCluster {
	cluster := &v1beta1.ComputeCluster{}
	cluster.Namespace, cluster.Name = "team", name
	cluster.CreationTimestamp = metav1.NewTime(time.Unix(1700000000+int64(seconds), 0))
	return cluster
}

// TestFleet_MeasuresTheOldestClusters: as many as it was told, and it counts the rest.
func TestFleet_MeasuresTheOldestClusters(t *testing.T) {
	first, second := aged("b", 0), aged("a", 1)
	first.Status = v1beta1.ComputeClusterStatus{
		Phase: v1beta1.PhaseReady, Epoch: 3, Workers: v1beta1.WorkerCounts{Desired: 4, Created: 3, Ready: 2},
	}
	reader := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(aged("d", 2), second, aged("c", 2), first).Build()
	registry := prometheus.NewRegistry()
	if err := NewFleet(registry, reader, func() bool { return true }, clocktesting.NewFakePassiveClock(born), 2); err != nil {
		t.Fatal(err)
	}
	want := `# HELP heliostat_cluster_epoch Number of heads that a cluster has had.
# TYPE heliostat_cluster_epoch gauge
heliostat_cluster_epoch{cluster="a",namespace="team"} 0
heliostat_cluster_epoch{cluster="b",namespace="team"} 3
# HELP heliostat_cluster_phase 1 for the phase in the status of a cluster.
# TYPE heliostat_cluster_phase gauge
heliostat_cluster_phase{cluster="a",namespace="team",phase="Pending"} 1
heliostat_cluster_phase{cluster="b",namespace="team",phase="Ready"} 1
# HELP heliostat_cluster_workers Workers of a cluster that the spec requests (desired), that have a pod (created) and whose pod is ready (ready).
# TYPE heliostat_cluster_workers gauge
heliostat_cluster_workers{cluster="a",namespace="team",state="created"} 0
heliostat_cluster_workers{cluster="a",namespace="team",state="desired"} 0
heliostat_cluster_workers{cluster="a",namespace="team",state="ready"} 0
heliostat_cluster_workers{cluster="b",namespace="team",state="created"} 3
heliostat_cluster_workers{cluster="b",namespace="team",state="desired"} 4
heliostat_cluster_workers{cluster="b",namespace="team",state="ready"} 2
# HELP heliostat_clusters_unmeasured Clusters without their own series, because older clusters use the maximum.
# TYPE heliostat_clusters_unmeasured gauge
heliostat_clusters_unmeasured 2
`
	names := []string{"heliostat_cluster_epoch", "heliostat_cluster_phase", "heliostat_cluster_workers", "heliostat_clusters_unmeasured"}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}
