package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/cli/overview"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestSums_CountPodsAsTheAPIServerTakesThem: the status, heliostat top, Kueue's Workload and the gang, whichever way a template
// says its resources.
func TestSums_CountPodsAsTheAPIServerTakesThem(t *testing.T) {
	all := testkit.Resources("cpu", "2", "memory", "8Gi", "nvidia.com/gpu", "1")
	for name, test := range map[string]struct {
		resources corev1.ResourceRequirements
		want      corev1.ResourceList
		gpus      string
	}{
		"limits alone": {corev1.ResourceRequirements{Limits: all}, testkit.Resources("cpu", "9", "memory", "33Gi", "nvidia.com/gpu", "4"), "4"},
		"requests alone": {
			corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "2", "memory", "8Gi")}, testkit.Resources("cpu", "9", "memory", "33Gi"), "0",
		},
		"both": {
			corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "1", "nvidia.com/gpu", "1"), Limits: all},
			testkit.Resources("cpu", "5", "memory", "33Gi", "nvidia.com/gpu", "4"), "4",
		},
		"a device of an unknown name": {
			corev1.ResourceRequirements{Limits: testkit.Resources("memory", "8Gi", "volcano.sh/vgpu-number", "1")},
			testkit.Resources("cpu", "1", "memory", "33Gi", "volcano.sh/vgpu-number", "4"), "0",
		},
	} {
		group := testkit.Group("gpu", 4)
		group.Template = testkit.Template(corev1.Container{Name: "ray", Resources: test.resources})
		of := testkit.Cluster("limits", group)
		of.Spec.Head.Size = testkit.Resources("cpu", "1", "memory", "1Gi")
		of.Spec.Scheduler = &v1beta1.Scheduler{Name: v1beta1.SchedulerVolcano}
		seen := cluster.Seen{Record: cluster.Record{Version: 1, Epoch: 1}, Gang: cluster.GangSeen{Version: "v1beta1"}}
		plan := decide(of, seen)
		status := cluster.Status(of, seen, plan, cluster.Outcome{}, now)
		if diff := cmp.Diff(test.want, status.Resources); diff != "" || status.Summary.GPUs != test.gpus {
			t.Errorf("%s: the status has %s GPUs, and resources (- want):\n%s", name, status.Summary.GPUs, diff)
		}
		if top := overview.GPUs(&v1beta1.ComputeCluster{Status: status}); top != test.gpus {
			t.Errorf("%s: heliostat top has %s GPUs, want %s", name, top, test.gpus)
		}
		if diff := cmp.Diff(test.want, workloadAsks(of)); diff != "" {
			t.Errorf("%s: the Workload asks for (- want):\n%s", name, diff)
		}
		if diff := cmp.Diff(test.want, gangAsks(t, plan)); diff != "" {
			t.Errorf("%s: the gang asks for (- want):\n%s", name, diff)
		}
	}
}

// TestSums_CountWhatTheInstallationGives of the operator's containers.
func TestSums_CountWhatTheInstallationGives(t *testing.T) {
	of := testkit.Cluster("limits", testkit.Group("cpu", 0))
	of.Spec.Head.Size, of.Spec.Autoscaling = testkit.Resources("cpu", "1", "memory", "1Gi"), &v1beta1.Autoscaling{}
	of.Spec.WorkerGroups[0].MaxReplicas = number(1)
	of.Spec.Scheduler = &v1beta1.Scheduler{Name: v1beta1.SchedulerVolcano}
	with := site
	with.Sizes.Autoscaling = testkit.Resources("cpu", "500m", "limits.cpu", "500m")
	seen := cluster.Seen{Record: cluster.Record{Version: 1, Epoch: 1}, Gang: cluster.GangSeen{Version: "v1beta1"}}
	plan := cluster.Decide(of, seen, with, now)
	want := testkit.Resources("cpu", "1500m", "memory", "1088Mi")
	if diff := cmp.Diff(want, cluster.Status(of, seen, plan, cluster.Outcome{}, now).Resources); diff != "" {
		t.Errorf("the status (- want):\n%s", diff)
	}
	if diff := cmp.Diff(want, gangAsks(t, plan)); diff != "" {
		t.Errorf("the gang (- want):\n%s", diff)
	}
}

// workloadAsks sums what the Workload of a cluster asks for.
func workloadAsks(of *v1beta1.ComputeCluster) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, set := range kueue.For("ComputeCluster", of, of, nil).Spec.PodSets {
		for name, quantity := range set.Template.Spec.Containers[0].Resources.Requests {
			quantity.Mul(int64(set.Count))
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	return sum
}

// gangAsks is what the gang of a plan asks for.
func gangAsks(t *testing.T, plan cluster.Plan) corev1.ResourceList {
	t.Helper()
	for _, fixing := range plan.Fixtures {
		object, isGang := fixing.Wanted.(*unstructured.Unstructured)
		if !isGang {
			continue
		}
		texts, _, err := unstructured.NestedMap(object.Object, "spec", "minResources")
		if err != nil {
			t.Fatal(err)
		}
		sum := corev1.ResourceList{}
		for name, text := range texts {
			sum[corev1.ResourceName(name)] = resource.MustParse(text.(string))
		}
		return sum
	}
	t.Fatal("there is no gang")
	return nil
}
