package testkit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
)

const (
	// patience is for how long of the fake clock a World without change is watched: it
	// is longer than any wake time of the operator.
	patience = 20 * time.Second
	// maxPasses is far above what any scenario needs.
	maxPasses = 3000
)

// World is the real reconciler with everything around it faked. Client acts as users
// and Kubernetes do; the operator has its own, on which faults are injected.
type World struct {
	testing.TB
	Ctx     context.Context
	Clock   *clocktesting.FakeClock
	Client  client.Client
	Kubelet *Kubelet
	History *History
	// HoldGC keeps the garbage collector from its work.
	HoldGC bool
	// Told are the events that were recorded, as "Reason: text".
	Told []string
	// Lag is how many revisions the operator's cache is behind while anything happens.
	Lag int

	server     *server
	view       *view
	operator   *operator
	reconciler *cluster.Reconciler
	// due tells of each cluster when to reconcile it next.
	due        map[types.NamespacedName]time.Time
	revisions  int
	logs       []string
	lastChange time.Time
	// settled is called at each fixed point.
	settled func()
}

// NewWorld is an empty world.
func NewWorld(t testing.TB) *World {
	t.Helper()
	w := &World{
		TB: t, Clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), History: NewHistory(),
		due: map[types.NamespacedName]time.Time{}, view: newView(shared().scheme), settled: func() {},
	}
	w.Ctx = log.IntoContext(t.Context(), funcr.New(func(_, args string) { w.logs = append(w.logs, args) }, funcr.Options{}))
	w.server = newServer(w.Clock, w.publish)
	w.Client = w.server.WithWatch
	w.Kubelet = &Kubelet{Client: w.Client, Clock: w.Clock, StartDelay: 3 * time.Second, StopDelay: 2 * time.Second}
	w.operator = &operator{world: w}
	w.reconciler = w.operator.reconciler()
	return w
}

func (w *World) publish(event Event) {
	w.revisions++
	w.lastChange = w.Clock.Now()
	w.History.Observe(event)
	w.view.push(event)
}

// Eventf takes an event of the operator.
//
//shape:dictated k8s.io/client-go/tools/events.EventRecorder
func (w *World) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	if !w.operator.dead {
		w.Told = append(w.Told, reason+": "+fmt.Sprintf(note, args...))
	}
}

// Refuse makes the API server refuse creates; nil lets all through again.
func (w *World) Refuse(admit func(client.Object) error) {
	if admit == nil {
		admit = func(client.Object) error { return nil }
	}
	w.server.admit = admit
}

// Settle lets everybody work until nothing happens any more, and then asserts that one
// more pass over every cluster makes no write, no event and no log line.
func (w *World) Settle() {
	w.Helper()
	w.run()
	w.settled()
	w.check()
	revisions, told, logs, writes := w.revisions, len(w.Told), len(w.logs), len(w.operator.writes)
	w.passAll()
	if w.revisions != revisions || len(w.Told) != told || len(w.logs) != logs || len(w.operator.writes) != writes {
		w.Fatalf("a pass over a settled world is not quiet: %d revisions, events %q, log %q, writes %q",
			w.revisions-revisions, w.Told[told:], w.logs[logs:], w.operator.writes[writes:])
	}
}

// SettleRefused is Settle for a world in which the API server refuses something: the
// operator tries again, but nothing may come of it.
func (w *World) SettleRefused() {
	w.Helper()
	w.run()
	w.settled()
	w.check()
	revisions, told := w.revisions, len(w.Told)
	w.passAll()
	if w.revisions != revisions || len(w.Told) != told {
		w.Fatalf("a pass over a world at rest is not quiet: %d revisions, events %q", w.revisions-revisions, w.Told[told:])
	}
}

func (w *World) check() {
	w.Helper()
	if broken := w.History.Broken(); len(broken) > 0 {
		w.Fatalf("rules broken:\n%s", strings.Join(broken, "\n"))
	}
	if left := w.History.Left(); len(left) > 0 && !w.HoldGC {
		w.Fatalf("left behind by clusters that are gone: %s", strings.Join(left, ", "))
	}
}

