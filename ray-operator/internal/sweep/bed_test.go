package sweep

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/turns"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// swept is one call of the sweep function.
type swept struct {
	server    controlstore.Server
	namespace string
	owner     types.UID
}

// bed is a Sweeper over a fake API server and scripted Redis, in a bubble of time.
type bed struct {
	t        *testing.T
	api      client.WithWatch
	cache    client.Client // what the cache has; by default all
	sweeper  *Sweeper
	registry *prometheus.Registry
	end      func()

	mu    sync.Mutex
	sweep []swept
	// redis answers for an address; a server without an entry is cleaned at once.
	redis map[string]func(ctx context.Context) error
	// live counts the calls past the cache, writes included, as "get ComputeCluster".
	live map[string]int
	fail map[string]error
	logs []string
	// events holds those that were written about notes.
	events *events.FakeRecorder
}

// team is the namespace of the clusters.
func team() *corev1.Namespace { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}} }

// run runs a test in a bubble of time. The Sweeper is started by begin.
func run(t *testing.T, objects []client.Object, test func(b *bed)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bed{t: t, redis: map[string]func(context.Context) error{}, live: map[string]int{}, fail: map[string]error{}, registry: prometheus.NewRegistry(), events: events.NewFakeRecorder(10)}
		b.api = fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects...).WithObjects(team()).Build()
		b.cache = b.api
		test(b)
		if b.end != nil {
			b.end()
		}
	})
}

// begin starts a Sweeper, as an operator that starts does.
func (b *bed) begin(change ...func(*Sweeper)) {
	counted := b.counted()
	b.registry = prometheus.NewRegistry()
	metrics, err := telemetry.NewMetrics(b.registry)
	if err != nil {
		b.t.Fatal(err)
	}
	b.sweeper = &Sweeper{
		Turns: turns.New(48, 8),
		Cache: b.cache, Live: counted, Nodes: b.cache, Writer: &kube.Writer{Client: counted, Live: counted},
		Sweep: b.clean, Metrics: metrics, Clock: clock.RealClock{}, Namespace: "heliostat",
		Command: controlstore.CleanUp, Events: telemetry.Recorder{Events: b.events},
	}
	for _, c := range change {
		c(b.sweeper)
	}
	ctx, stop := context.WithCancel(log.IntoContext(b.t.Context(), funcr.New(func(_, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.logs = append(b.logs, args)
	}, funcr.Options{})))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := b.sweeper.Start(ctx); err != nil {
			b.t.Error(err)
		}
	}()
	b.end = sync.OnceFunc(func() { stop(); <-ended })
	synctest.Wait()
}

// counted counts what goes past the cache, and fails what it is told to.
func (b *bed) counted() client.Client {
	note := func(verb string, obj any) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		call := fmt.Sprintf("%s %T", verb, obj)
		b.live[call]++
		return b.fail[call]
	}
	return interceptor.NewClient(b.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := note("get", obj); err != nil {
				return err
			}
			return c.Get(ctx, name, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := note("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := note("patch", obj); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := note("delete", obj); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
	})
}

func (b *bed) clean(ctx context.Context, server controlstore.Server, namespace string, owner types.UID) (int, error) {
	b.mu.Lock()
	b.sweep = append(b.sweep, swept{server, namespace, owner})
	answer := b.redis[server.Address]
	b.mu.Unlock()
	if answer == nil {
		return 7, nil
	}
	return 0, answer(ctx)
}

// serve says how the Redis at an address answers; nil is well.
func (b *bed) serve(address string, answer func(context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.redis[address] = answer
}

// refuse says with what a call past the cache fails; nil is not at all.
func (b *bed) refuse(call string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail[call] = err
}

// sweeps are the calls of the sweep function so far.
func (b *bed) sweeps() []swept {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]swept(nil), b.sweep...)
}

