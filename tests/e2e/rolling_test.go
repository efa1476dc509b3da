package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// rolled are the specs of a cluster with two workers that replaces them by itself when
// their template changes.
func rolled(cluster func() *env) {
	It("are replaced for an edit, and no task is lost", func(ctx SpecContext) {
		team := cluster()
		head, before := team.head(ctx), team.staying(ctx, 2)
		team.edit(ctx, func(spec *v1alpha1.ComputeClusterSpec) { spec.WorkerGroups[0].DrainSeconds = new(int32(60)) })
		stream := team.begin(ctx, tasks)
		exec(ctx, &head, "sh", "-c", "until [ -e /tmp/streaming ]; do sleep 0.1; done")
		begin := time.Now()
		team.edit(ctx, func(spec *v1alpha1.ComputeClusterSpec) {
			spec.WorkerGroups[0].Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: v1alpha1.ContainerRay, Env: []corev1.EnvVar{{Name: "EDITED", Value: "yes"}}}},
			}}
		})
		team.upToDate(ctx)
		told("two workers rolled", begin)
		exec(ctx, &head, "touch", "/tmp/enough")
		var told struct {
			Done, Lost int
			Pods       []string
		}
		stream.end(ctx, &told)
		AddReportEntry("tasks during the roll", fmt.Sprintf("%d done, %d lost", told.Done, told.Lost), ReportEntryVisibilityAlways)
		Expect(told.Lost).To(BeZero())
		Expect(told.Done).To(BeNumerically(">", 10))
		after := team.staying(ctx, 2)
		for _, worker := range slices.Concat(before, after) {
			Expect(told.Pods).To(ContainElement(worker.Name), "each of them had work")
		}
		for _, uid := range uids(before) {
			Expect(uids(after)).NotTo(ContainElement(uid))
		}
		Expect(team.head(ctx).UID).To(Equal(head.UID))
	}, SpecTimeout(2*limit))

	It("stay at work when the new ones cannot start, until the edit is taken back", func(ctx SpecContext) {
		team := cluster()
		before := team.staying(ctx, 2)
		team.edit(ctx, func(spec *v1alpha1.ComputeClusterSpec) { spec.WorkerGroups[0].Image = "localhost/no-such-image:1" })
		eventually(ctx, "the image to be named as the obstacle", func(ctx context.Context) error {
			cluster, err := kubernetes.Find(ctx, team.NamespacedName)
			if err == nil && cluster.Status.Groups[0].Reason != "ImagePullFailed" {
				err = fmt.Errorf("the reason is %q: %s", cluster.Status.Groups[0].Reason, cluster.Status.Groups[0].Message)
			}
			return err
		})
		left := team.staying(ctx, 1)
		Expect(uids(before)).To(ContainElement(left[0].UID))
		head := team.head(ctx)
		var sum int
		ray(ctx, &head, squares, &sum)
		Expect(sum).To(Equal(285))
		Expect(uids(team.staying(ctx, 1))).To(Equal(uids(left)), "maxUnavailable is 1")

		team.edit(ctx, func(spec *v1alpha1.ComputeClusterSpec) { spec.WorkerGroups[0].Image = "" })
		team.upToDate(ctx)
		Expect(uids(team.staying(ctx, 2))).To(ContainElement(left[0].UID), "it never was out of date")
	}, SpecTimeout(2*limit))

	It("have a head that no eviction moves once it has been at work for a minute", func(ctx SpecContext) {
		team := cluster()
		head := team.head(ctx)
		Expect(time.Since(head.CreationTimestamp.Time)).To(BeNumerically(">", time.Minute), "the specs before take longer")
		err := evict(ctx, &head)
		Expect(apierrors.IsTooManyRequests(err)).To(BeTrue(), "%v", err)
		Expect(team.head(ctx).DeletionTimestamp).To(BeNil())
	}, SpecTimeout(limit))

	It("are gone with their cluster, whatever runs on them", func(ctx SpecContext) {
		team := cluster()
		Expect(team.end(ctx)).To(BeNumerically("<", 10))
	}, SpecTimeout(limit))
}

// A cluster that is deleted while it is at work, as often as make accept wants to see it
// beside the one above.
var _ = Describe("a busy cluster that is deleted", func() {
	for range *rounds - 1 {
		It("is gone at once", func(ctx SpecContext) {
			team := made(ctx, "busy", smallHead+"workerGroups:\n- name: cpu\n  replicas: 3\n  "+smallWorker)
			Expect(team.end(ctx)).To(BeNumerically("<", 10))
		}, SpecTimeout(2*limit))
	}
})

// end deletes the cluster while there is a task on each worker, and gives the seconds
// until nothing is left.
func (e *env) end(ctx context.Context) float64 {
	GinkgoHelper()
	for _, worker := range e.pods(ctx, v1alpha1.RoleWorker) {
		e.occupy(ctx, &worker)
	}
	begin := time.Now()
	Expect(kubernetes.Delete(ctx, e.ready(ctx))).To(Succeed())
	Expect(kubernetes.UntilGone(ctx, e.NamespacedName, limit)).To(Succeed())
	told(deleted, begin)
	return time.Since(begin).Seconds()
}

// tasks runs tasks of half a second that nothing may run twice, four at a time, until it
// is told that it is enough.
const tasks = `
import time
@ray.remote(max_retries=0, num_cpus=1)
def work():
    time.sleep(0.5)
    return socket.gethostname()
result = {"Done": 0, "Lost": 0, "Pods": []}
pods, running = set(), []
while running or not os.path.exists("/tmp/enough"):
    while len(running) < 4 and not os.path.exists("/tmp/enough"):
        running.append(work.remote())
    if not running:
        break
    done, running = ray.wait(running)
    for one in done:
        try:
            pods.add(ray.get(one))
            result["Done"] += 1
        except ray.exceptions.RayError as e:
            print(type(e), e)
            result["Lost"] += 1
    if len(pods) >= 2 and not os.path.exists("/tmp/streaming"):
        os.mknod("/tmp/streaming")
result["Pods"] = sorted(pods)`

// upToDate waits until every pod was built from the spec as it is now, and is ready.
func (e *env) upToDate(ctx context.Context) {
	GinkgoHelper()
	e.is(ctx, v1alpha1.ConditionUpToDate)
	e.ready(ctx)
}
