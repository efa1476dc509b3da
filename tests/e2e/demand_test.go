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
		team := made(ctx, "quick", "clusters/unplaced.yaml", values{"Max": demands()})
		var demand live.Demand
		for range *rounds {
			made := team.watch(ctx, func(event apiwatch.Event, _ *corev1.Pod) bool { return event.Type == apiwatch.Added })
			var asked []float64
			team.program(ctx, rendered("programs/demands.py", values{"Count": demands()}), &asked)
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
		team := made(ctx, "brief", "clusters/autoscaled.yaml", values{"IdleTimeoutSeconds": 5, "Min": 0, "Max": 2})
		for range *rounds {
			going := team.watch(ctx, func(_ apiwatch.Event, pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
			var done float64
			team.program(ctx, rendered("programs/two-tasks.py", nil), &done)
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
