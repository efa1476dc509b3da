package app

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/schedule"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/service"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

// informers returns a cache whose changes a test makes.
func informers(t *testing.T) *informertest.FakeInformers {
	t.Helper()
	known, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return &informertest.FakeInformers{Scheme: known}
}

// answers returns a source that wakes what has its name as soon as it is started.
func answers(name string) source.Source {
	return source.Func(func(_ context.Context, into queue) error {
		into.Add(request("n", name))
		return nil
	})
}

// start starts sources on a queue, one after the other.
func start(ctx context.Context, t *testing.T, all []source.Source, into queue) {
	t.Helper()
	for _, one := range all {
		if err := one.Start(ctx, into); err != nil {
			t.Fatal(err)
		}
		if kind, is := one.(source.SyncingSource); is {
			if err := kind.WaitForSync(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// pollerOf is a poller with one answer, which wakes the object of that name.
type pollerOf string

func (name pollerOf) Changes() source.Source { return answers(string(name)) }

func TestSources_WakeByAnswers(t *testing.T) {
	from, now := sources{informers(t), nil, nil}, clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	for name, c := range map[string]struct {
		sources []source.Source
		want    []string
	}{
		"clusters wake by heads, autoscalers and stores": {
			from.ofClusters(Config{WatchNodes: true}, pollerOf("heads"), pollerOf("scalers"), pollerOf("stores")),
			[]string{"heads", "scalers", "stores"},
		},
		"jobs wake by heads":     {from.ofJobs(&job.WaitingJobs{}, now, Config{}, pollerOf("heads")), []string{"heads"}},
		"services wake by heads": {from.ofServices(pollerOf("heads")), []string{"heads"}},
	} {
		got := woken(t, func(ctx context.Context, into queue) { start(ctx, t, c.sources, into) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: they wake by %v, want %v", name, got, c.want)
		}
	}
}

// ownedBy returns objects of kinds that one owner controls.
func ownedBy(kind, name string, objects ...client.Object) []client.Object {
	for _, one := range objects {
		one.SetNamespace("n")
		one.SetOwnerReferences([]metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(true)}})
	}
	return objects
}

// controlled are the rules of one controller, and the namespaces that have objects of its kind; nil is all.
type controlled struct {
	rules []wake.Rule
	known *census
}

// happening is something that a cache tells of an object, and whom of one controller it wakes.
type happening struct {
	name string
	of   controlled
	tell func(*controllertest.FakeInformer, client.Object)
	what client.Object
	want []string
}

func comes(to *controllertest.FakeInformer, obj client.Object) { to.Add(obj) }
func goes(to *controllertest.FakeInformer, obj client.Object)  { to.Delete(obj) }

// cordons tells that a node takes no more pods.
func cordons(to *controllertest.FakeInformer, obj client.Object) {
	to.Update(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: obj.GetName()}}, obj)
}

// jobsAmong are jobs of the namespaces that a census knows.
func jobsAmong(known *census) controlled {
	return controlled{job.WakeRules(&job.WaitingJobs{}, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), true), known}
}

