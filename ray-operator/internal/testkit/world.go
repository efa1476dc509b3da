package testkit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/service"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

const (
	// patience is for how long of the fake clock a World without change is watched: it
	// is longer than anything that the operator waits for of its own accord, but for drains.
	patience = 100 * time.Second
	// maxPasses is far above what any scenario needs.
	maxPasses = 3000
)

// World is the real reconcilers with everything around them faked. Client acts as users
// and Kubernetes do; the operator has its own, on which faults are injected.
type World struct {
	testing.TB
	Ctx     context.Context
	Clock   *clocktesting.FakeClock
	Client  client.Client
	Kubelet *Kubelet
	Ray     *Ray
	Jobs    *Jobs
	Scaler  *Scaler
	Stores  *Stores
	Serving *Serving
	Gateway *Gateway
	Gangs   *Gangs
	History *History
	// HoldGC keeps the garbage collector from its work.
	HoldGC bool
	// Away: there is no operator. Return brings one.
	Away bool
	// ServerLabels are those of the server for portals, as an operator is told when it starts.
	ServerLabels map[string]string
	// Told are the events that were recorded, as "Reason: text".
	Told []string

	server   *server
	view     *view
	operator *operator
	clusters *cluster.Reconciler
	jobs     *job.Reconciler
	services *service.Reconciler
	// rules say whom a change wakes, by the kind of those that are woken.
	rules map[string][]wake.Rule
	// due tells of each cluster, job and service when to reconcile it next.
	due       map[request]time.Time
	revisions []Event
	// proofs are copies of the objects of the revisions, if they must be kept.
	proving    bool
	proofs     []client.Object
	logs       []string
	lastChange time.Time
	// until is up to when the clock is to go, whether anything changes or not; restless
	// tells that it is to go no farther.
	until    time.Time
	restless bool
	trouble  trouble
}

// request is what a controller is asked to reconcile.
type request struct {
	kind string
	types.NamespacedName
}

// NewWorld is an empty world.
func NewWorld(t testing.TB) *World {
	t.Helper()
	w := &World{
		TB: t, Clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), History: NewHistory(),
		due: map[request]time.Time{}, view: newView(labelled), ServerLabels: map[string]string{"app": "server"},
	}
	w.rules = map[string][]wake.Rule{
		clusterKind: cluster.WakeRules(cluster.Watched{Nodes: true}), jobKind: job.WakeRules(&job.WaitingJobs{}, w.Clock, false), serviceKind: service.WakeRules(),
	}
	w.Ctx = log.IntoContext(t.Context(), funcr.New(func(_, args string) { w.logs = append(w.logs, args) }, funcr.Options{}))
	w.server = newServer(w.Clock, w.publish)
	w.Client = w.server
	w.Kubelet = &Kubelet{Client: w.Client, Clock: w.Clock, StartDelay: 3 * time.Second, StopDelay: 2 * time.Second}
	w.Ray, w.Jobs, w.Scaler, w.Stores, w.Serving = newRay(w), newJobs(w), newScaler(w), newStores(w), newServing(w)
	w.Gateway, w.Gangs = &Gateway{world: w}, newGangs(w)
	w.operator = &operator{world: w}
	w.operator.start()
	return w
}

func (w *World) publish(event Event) {
	w.revisions = append(w.revisions, event)
	if w.proving {
		w.proofs = append(w.proofs, copied(event.Object))
	}
	w.lastChange = w.Clock.Now()
	w.trouble.saw(event)
	w.History.Observe(event)
	w.view.push(event)
}

// Eventf takes an event of the operator.
//
//nolint:revive // argument-limit: k8s.io/client-go/tools/events.EventRecorder has these
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
// more pass over every cluster and job makes no write, no event and no log line.
func (w *World) Settle() {
	w.Helper()
	w.rest()
	revisions, told, logs, writes := len(w.revisions), len(w.Told), len(w.logs), len(w.operator.writes)
	w.passAll()
	if len(w.revisions) != revisions || len(w.Told) != told || len(w.logs) != logs || len(w.operator.writes) != writes {
		w.Fatalf("a pass over a settled world is not quiet: %d revisions, events %q, log %q, writes %q",
			len(w.revisions)-revisions, w.Told[told:], w.logs[logs:], w.operator.writes[writes:])
	}
}

