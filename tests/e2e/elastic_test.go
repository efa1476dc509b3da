package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

var _ = Describe("a cluster with TPU slices that scales by itself", Label(localkubeLabel, live.AcceptLabel), func() {
	It("makes the slice that a trainer reserves, whole", func(ctx SpecContext) {
		offerTPUs(ctx)
		team := made(ctx, "slices", "clusters/slices.yaml", nil)
		Expect(team.workers(ctx, 0)).To(BeEmpty())
		begin := time.Now()
		var got struct {
			Slice string
			IDs   []string
		}
		team.program(ctx, rendered("programs/slice.py", nil), &got)
		told(live.SliceEntry, begin)
		Expect(got.IDs).To(Equal([]string{"0", "1"}))
		Expect(team.events(ctx)).To(ContainElement(ContainSubstring("scaled group v4 0 → 1: 1 × {TPU-v4-16-head: 1}")))
		team.workers(ctx, 0)
	}, Label(live.SliceLabel), SpecTimeout(2*limit))
})

// offerTPUs lets each node offer four TPUs as GKE's do, until the spec ends.
func offerTPUs(ctx context.Context) {
	GinkgoHelper()
	const label, status = `{"metadata":{"labels":{"cloud.google.com/gke-tpu-accelerator":%s,"cloud.google.com/gke-tpu-topology":%s}}}`,
		`{"status":{"capacity":{"google.com/tpu":%[1]s},"allocatable":{"google.com/tpu":%[1]s}}}`
	set := func(ctx context.Context, kind, topology, chips string) {
		var nodes corev1.NodeList
		Expect(kubernetes.List(ctx, &nodes)).To(Succeed())
		for i := range nodes.Items {
			Expect(kubernetes.Patch(ctx, &nodes.Items[i], client.RawPatch(types.MergePatchType, fmt.Appendf(nil, label, kind, topology)))).To(Succeed())
			Expect(kubernetes.Status().Patch(ctx, &nodes.Items[i], client.RawPatch(types.MergePatchType, fmt.Appendf(nil, status, chips)))).To(Succeed())
		}
	}
	set(ctx, `"tpu-v4-podslice"`, `"2x2x2"`, `"4"`)
	DeferCleanup(func(ctx SpecContext) { set(ctx, "null", "null", "null") }, NodeTimeout(limit))
}

var _ = Describe("a cluster that scales by itself, for long", Label(live.AcceptLabel), func() {
	It("has its workers replaced at work, and loses no task", func(ctx SpecContext) {
		team := made(ctx, "rolled", "clusters/autoscaled-rolling.yaml", nil)
		for round := range *rounds {
			team.rollElastic(ctx, fmt.Sprint(round))
		}
	}, Label(live.ElasticRollLabel), SpecTimeout(limit*time.Duration(2+2**rounds)))

	It("has no more workers than it needs while none starts, and goes on when they can", func(ctx SpecContext) {
		team := made(ctx, "failing", "clusters/autoscaled-rolling.yaml", nil)
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) { spec.WorkerGroups[0].Image = "localhost/no-such-image:1" })
		team.ready(ctx)
		const demand = 2
		work := team.begin(ctx, fmt.Sprintf(`
@ray.remote(num_cpus=1)
def task(i):
    return i
result = sum(ray.get([task.remote(1) for i in range(%d)]))`, demand))
		told := team.counted(ctx, demand)
		AddReportEntry(live.FailingEntry, told, ReportEntryVisibilityAlways)
		Expect(told.Most).To(Equal(demand))
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) { spec.WorkerGroups[0].Image = "" })
		done := 0
		work.end(ctx, &done)
		Expect(done).To(Equal(demand))
		team.workers(ctx, 0)
	}, Label(live.FailingLabel), SpecTimeout(*neverFor+3*limit))
})

// counted looks at the workers each second for as long as the flag says.
func (e *env) counted(ctx context.Context, demand int) live.Failing {
	GinkgoHelper()
	counted := live.Failing{Minutes: neverFor.Minutes(), Demand: demand}
	known := map[types.UID]bool{}
	Consistently(ctx, func(ctx context.Context) (int, error) {
		pods, err := kubernetes.PodsOf(ctx, e.NamespacedName, v1beta1.RoleWorker)
		staying := 0
		for i := range pods {
			known[pods[i].UID] = true
			if pods[i].DeletionTimestamp == nil {
				staying++
			}
		}
		counted.Most, counted.Made = max(counted.Most, staying), len(known)
		return staying, err
	}, *neverFor, time.Second).Should(BeNumerically("<=", demand))
	return counted
}

// rollElastic edits the workers' template while a stream of tasks keeps them at work, and waits until all are replaced.
func (e *env) rollElastic(ctx context.Context, value string) {
	GinkgoHelper()
	stream := e.begin(ctx, rendered("programs/tasks.py", nil))
	stream.reaches(ctx, &stream.pod, "/tmp/streaming")
	before := e.staying(ctx, 3)
	begin := time.Now()
	e.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
		spec.WorkerGroups[0].Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: v1beta1.ContainerRay, Env: []corev1.EnvVar{{Name: "EDITED", Value: value}}}},
		}}
	})
	most := 0
	eventually(ctx, "all workers to be replaced", func(ctx context.Context) error {
		pods, err := kubernetes.PodsOf(ctx, e.NamespacedName, v1beta1.RoleWorker)
		staying := 0
		for _, worker := range pods {
			if worker.DeletionTimestamp == nil {
				staying++
			}
			for i := range before {
				if err == nil && before[i].UID == worker.UID {
					err = fmt.Errorf("%s is there", worker.Name)
				}
			}
		}
		most = max(most, staying)
		return err
	})
	e.upToDate(ctx)
	seconds := time.Since(begin).Seconds()
	exec(ctx, &stream.pod, "touch", "/tmp/enough")
	var shown live.Roll
	stream.end(ctx, &shown)
	shown.Seconds = seconds
	AddReportEntry(live.RollEntry, shown, ReportEntryVisibilityAlways)
	Expect(shown.Lost).To(BeZero())
	Expect(shown.Done).To(BeNumerically(">", 10))
	Expect(most).To(BeNumerically("<=", 3), "maxReplicas")
}