// calls counts one kind of call past the cache, or all if there is none named.
func (b *bed) calls(call string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if call != "" {
		return b.live[call]
	}
	all := 0
	for _, n := range b.live {
		all += n
	}
	return all
}

// pass lets time go by.
func (b *bed) pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// notes are those that are left, by name.
func (b *bed) notes() map[string]corev1.ConfigMap {
	b.t.Helper()
	var list corev1.ConfigMapList
	if err := b.api.List(b.t.Context(), &list); err != nil {
		b.t.Fatal(err)
	}
	left := map[string]corev1.ConfigMap{}
	for i := range list.Items {
		left[list.Items[i].Name] = list.Items[i]
	}
	return left
}

// only is the data of the note that is left, nil if there is none.
func (b *bed) only() map[string]string {
	b.t.Helper()
	left := b.notes()
	if len(left) > 1 {
		b.t.Fatalf("%d notes are left", len(left))
	}
	for name := range left {
		return left[name].Data
	}
	return nil
}

func (b *bed) create(obj client.Object) {
	b.t.Helper()
	if err := b.api.Create(b.t.Context(), obj); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) delete(obj client.Object) {
	b.t.Helper()
	if err := b.api.Delete(b.t.Context(), obj); err != nil {
		b.t.Fatal(err)
	}
}

// unswept is the gauge: waiting, failing, stuck.
func (b *bed) unswept() [3]float64 {
	b.t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	var all [3]float64
	for _, family := range families {
		if family.GetName() != "heliostat_stores_unswept" {
			continue
		}
		for _, metric := range family.GetMetric() {
			at := map[string]int{StateWaiting: 0, StateFailing: 1, StateStuck: 2}[metric.GetLabel()[0].GetValue()]
			all[at] = metric.GetGauge().GetValue()
		}
	}
	return all
}

// open is a note about a Redis without a password.
func open(n int, address string) Note {
	return Note{
		UID: types.UID(fmt.Sprint("uid-", n)), Cluster: types.NamespacedName{Namespace: "team", Name: fmt.Sprint("c", n)},
		Address: address, Namespace: fmt.Sprint("ns-", n),
	}
}

func clusterOf(note Note) *v1beta1.ComputeCluster {
	return &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: note.Cluster.Namespace, Name: note.Cluster.Name, UID: note.UID}}
}

// podOf is a pod of a note's cluster, with an owner unless it is to have none.
func podOf(note Note, owner types.UID, node string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: note.Cluster.Namespace, Name: note.Cluster.Name + "-head-x", Labels: map[string]string{v1beta1.LabelCluster: note.Cluster.Name}},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if owner != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "heliostat.dev/v1beta1", Kind: "ComputeCluster", Name: note.Cluster.Name, UID: owner, Controller: new(true)}}
	}
	return pod
}

func secret(name string, data map[string]string) *corev1.Secret {
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: map[string][]byte{}}
	for key, value := range data {
		made.Data[key] = []byte(value)
	}
	return made
}

// nothingLeft asserts that no note is left and none is counted, after so many sweeps.
func (b *bed) nothingLeft(sweeps int) {
	b.t.Helper()
	if left := b.only(); left != nil {
		b.t.Errorf("left %v", left)
	}
	if got := b.unswept(); got != [3]float64{} {
		b.t.Errorf("unswept: %v", got)
	}
	if got := b.sweeps(); sweeps >= 0 && len(got) != sweeps {
		b.t.Errorf("swept %v", got)
	}
}

// counts asserts how many notes are waiting, failing and stuck, and how often notes were written.
func (b *bed) counts(waiting, failing, stuck float64, writes int) {
	b.t.Helper()
	if got := b.unswept(); got != [3]float64{waiting, failing, stuck} {
		b.t.Errorf("waiting, failing, stuck: %v", got)
	}
	if n := b.calls("patch *v1.ConfigMap"); n != writes {
		b.t.Errorf("%d writes, want %d", n, writes)
	}
}