// SettleRefused is Settle for a world in which the API server refuses something: the
// operator tries again, but nothing may come of it.
func (w *World) SettleRefused() {
	w.Helper()
	w.rest()
	revisions, told := len(w.revisions), len(w.Told)
	w.passAll()
	if len(w.revisions) != revisions || len(w.Told) != told {
		w.Fatalf("a pass over a world at rest is not quiet: %d revisions, events %q", len(w.revisions)-revisions, w.Told[told:])
	}
}

// After lets the clock go on for a while, with everybody at work, and then settles.
func (w *World) After(while time.Duration) {
	w.Helper()
	w.until = w.Clock.Now().Add(while)
	w.Settle()
}

// prove reports whether the operator left alone what its cache gave it without a copy.
func (w *World) prove() {
	w.Helper()
	for i, kept := range w.proofs {
		if diff := gocmp.Diff(kept, w.revisions[i].Object); diff != "" {
			w.Fatalf("%T %s was changed in the cache (- as it came, + as it is):\n%s", kept, kept.GetName(), diff)
		}
	}
}

// During lets everybody work for a while of the clock and checks the rules, for a world
// that does not come to rest.
func (w *World) During(while time.Duration) {
	w.Helper()
	w.until = w.Clock.Now().Add(while)
	w.restless = true
	w.run()
	w.restless = false
	w.check()
}

// rest runs to a fixed point and checks the rules.
func (w *World) rest() {
	w.Helper()
	w.run()
	w.check()
	w.History.Rested()
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
		w.refresh()
		if !w.Away && (w.passDue() || w.trouble.catchUp(w)) {
			continue
		}
		changed, next := w.others()
		if changed {
			continue
		}
		switch {
		case w.restless && !w.Clock.Now().Add(next).Before(w.until):
			w.Clock.SetTime(w.until)
			return
		case next > 0:
			w.Clock.Step(next)
		case !w.trouble.release(w):
			return
		}
	}
	w.Fatalf("the world does not come to rest; last writes: %q", w.operator.writes[max(0, len(w.operator.writes)-20):])
}

// others lets everybody but the operator do what is due. It gives whether anybody did anything,
// and else how long it is until something happens.
func (w *World) others() (changed bool, next time.Duration) {
	moved, first, err := w.Kubelet.Step(w.Ctx)
	w.Must(err)
	answered, second := w.Ray.step()
	spoke := w.Scaler.step()
	served := w.Stores.step()
	heard, third := w.Jobs.step()
	routed, fourth := w.Gateway.step()
	said, fifth := w.Serving.step()
	collected, sixth := w.collect()
	if moved || answered || spoke || served || heard || said || routed || collected {
		return true, 0
	}
	return false, w.next(first, second, third, fourth, fifth, sixth, w.trouble.blindFor(w.Clock.Now()))
}

// next is how long to let the clock go until something happens; 0 is never.
func (w *World) next(waits ...time.Duration) time.Duration {
	next := w.until.Sub(w.Clock.Now())
	for _, at := range w.due {
		if w.Away {
			break
		}
		if at.Sub(w.lastChange) <= patience || at.Before(w.until) {
			waits = append(waits, at.Sub(w.Clock.Now()))
		}
	}
	for _, wait := range waits {
		if wait > 0 && (next <= 0 || wait < next) {
			next = wait
		}
	}
	return max(0, next)
}

// refresh lets the cache catch up, as far as the trouble there is lets it.
func (w *World) refresh() { w.wake(w.trouble.deliver(w)) }

// wake notes what has to be looked at after what came into the cache, by the rules that the operator's watches follow.
func (w *World) wake(delivered []Event) {
	for _, event := range delivered {
		if gone, ok := event.Object.(*v1beta1.ComputeCluster); ok && event.Type == watch.Deleted {
			w.clusters.Deleted.Add(client.ObjectKeyFromObject(gone), gone.UID)
		}
		change := wake.Change{Old: event.Was, New: event.Object}
		if event.Type == watch.Deleted {
			change = wake.Change{Old: event.Object}
		}
		if hasController(kindOf(event.Object)) && !(event.Own && !wake.IsBeyondStatus(change)) {
			w.due[request{kindOf(event.Object), client.ObjectKeyFromObject(event.Object)}] = w.Clock.Now()
		}
		for kind, rules := range w.rules {
			for _, rule := range rules {
				w.follow(kind, rule, change)
			}
		}
	}
}

