package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// demands is how many tasks are submitted one after the other, each of which needs one more worker: more
// of them, and those again and again, in make accept, which judges how soon each has its pod.
func demands() int {
	if *full {
		return 20
	}
	return 5
}

var _ = Describe("how soon the autoscaler acts", Label(live.AcceptLabel), func() {
	It("makes a pod for each demand", Label(live.DemandLabel), func(ctx SpecContext) {
		// No machine takes these workers: what is measured is when their pods are made.
		team := made(ctx, "quick", smallHead+fmt.Sprintf(`
autoscaling: {idleTimeoutSeconds: 5, pace: Aggressive}
workerGroups:
- name: cpu
  minReplicas: 0
  maxReplicas: %d
  size: {cpu: 10m, memory: 1Gi}
  template: {spec: {nodeSelector: {example.com/machine: none}}}
`, demands()))
		var demand live.Demand
		for range *rounds {
			made := team.watch(ctx, func(event apiwatch.Event, _ *corev1.Pod) bool { return event.Type == apiwatch.Added })
			var asked []float64
			team.program(ctx, fmt.Sprintf(`
import random, time
def task(i): # each its own: when ten calls of one function wait, Ray tells of more of them once a second only
    return ray.remote(num_cpus=1)(lambda: i)
result, waiting = [], []
for i in range(%d):
    one = task(i)
    time.sleep(1.5 + random.random()) # so that no round of anybody's is met on purpose
    result.append(time.time())
    waiting.append(one.remote())
time.sleep(5)`, demands()), &asked)
			at := made()
			Expect(at).To(HaveLen(demands()))
			for i := range asked {
				demand.Seconds = append(demand.Seconds, float64(at[i].UnixNano())/1e9-asked[i])
			}
			team.workers(ctx, 0)
		}
		Expect(slices.Min(demand.Seconds)).To(BeNumerically(">", 0))
		GinkgoWriter.Println(demand)
		AddReportEntry(live.DemandEntry, demand, ReportEntryVisibilityAlways)
	}, SpecTimeout(limit*time.Duration(1+*rounds)))

	It("tells idle workers to go", Label(live.GivenBackLabel), func(ctx SpecContext) {
		team := made(ctx, "brief", smallHead+`
autoscaling: {idleTimeoutSeconds: 5}
workerGroups:
- name: cpu
  minReplicas: 0
  maxReplicas: 2
  size: {cpu: 300m, memory: 1Gi}
`)
		for range *rounds {
			going := team.watch(ctx, func(_ apiwatch.Event, pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
			var done float64
			team.program(ctx, `
import time
@ray.remote(num_cpus=1)
def task():
    time.sleep(1)
ray.get([task.remote() for _ in range(2)])
result = time.time()`, &done)
			team.workers(ctx, 0)
			at := going()
			Expect(at).To(HaveLen(2))
			AddReportEntry(live.GivenBackEntry, fmt.Sprintf("%.1f s", float64(at[1].UnixNano())/1e9-done), ReportEntryVisibilityAlways)
		}
	}, SpecTimeout(limit*time.Duration(1+*rounds)))
})

// watch notes when each worker was first seen in a way, from now until what it gives is called.
func (e *env) watch(ctx context.Context, seen func(apiwatch.Event, *corev1.Pod) bool) func() []time.Time {
	GinkgoHelper()
	watching, stop := context.WithCancel(ctx)
	watch, err := kubernetes.Watch(watching, &corev1.PodList{}, client.InNamespace(e.Namespace), client.MatchingLabels{v1beta1.LabelRole: v1beta1.RoleWorker})
	Expect(err).NotTo(HaveOccurred())
	known, times, done := map[types.UID]bool{}, []time.Time{}, make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && !known[pod.UID] && seen(event, pod) {
				known[pod.UID] = true
				times = append(times, time.Now())
			}
		}
	}()
	return func() []time.Time {
		watch.Stop()
		stop()
		<-done
		return times
	}
}
