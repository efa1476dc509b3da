package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/bench/portals"
	"github.com/heliostat-dev/heliostat/tests/internal/fakekubelet"
	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestThreeResyncsOfTwentyClustersWriteNothing(t *testing.T) {
	const clusters, resync = 20, 2 * time.Second
	namespace := newNamespace(t)
	first := startOperator(t)
	names := create(t, namespace, clusters, 2)
	for _, name := range names {
		ready(t, name)
	}
	first.quiet()
	first.stop(syscall.SIGTERM)

	before := shared.audit.now(t)
	second := startOperator(t, "--resync="+resync.String())
	passes, begin := second.quiet(), time.Now()
	// A resync comes up to a tenth late.
	must(t, live.Until(t.Context(), limit, "three resyncs", func(context.Context) error {
		if spent := time.Since(begin); spent < 3*resync*11/10 {
			return fmt.Errorf("%v have passed", spent)
		}
		return nil
	}))
	second.passed(passes + 3*clusters)
	second.stop(syscall.SIGTERM)
	if made := budgetsApart(writes(shared.audit.since(t, before, namespace))); len(made) > 0 {
		t.Errorf("a restart and three resyncs over %d clusters wrote: %s", clusters, tally(made))
	}
}

// TestServerLabels_CostOneWritePerPolicy: an operator that is told of a server for portals rewrites the policy of each
// cluster and each service that is there once, and writes nothing else.
func TestServerLabels_CostOneWritePerPolicy(t *testing.T) {
	clusters, services := number(t, portals.FleetVariable, 5), 3
	namespace := newNamespace(t)
	told := []string{"--namespace=" + live.ReleaseNamespace, "--operator-labels=app=operator"}
	first := startOperator(t, told...)
	for i, name := range create(t, namespace, clusters, 1) {
		ready(t, name)
		if i < services {
			serveOn(t, name)
		}
	}
	first.quiet()
	first.stop(syscall.SIGTERM)

	before := shared.audit.now(t)
	second := startOperator(t, append(told, "--server-labels=app=server")...)
	second.passed(float64(clusters)) // before its caches are filled it has nothing to do
	second.quiet()
	second.stop(syscall.SIGTERM)
	made := slices.DeleteFunc(budgetsApart(writes(shared.audit.since(t, before, namespace))), func(r request) bool {
		return r.what() == "patch clusterservices/status" // how long a service waits for a head, which nobody plays here
	})
	policies := slices.DeleteFunc(slices.Clone(made), func(r request) bool { return r.what() != "patch networkpolicies" })
	t.Logf("%d clusters cost %d writes: %s", clusters, len(made)-services, tally(made))
	if len(policies) != clusters+services || len(made) != clusters+services {
		t.Errorf("%d clusters and %d services cost the writes %s, want one of each one's policy", clusters, services, tally(made))
	}
}

// serveOn makes a service on a cluster, of the same name, and waits for its policy.
func serveOn(t *testing.T, cluster types.NamespacedName) {
	t.Helper()
	must(t, shared.Create(t.Context(), &v1beta1.ClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name},
		Spec:       v1beta1.ClusterServiceSpec{ServeConfig: echo(0), ClusterRef: &v1beta1.ClusterReference{Name: cluster.Name}},
	}))
	must(t, live.Until(t.Context(), limit, "the policy of a service", func(context.Context) error {
		return shared.Get(t.Context(), types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name + "-serve"}, &networkingv1.NetworkPolicy{})
	}))
}

// TestAClusterTakesFewWrites: a cluster costs one write for each of its objects and one more worker costs its pod, beside
// as few statuses as statusesWithin says.
func TestAClusterTakesFewWrites(t *testing.T) {
	namespace := newNamespace(t)
	o := startOperator(t)
	o.quiet()
	before, begin := shared.audit.now(t), time.Now()
	name := create(t, namespace, 1, 3)[0]
	ready(t, name)
	within := time.Since(begin)
	o.quiet()
	spent(t, "a head with three workers", shared.audit.since(t, before, namespace), 1+statusesWithin(within),
		"1 × create networkpolicies, 4 × create pods, 1 × create secrets, 1 × create services")

	before, begin = shared.audit.now(t), time.Now()
	scaleTo(t, name, 4)
	ready(t, name)
	within = time.Since(begin)
	o.quiet()
	spent(t, "one more worker", shared.audit.since(t, before, namespace), max(1, statusesWithin(within)), "1 × create pods")
}

// statusesWithin is how many statuses tell of no more than progress, beside the one that says that a cluster is ready:
// each waits two seconds for more to tell.
func statusesWithin(span time.Duration) int { return int(span / (2 * time.Second)) }