// run works until a fixed point: nothing is due but the operator's own second looks,
// and those have changed nothing for as long as patience.
func (w *World) run() {
	w.Helper()
	w.lastChange = w.Clock.Now()
	for range maxPasses {
		w.refresh(w.Lag)
		if w.passDue() {
			continue
		}
		if w.catchUp() {
			continue
		}
		changed, next, err := w.Kubelet.Step(w.Ctx)
		w.Must(err)
		if w.collect() || changed {
			continue
		}
		for _, at := range w.due {
			if wait := at.Sub(w.Clock.Now()); (next == 0 || wait < next) && at.Sub(w.lastChange) <= patience {
				next = wait
			}
		}
		if next == 0 {
			return
		}
		w.Clock.Step(next)
	}
	w.Fatalf("the world does not come to rest; last writes: %q", w.operator.writes[max(0, len(w.operator.writes)-20):])
}

// refresh lets the cache catch up but for lag revisions, and notes what has to be looked at.
func (w *World) refresh(lag int) {
	for _, event := range w.view.deliver(lag) {
		if name, ok := clusterOf(event.Object); ok {
			w.due[name] = w.Clock.Now()
		}
	}
}

// catchUp lets one late revision into the cache.
func (w *World) catchUp() bool {
	late := len(w.view.queue)
	if late > 0 {
		w.refresh(late - 1)
	}
	return late > 0
}

// clusterOf is the cluster to look at when an object changed, as the operator's watches say.
func clusterOf(obj client.Object) (types.NamespacedName, bool) {
	switch obj.(type) {
	case *v1alpha1.ComputeCluster:
		return client.ObjectKeyFromObject(obj), true
	case *corev1.Pod, *corev1.Service:
		if owner := metav1.GetControllerOf(obj); owner != nil && owner.Kind == "ComputeCluster" {
			return types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name}, true
		}
	}
	return types.NamespacedName{}, false
}

// passDue reconciles what is due.
func (w *World) passDue() bool {
	passed := false
	for name, at := range w.due {
		if !at.After(w.Clock.Now()) {
			delete(w.due, name)
			w.pass(name)
			passed = true
		}
	}
	return passed
}

// pass reconciles one cluster, with a new operator where this one was killed.
func (w *World) pass(name types.NamespacedName) {
	result, err := w.reconciler.Reconcile(w.Ctx, ctrl.Request{NamespacedName: name})
	switch {
	case w.operator.dead:
		w.operator.dead = false
		w.reconciler = w.operator.reconciler()
		w.refresh(0)
		w.due[name] = w.Clock.Now()
	case err != nil:
		w.due[name] = w.Clock.Now().Add(time.Second)
	case result.RequeueAfter > 0:
		w.due[name] = w.Clock.Now().Add(result.RequeueAfter)
	}
}

// passAll looks at every cluster once more, with nothing going wrong.
func (w *World) passAll() {
	w.operator.calm = true
	defer func() { w.operator.calm = false }()
	for _, obj := range w.all() {
		if found, ok := obj.(*v1alpha1.ComputeCluster); ok {
			w.pass(client.ObjectKeyFromObject(found))
		}
	}
}

// collect is the garbage collector: it deletes what belongs to clusters that are gone.
func (w *World) collect() bool {
	if w.HoldGC {
		return false
	}
	alive := map[types.UID]bool{}
	objects := w.all()
	for _, obj := range objects {
		alive[obj.GetUID()] = true
	}
	collected := false
	for _, obj := range objects {
		owner := metav1.GetControllerOf(obj)
		if owner == nil || owner.Kind != "ComputeCluster" || alive[owner.UID] || obj.GetDeletionTimestamp() != nil {
			continue
		}
		collected = true
		w.Must(client.IgnoreNotFound(w.Client.Delete(w.Ctx, obj)))
	}
	return collected
}

// all lists every object of the kinds that matter, from the API server.
func (w *World) all() []client.Object {
	var clusters v1alpha1.ComputeClusterList
	var pods corev1.PodList
	var services corev1.ServiceList
	var secrets corev1.SecretList
	for _, list := range []client.ObjectList{&clusters, &pods, &services, &secrets} {
		w.Must(w.Client.List(w.Ctx, list))
	}
	var all []client.Object
	for i := range clusters.Items {
		all = append(all, &clusters.Items[i])
	}
	for i := range pods.Items {
		all = append(all, &pods.Items[i])
	}
	for i := range services.Items {
		all = append(all, &services.Items[i])
	}
	for i := range secrets.Items {
		all = append(all, &secrets.Items[i])
	}
	return all
}

// Must ends the test on an error.
func (w *World) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