// ofOwned returns what happens to objects that clusters, jobs and services own.
func ofOwned(clusters, jobs, services controlled) []happening {
	var all []happening
	for _, child := range ownedBy("ComputeCluster", "demo", cluster.Children()...) {
		all = append(all, happening{"what it owns wakes a cluster", clusters, comes, child, []string{"demo"}})
	}
	for _, workload := range ownedBy("ComputeCluster", "queued", &kueue.Workload{}) {
		all = append(all, happening{"its Workload wakes a cluster", clusters, comes, workload, []string{"queued"}},
			happening{"the Workload of a cluster wakes no job", jobs, comes, workload, nil})
	}
	for _, workload := range ownedBy("ClusterJob", "batch", &kueue.Workload{}) {
		all = append(all, happening{"its Workload wakes a job", jobs, comes, workload, []string{"batch"}},
			happening{"the Workload of a job wakes the cluster that it made", clusters, comes, workload, []string{"demo"}})
	}
	for _, child := range ownedBy("ClusterService", "its-service",
		&corev1.Service{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{}, &appsv1.ControllerRevision{}) {
		all = append(all, happening{"what it owns wakes a service", services, comes, child, []string{"its-service"}})
	}
	return all
}

func TestSources_WakeByObjects(t *testing.T) {
	clusters := controlled{rules: cluster.WakeRules(cluster.Watched{Nodes: true, Queue: true})}
	blind := controlled{rules: cluster.WakeRules(cluster.Watched{})}
	some, none := newCensus(), newCensus()
	some.add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "one"}})
	jobs, services := jobsAmong(some), controlled{service.WakeRules(), some}
	runs, waits, ended, serves := jobOn("runs", "head"), jobOn("waits", ""), jobOn("ended", ""), serviceOn("serves")
	ended.Status.EndTime = &metav1.Time{Time: time.Unix(1, 0)}
	owned := clusterNamed("demo", metav1.OwnerReference{Kind: "ClusterJob", Name: "its-job"},
		metav1.OwnerReference{Kind: "ClusterService", Name: "its-service"})
	scheduled := jobOn("nightly-1", "")
	ownedBy("ClusterJobSchedule", "nightly", &scheduled)
	worker := corev1.Pod{}
	ownedBy("ComputeCluster", "demo", &worker)
	head := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "h",
		Labels: map[string]string{v1beta1.LabelCluster: "demo", v1beta1.LabelRole: v1beta1.RoleHead},
	}}
	refers := cachedNamespace{
		cluster: owned, jobs: []v1beta1.ClusterJob{waits, ended}, services: []v1beta1.ClusterService{serves},
		pods: []corev1.Pod{worker},
	}
	all := []happening{
		{"a job wakes its cluster", clusters, comes, &runs, []string{"demo"}},
		{"a policy for all pods wakes the clusters beside it", clusters, comes, policy(), []string{"demo"}},
		{"a node that is cordoned wakes the clusters on it", clusters, cordons, node(), []string{"demo"}},
		{"a node that may not be watched wakes none", blind, cordons, node(), nil},
		{"a job that goes wakes the next in the queue", jobs, goes, &runs, []string{"waits"}},
		{"a cluster wakes its jobs", jobs, comes, owned, []string{"its-job", "waits"}},
		{"a head wakes its jobs", jobs, comes, head, []string{"its-job", "waits"}},
		{"a cluster wakes no jobs where there are none", jobsAmong(none), comes, owned, nil},
		{"a head wakes no jobs where there are none", jobsAmong(none), comes, head, nil},
		{"a cluster wakes no services where there are none", controlled{service.WakeRules(), none}, comes, owned, nil},
		{"a pod wakes no services where there are none", controlled{service.WakeRules(), none}, comes, head, nil},
		{"a service wakes those beside it", services, comes, &serves, []string{"serves"}},
		{"a cluster wakes its services", services, comes, owned, []string{"its-service", "serves"}},
		{"a job that goes wakes its schedule", controlled{schedule.WakeRules(), some}, goes, &scheduled, []string{"nightly"}},
		{"a pod wakes its services", services, comes, head, []string{"its-service", "serves"}},
	}
	all = append(all, ofOwned(clusters, jobs, services)...)
	for _, one := range all {
		cached := informers(t)
		got := woken(t, func(ctx context.Context, into queue) {
			start(ctx, t, sources{cached, refers, one.of.known}.follow(one.of.rules), into)
			informer, err := cached.FakeInformerFor(ctx, one.what)
			if err != nil {
				t.Fatal(err)
			}
			one.tell(informer, one.what)
		})
		if !slices.Equal(got, one.want) {
			t.Errorf("%s: %T wakes %v, want %v", one.name, one.what, got, one.want)
		}
	}
}

// TestComplete_HandsSourcesToTheController: the request of a source reaches the reconciler.
func TestComplete_HandsSourcesToTheController(t *testing.T) {
	cached := informers(t)
	manager, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme: cached.Scheme, Metrics: server.Options{BindAddress: "0"},
		NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) { return cached, nil },
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var reached []string
	reconciler := reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
		reached = append(reached, request.Name)
		cancel()
		return reconcile.Result{}, nil
	})
	build := ctrl.NewControllerManagedBy(manager).Named("sources").For(&v1beta1.ClusterJob{})
	if err := complete(build, []source.Source{answers("heads")}, reconciler, workers{most: 1}); err != nil {
		t.Fatal(err)
	}
	if err := manager.Start(ctx); err != nil || !slices.Equal(reached, []string{"heads"}) {
		t.Errorf("reconciled %v, %v", reached, err)
	}
}

// TestBackOff_EndsAtHalfAMinute: whatever failed for however long is tried again soon after the API server is back.
func TestBackOff_EndsAtHalfAMinute(t *testing.T) {
	limiter, one := optionsOf(workers{most: 1}).RateLimiter, reconcile.Request{}
	if first := limiter.When(one); first != 5*time.Millisecond {
		t.Errorf("the first pause is %s", first)
	}
	for range 100 {
		if pause := limiter.When(one); pause > 30*time.Second {
			t.Fatalf("after %d failures the pause is %s", limiter.NumRequeues(one), pause)
		}
	}
	if last := limiter.When(one); last != 30*time.Second {
		t.Errorf("the last pause is %s", last)
	}
}
