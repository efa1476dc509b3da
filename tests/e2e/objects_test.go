package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// leftBehind are the specs of a cluster with two workers on which objects and actors are
// that nobody else has. What they show is what docs/clusters.md tells users.
func leftBehind(cluster func() *env) {
	labels := Label(live.LeftBehindLabel, live.AcceptLabel)
	It("stay for objects until drainSeconds are over, and take them away but those that Ray makes again", func(ctx SpecContext) {
		team := cluster()
		old := team.staying(ctx, 2)[0]
		holder := team.on(ctx, &old, objects)
		team.exits(ctx, &old, func() {
			exec(ctx, &holder.pod, "sh", "-c", "touch /tmp/fetch; until [ ! -e /tmp/fetch ]; do sleep 0.1; done")
		})
		Expect(holder.leave(ctx)).To(Equal(map[string]string{
			"returned": "there", "returned by a task that may not run twice": "ObjectReconstructionFailedError",
			"put by a task": "OwnerDiedError", "put by the driver": "there", "fetched before": "there", "fetched while it drains": "there",
		}))
	}, labels, SpecTimeout(limit))

	It("stay for actors until drainSeconds are over, and then take them away", func(ctx SpecContext) {
		team := cluster()
		old := team.staying(ctx, 2)[0]
		holder := team.on(ctx, &old, actors)
		team.exits(ctx, &old, func() {})
		Expect(holder.leave(ctx)).To(Equal(map[string]string{
			"put by an actor": "OwnerDiedError", "a detached actor that may restart": "there", "a detached actor that may not": "ActorDiedError",
		}))
	}, labels, SpecTimeout(limit))
}

// exits lets a worker exit that does not become idle, with something done while it drains.
func (e *env) exits(ctx context.Context, worker *corev1.Pod, meanwhile func()) {
	GinkgoHelper()
	const seconds = 5
	e.drainFor(ctx, seconds)
	begin := time.Now()
	annotate(ctx, worker, v1beta1.AnnotationRetire)
	e.becomes(ctx, e.dial(ctx), worker, headclient.Draining)
	meanwhile()
	toldToEnd(ctx, worker)
	Expect(time.Since(begin).Seconds()).To(BeNumerically(">", seconds-1))
	end(ctx, worker, "raylet") // else Ray waits for 45 of the 60 seconds of grace
	gone(ctx, worker)
}

// on runs a program in the head that puts something on a worker, and waits until it is there.
func (e *env) on(ctx context.Context, worker *corev1.Pod, program string) *work {
	GinkgoHelper()
	w := e.begin(ctx, fmt.Sprintf(ahead, e.node(ctx, e.dial(ctx), worker.UID).ID)+program+behind)
	w.reaches(ctx, &w.pod, "/tmp/there")
	return w
}

// leave lets such a program look at what is left of it.
func (w *work) leave(ctx context.Context) map[string]string {
	GinkgoHelper()
	exec(ctx, &w.pod, "touch", "/tmp/left")
	var seen map[string]string
	w.end(ctx, &seen)
	return seen
}

// ahead and behind are what is around the programs below: there and first are options that
// place something on the worker alone, and on it as long as it lives; held are objects by
// name, and asked is what else to look at. What is placed there comes first: only then is
// it sure that all of Ray knows a worker that has just joined.
const ahead = `
import time
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as on
place = %q
there, first = ({"scheduling_strategy": on(node_id=place, soft=soft)} for soft in (False, True))
asked, cleanup = {}, lambda: None
`

const behind = `
ray.wait(list(held.values()), num_returns=len(held), fetch_local=False)
os.mknod("/tmp/there")
while not os.path.exists("/tmp/left"):
    if os.path.exists("/tmp/fetch"):
        ray.get(held["fetched while it drains"])
        os.remove("/tmp/fetch")
    time.sleep(0.05)
os.remove("/tmp/left")
def look(get):
    try:
        get()
        return "there"
    except ray.exceptions.RayError as e:
        return type(e).__name__
asked |= {name: (lambda ref=ref: ray.get(ref, timeout=60)) for name, ref in held.items()}
result = {name: look(get) for name, get in asked.items()}
cleanup()`

// objects of a mebibyte each: smaller ones than 100 KiB travel with the answer.
const objects = `
make = ray.remote(lambda: bytes(1 << 20))
put = ray.remote(lambda: [ray.put(bytes(1 << 20))])
held = {
    "put by a task": ray.get(put.options(**there).remote())[0],
    "put by the driver": ray.put(bytes(1 << 20)),
    "fetched before": make.options(max_retries=0, **there).remote(),
    "fetched while it drains": make.options(max_retries=0, **there).remote(),
    "returned by a task that may not run twice": make.options(max_retries=0, **there).remote(),
    "returned": make.options(**first).remote(),
}
ray.get(held["fetched before"])
`

const actors = `
@ray.remote(num_cpus=0)
class Holder:
    def put(self):
        return [ray.put(bytes(1 << 20))]
    def where(self):
        return ray.get_runtime_context().get_node_id()
once = Holder.options(name="once", lifetime="detached", **there).remote()
held = {"put by an actor": ray.get(once.put.remote())[0]}
lasting = Holder.options(name="lasting", num_cpus=1, lifetime="detached", max_restarts=-1, max_task_retries=-1, **first).remote()
assert ray.get(lasting.where.remote()) == place
asked = {
    "a detached actor that may restart": lambda: ray.get(lasting.where.remote(), timeout=60),
    "a detached actor that may not": lambda: ray.get(once.where.remote(), timeout=60),
}
cleanup = lambda: ray.kill(lasting) # or it would keep the next worker in its turn
`
