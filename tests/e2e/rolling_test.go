package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// rolled are the specs of a cluster with two workers that replaces them by itself when
// their template changes.
func rolled(cluster func() *env) {
	It("are replaced for an edit, and no task is lost", func(ctx SpecContext) {
		team := cluster()
		head := team.head(ctx)
		team.drainFor(ctx, 60)
		for round := range *rounds {
			team.roll(ctx, fmt.Sprint(round))
		}
		Expect(team.head(ctx).UID).To(Equal(head.UID))
	}, Label(live.RollLabel, live.AcceptLabel), SpecTimeout(limit*time.Duration(1+*rounds)))

	It("have a head that no eviction moves once it has been at work for a minute", func(ctx SpecContext) {
		team := cluster()
		head := team.head(ctx)
		eventually(ctx, "the head's budget", func(ctx context.Context) error { return team.budget(ctx) })
		Expect(time.Since(head.CreationTimestamp.Time)).To(BeNumerically(">", time.Minute))
		err := evict(ctx, &head)
		Expect(apierrors.IsTooManyRequests(err)).To(BeTrue(), "%v", err)
		Expect(team.head(ctx).DeletionTimestamp).To(BeNil())
		if *full {
			team.cordoned(ctx, &head)
		}
	}, Label(live.CordonLabel), SpecTimeout(limit+2*live.PromisedCordon))

	edited(cluster)

	It("are gone with their cluster, whatever runs on them", func(ctx SpecContext) {
		team := cluster()
		team.end(ctx)
	}, Label(live.BusyLabel), SpecTimeout(limit))
}

// A cluster that is deleted while it is at work, as often as make accept wants to see it
// beside the one above.
var _ = Describe("a busy cluster that is deleted", Label(live.BusyLabel), func() {
	for range *rounds - 1 {
		It("is gone at once", func(ctx SpecContext) {
			team := made(ctx, "busy", "clusters/workers.yaml", values{"Replicas": 3})
			team.end(ctx)
		}, SpecTimeout(2*limit))
	}
})

// budget looks for the head's PodDisruptionBudget.
func (e *env) budget(ctx context.Context) error {
	return kubernetes.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: e.Name + "-head"}, &policyv1.PodDisruptionBudget{})
}

// cordoned cordons the head's node and waits until the head may be evicted.
func (e *env) cordoned(ctx context.Context, head *corev1.Pod) {
	GinkgoHelper()
	cordon(ctx, head.Spec.NodeName, true)
	DeferCleanup(func(ctx SpecContext) { cordon(ctx, head.Spec.NodeName, false) }, NodeTimeout(limit))
	begin := time.Now()
	Expect(live.Until(ctx, 2*live.PromisedCordon, "the head's budget to be lifted", func(ctx context.Context) error {
		err := e.budget(ctx)
		if err == nil {
			return errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})).To(Succeed())
	told(live.CordonEntry, begin)
	// Kubernetes notes the time of a cordon in whole seconds.
	Expect(time.Since(begin)).To(BeNumerically(">", live.PromisedCordon-2*time.Second))
	takes(begin, live.PromisedCordon+30*time.Second, "a budget is lifted in time")
}

// fullDrain is for how many seconds Ray drains a busy worker that has its whole grace period, and hastened
// is less than that, on a busy machine as well.
const fullDrain, hastened = 45, 30 * time.Second

// end deletes the cluster while there is a task on each worker.
func (e *env) end(ctx context.Context) {
	GinkgoHelper()
	workers := e.pods(ctx, v1beta1.RoleWorker)
	for i := range workers {
		e.occupy(ctx, &workers[i])
	}
	hastens := e.hastens(ctx, workers)
	begin := time.Now()
	Expect(kubernetes.Delete(ctx, e.ready(ctx))).To(Succeed())
	Expect(kubernetes.UntilGone(ctx, e.NamespacedName, limit)).To(Succeed())
	told(live.BusyEntry, begin)
	takes(begin, hastened, "the end of a cluster hastens its pods")
	hastens()
}

// hastens begins to watch some workers, and returns what fails where one of them was not told to end within a
// shorter time than Ray drains it for.
func (e *env) hastens(ctx context.Context, workers []corev1.Pod) func() {
	GinkgoHelper()
	shortest := map[types.UID]int64{}
	ended := e.watch(ctx, func(event apiwatch.Event, pod *corev1.Pod) bool {
		grace := pod.DeletionGracePeriodSeconds
		if event.Type == apiwatch.Modified && grace != nil && *grace > 0 { // 0 is for a pod whose containers have ended
			former, told := shortest[pod.UID]
			if !told || *grace < former {
				shortest[pod.UID] = *grace
			}
		}
		return false
	})
	return func() {
		GinkgoHelper()
		ended()
		for i := range workers {
			Expect(shortest).To(HaveKeyWithValue(workers[i].UID, BeNumerically("<", fullDrain)), workers[i].Name)
		}
	}
}

// roll edits the workers' template while a stream of tasks runs, and waits until both
// workers are replaced.
func (e *env) roll(ctx context.Context, value string) {
	GinkgoHelper()
	before := e.staying(ctx, 2)
	stream := e.begin(ctx, rendered("programs/tasks.py", nil))
	stream.reaches(ctx, &stream.pod, "/tmp/streaming")
	begin := time.Now()
	e.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
		spec.WorkerGroups[0].Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: v1beta1.ContainerRay, Env: []corev1.EnvVar{{Name: "EDITED", Value: value}}}},
		}}
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
	after := e.staying(ctx, 2)
	for _, worker := range slices.Concat(before, after) {
		Expect(shown.Pods).To(ContainElement(worker.Name), "each of them had work")
	}
	for _, uid := range uids(before) {
		Expect(uids(after)).NotTo(ContainElement(uid))
	}
}

// upToDate waits until every pod was built from the spec as it is now, and is ready.
func (e *env) upToDate(ctx context.Context) {
	GinkgoHelper()
	e.is(ctx, v1beta1.ConditionUpToDate)
	e.ready(ctx)
}