// TestDeletion_IsHastenedByOneCall: pods of a deleted cluster that take all of their grace have five seconds, whether its
// deletion waits for them or not, and one call says so.
func TestDeletion_IsHastenedByOneCall(t *testing.T) {
	t.Parallel()
	deletions := map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationBackground: newNamespace(t), metav1.DeletePropagationForeground: newNamespace(t),
	}
	o := startOperator(t, "--watch-namespaces="+strings.Join(slices.Collect(maps.Values(deletions)), ","))
	for _, namespace := range deletions {
		cluster := newCluster(namespace, "lingers", 3)
		cluster.Spec.PodDefaults = &v1beta1.PodDefaults{Labels: map[string]string{fakekubelet.LabelLingers: "true"}}
		must(t, shared.Create(t.Context(), cluster))
	}
	for _, namespace := range deletions {
		ready(t, types.NamespacedName{Namespace: namespace, Name: "lingers"})
	}
	o.quiet()
	before := shared.audit.now(t)
	for how, namespace := range deletions {
		must(t, shared.Delete(t.Context(), newCluster(namespace, "lingers", 0), client.PropagationPolicy(how)))
		eventually(t, "all pods to have five seconds", func(context.Context) error { return haveGrace(t, namespace, 4, 5) })
	}
	for how, namespace := range deletions {
		emptied(t, namespace)
		// A pod that the cache shows late is hastened by itself.
		spent(t, "a deletion by the policy "+string(how), shared.audit.since(t, before, namespace), 0,
			"1 × deletecollection pods", "1 × delete pods, 1 × deletecollection pods")
	}
}

// haveGrace reports what keeps a namespace from having so many pods that end, each with so many seconds.
func haveGrace(t *testing.T, namespace string, many int, seconds int64) error {
	t.Helper()
	var pods corev1.PodList
	must(t, shared.List(t.Context(), &pods, client.InNamespace(namespace)))
	graces := make([]int64, len(pods.Items))
	for i := range pods.Items {
		if given := pods.Items[i].DeletionGracePeriodSeconds; given != nil {
			graces[i] = *given
		}
	}
	if !slices.Equal(graces, slices.Repeat([]int64{seconds}, many)) {
		return fmt.Errorf("they have %v seconds", graces)
	}
	return nil
}

// spent prints what of all requests wrote something, and fails if it is other than one of those that are wanted, beside
// budgets and a number of statuses.
func spent(t *testing.T, what string, all []request, statuses int, wanted ...string) {
	t.Helper()
	made := budgetsApart(writes(all))
	t.Logf("%s: %d writes: %s", what, len(made), tally(made))
	rest := slices.DeleteFunc(slices.Clone(made), func(r request) bool { return r.what() == "patch computeclusters/status" })
	if told := len(made) - len(rest); told > statuses || !slices.Contains(wanted, tally(rest)) {
		t.Errorf("%s took %s, want one of %q and at most %d statuses", what, tally(made), wanted, statuses)
	}
}

func TestManyClustersTakeFewWritesEach(t *testing.T) {
	const clusters, workers = 20, 3
	namespace := newNamespace(t)
	o := startOperator(t)
	o.quiet()
	before, begin := shared.audit.now(t), time.Now()
	for _, name := range create(t, namespace, clusters, workers) {
		ready(t, name)
	}
	statuses := 1 + min(3, statusesWithin(time.Since(begin)))
	o.quiet()
	spent(t, "twenty clusters of a head and three workers", shared.audit.since(t, before, namespace), statuses*clusters, fmt.Sprintf(
		"%d × create networkpolicies, %d × create pods, %d × create secrets, %d × create services", clusters, clusters*(1+workers), clusters, clusters))
	// Only a fault could break these limits; what is promised is measured by make bench.
	if used := o.usage(); used.peak > 500 || used.cpu > clusters/2 {
		t.Errorf("the operator took %.0f MiB and %.1f s of CPU, want at most 500 MiB, and half a second a cluster", used.peak, used.cpu)
	}
}

// TestSecrets_AreNotReadAtRest: neither questions to heads, for idle policies and for services, nor passes read the Secret
// of a cluster again and again. One look at each may be due.
func TestSecrets_AreNotReadAtRest(t *testing.T) {
	t.Parallel()
	const clusters, calm = 5, 20 * time.Second
	namespace := newNamespace(t)
	headsIn(t, namespace, willing)
	startOperator(t, "--watch-namespaces="+namespace)
	t.Cleanup(func() {
		if err := shared.DropServices(context.WithoutCancel(t.Context()), namespace, limit); err != nil {
			t.Error(err)
		}
	})
	for i := range clusters {
		cluster := newCluster(namespace, fmt.Sprintf("c%d", i), 0)
		cluster.Spec.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: 24 * 60 * 60, Action: v1beta1.IdleSuspend}
		must(t, shared.Create(t.Context(), cluster))
		name := client.ObjectKeyFromObject(cluster)
		ready(t, name)
		serveOn(t, name)
	}
	asked := func(times int) func(context.Context) error {
		before := requestsOf(namespace)
		return func(context.Context) error {
			if more := requestsOf(namespace) - before; more < times {
				return fmt.Errorf("they were asked %d times", more)
			}
			return nil
		}
	}
	must(t, live.Until(t.Context(), limit, "all heads to be asked", asked(5*clusters)))
	before, looks := shared.audit.now(t), asked(2*clusters)
	after(t, calm)
	must(t, looks(t.Context()))
	reads := map[string]int{}
	for _, r := range shared.audit.since(t, before, namespace) {
		if r.what() == "get secrets" {
			reads[r.ObjectRef.Name]++
		}
	}
	for name, times := range reads {
		if times > 1 {
			t.Errorf("Secret %s was read %d times in %v", name, times, calm)
		}
	}
}