// follow notes whom a rule wakes at a change.
func (w *World) follow(kind string, rule wake.Rule, change wake.Change) {
	if reflect.TypeOf(rule.Kind) != reflect.TypeOf(change.Object()) {
		return
	}
	names, err := rule.Wake(w.Ctx, w.view, change)
	w.Must(err)
	for _, name := range names {
		w.due[request{kind, name}] = w.Clock.Now()
	}
}

// waiting is what must be reconciled some time, in order.
func (w *World) waiting() []request {
	return slices.SortedFunc(maps.Keys(w.due), func(a, b request) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.String(), b.String()))
	})
}

// passDue reconciles what is due.
func (w *World) passDue() bool {
	passed := false
	for _, request := range w.waiting() {
		if at, is := w.due[request]; is && !at.After(w.Clock.Now()) {
			delete(w.due, request)
			w.pass(request)
			passed = true
		}
	}
	return passed
}

// pass reconciles one cluster or job, with a new operator where this one was killed.
func (w *World) pass(of request) {
	w.trouble.before(w, key(of))
	reconcile := w.clusters.Reconcile
	switch of.kind {
	case jobKind:
		reconcile = w.jobs.Reconcile
	case serviceKind:
		reconcile = w.services.Reconcile
	}
	result, err := reconcile(w.Ctx, ctrl.Request{NamespacedName: of.NamespacedName})
	switch {
	case w.operator.dead:
		w.restart()
		w.due[of] = w.Clock.Now()
	case err != nil:
		w.due[of] = w.Clock.Now().Add(time.Second)
	case result.RequeueAfter > 0:
		w.due[of] = w.Clock.Now().Add(result.RequeueAfter)
	}
}

// restart begins a new life of the operator: its cache is filled again, it looks at all there
// is, and of what the former one had in memory nothing is left.
func (w *World) restart() {
	w.operator.dead = false
	w.operator.start()
	w.Ray.restart()
	w.Scaler.restart()
	w.Stores.restart()
	w.Jobs.restart()
	w.Serving.restart()
	w.wake(w.view.deliver(late{}))
	for _, obj := range w.all() {
		if controlled(obj) {
			w.due[request{kindOf(obj), client.ObjectKeyFromObject(obj)}] = w.Clock.Now()
		}
	}
}

// Return brings an operator to a world that had none, or a new one in place of the old.
func (w *World) Return() {
	w.Away = false
	w.restart()
}

// passAll looks at every cluster and job once more, with nothing going wrong.
func (w *World) passAll() {
	defer w.calmly()()
	for _, obj := range w.all() {
		if kind := kindOf(obj); !w.Away && hasController(kind) {
			w.pass(request{kind, client.ObjectKeyFromObject(obj)})
		}
	}
}

// calmly keeps anything from going wrong until what it gives is called.
func (w *World) calmly() (end func()) {
	former := w.operator.calm
	w.operator.calm = true
	return func() { w.operator.calm = former }
}

// Prepare lets something happen with nothing going wrong: it is not of the story itself.
func (w *World) Prepare(act func()) {
	w.Helper()
	defer w.calmly()()
	act()
}

// collectDelay is how old an object is at least when the garbage collector comes by.
const collectDelay = time.Second

// collect is the garbage collector: it deletes what belongs to clusters and jobs that are gone. It
// gives whether there was anything, and how long it is until there is; 0 is never.
func (w *World) collect() (collected bool, next time.Duration) {
	if w.HoldGC {
		return false, 0
	}
	alive := map[types.UID]bool{}
	objects := w.server.latest.held()
	for _, obj := range objects {
		alive[obj.GetUID()] = true
	}
	for _, obj := range objects {
		owner := metav1.GetControllerOf(obj)
		if owner == nil || !hasController(owner.Kind) || alive[owner.UID] || obj.GetDeletionTimestamp() != nil {
			continue
		}
		if wait := obj.GetCreationTimestamp().Add(collectDelay).Sub(w.Clock.Now()); wait > 0 {
			next = wait
			continue
		}
		collected = true
		w.Must(client.IgnoreNotFound(w.Client.Delete(w.Ctx, obj)))
	}
	return collected, next
}

// all gives a copy of every object there is.
func (w *World) all() []client.Object {
	objects := w.server.latest.held()
	for i := range objects {
		objects[i] = copied(objects[i])
	}
	return objects
}

// Must ends the test on an error.
func (w *World) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
