package integration

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/internal/faultproxy"
)

// settledJobs makes a job in each state that lasts, and gives them when they are there:
// running, over, over with a cluster that is kept, suspended, and in the queue.
func settledJobs(t *testing.T, namespace string) []types.NamespacedName {
	t.Helper()
	cluster := newCluster(namespace, "c", 0)
	cluster.Spec.MaxConcurrentJobs = new(int32(1))
	must(t, shared.Create(t.Context(), cluster))
	on := types.NamespacedName{Namespace: namespace, Name: "c"}
	kept := jobOn(on, "kept", "work 100 0")
	kept.Spec.ClusterRef = nil
	kept.Spec.ClusterTemplate = &v1beta1.ClusterTemplate{Spec: newCluster(namespace, "", 1).Spec}
	kept.Spec.Cleanup = []v1beta1.CleanupRule{{Outcome: v1beta1.OutcomeFailure, Action: v1beta1.CleanupDeleteCluster}}
	suspended := jobOn(on, "suspended", "work 100 0")
	suspended.Spec.Suspend = new(true)
	var names []types.NamespacedName
	for _, want := range []struct {
		job   *v1beta1.ClusterJob
		phase string
	}{
		{jobOn(on, "over", "work 100 0"), v1beta1.PhaseSucceeded},
		{jobOn(on, "failed", "work 100 3"), v1beta1.PhaseFailed},
		{kept, v1beta1.PhaseSucceeded},
		{suspended, v1beta1.PhaseSuspended},
		{jobOn(on, "running", "hang"), v1beta1.PhaseRunning},
		{jobOn(on, "waiting", "work 100 0"), v1beta1.PhasePending},
	} {
		must(t, shared.Create(t.Context(), want.job))
		name := client.ObjectKeyFromObject(want.job)
		_, err := shared.UntilPhase(t.Context(), name, want.phase, limit)
		must(t, err)
		names = append(names, name)
	}
	return names
}

// TestJobsThatSettledCostNoCalls counts what jobs cost while nothing happens, the running
// one among them; and that an operator that is started again writes nothing either.
func TestJobsThatSettledCostNoCalls(t *testing.T) {
	t.Parallel()
	const calm = 10 * time.Second
	namespace := newNamespace(t)
	headsIn(t, namespace, willing)
	first := startOperator(t, "--watch-namespaces="+namespace)
	settledJobs(t, namespace)
	first.quiet()

	before, looks := shared.audit.now(t), requestsOf(namespace)
	after(t, calm)
	if made := budgetsApart(shared.audit.since(t, before, namespace)); len(made) > 0 {
		t.Errorf("jobs that have settled cost the API server in %v: %s", calm, tally(made))
	}
	more := requestsOf(namespace) - looks
	if t.Logf("heads were asked %d times in %v", more, calm); more < 3 {
		t.Errorf("the head of a running job was asked %d times in %v, want every 3 s at least", more, calm)
	}

	first.stop(syscall.SIGTERM)
	before = shared.audit.now(t)
	second := startOperator(t, "--watch-namespaces="+namespace)
	endJobs(t, namespace)
	second.quiet()
	if made := budgetsApart(writes(shared.audit.since(t, before, namespace))); len(made) > 0 {
		t.Errorf("an operator that was started anew wrote: %s", tally(made))
	}
}

// TestAPlaceThatIsGivenBackIsTaken: those in the queue do not wait for longer than the one before
// them runs.
func TestAPlaceThatIsGivenBackIsTaken(t *testing.T) {
	t.Parallel()
	const many = 5
	namespace := newNamespace(t)
	headsIn(t, namespace, willing)
	startOperator(t, "--watch-namespaces="+namespace)
	cluster := newCluster(namespace, "c", 0)
	one := int32(1)
	cluster.Spec.MaxConcurrentJobs = &one
	must(t, shared.Create(t.Context(), cluster))
	name := ready(t, types.NamespacedName{Namespace: namespace, Name: "c"})
	began := time.Now()
	for i := range many {
		must(t, shared.Create(t.Context(), jobOn(client.ObjectKeyFromObject(name), fmt.Sprintf("j%d", i), "work 100 0")))
	}
	for i := range many {
		_, err := shared.UntilPhase(t.Context(), types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("j%d", i)}, v1beta1.PhaseSucceeded, limit)
		must(t, err)
	}
	// Each would have waited half a minute while the place of the one before counted on.
	took := time.Since(began)
	t.Logf("one after the other: %d jobs took %v", many, rounded(took))
	inTime(t, fmt.Sprintf("%d jobs one after the other", many), took, 30*time.Second)
	var last time.Time
	for _, run := range runsIn(namespace) {
		if run.At.Before(last.Add(100 * time.Millisecond)) {
			t.Errorf("%s began before the one before it had ended", run.ID)
		}
		last = run.At
	}
}

// requestsOf is how many requests the heads of a namespace have had.
func requestsOf(namespace string) int {
	requests := 0
	for _, one := range shared.heads.of(namespace) {
		requests += one.proxy.Counts()[faultproxy.Pass]
	}
	return requests
}
