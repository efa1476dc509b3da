package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// leftBehind are the specs of a cluster with two workers on which objects and actors are
// that nobody else has. What they show is what docs/objects-and-drains.md tells users.
func leftBehind(cluster func() *env) {
	It("take objects with them that only they hold, but those that Ray makes again", func(ctx SpecContext) {
		team := cluster()
		team.edit(ctx, func(spec *v1alpha1.ComputeClusterSpec) { spec.WorkerGroups[0].DrainSeconds = new(int32(60)) })
		old := team.staying(ctx, 2)[0]
		holder := team.on(ctx, &old, objects)
		begin := time.Now()
		annotate(ctx, &old, v1alpha1.AnnotationRetire)
		gone(ctx, &old)
		told("asked to retire to pod gone, with objects", begin)
		Expect(holder.leave(ctx)).To(Equal(map[string]string{
			"returned": "there", "returned by a task that may not run twice": "ObjectReconstructionFailedError",
			"put by a task": "OwnerDiedError", "put by the driver": "there", "fetched before": "there",
		}))
	}, SpecTimeout(limit))

	It("stay for actors until drainSeconds are over, and then take them away", func(ctx SpecContext) {
		const seconds = 5
		team := cluster()
		team.edit(ctx, func(spec *v1alpha1.ComputeClusterSpec) { spec.WorkerGroups[0].DrainSeconds = new(int32(seconds)) })
		old := team.staying(ctx, 2)[0]
		holder := team.on(ctx, &old, actors)
		begin := time.Now()
		annotate(ctx, &old, v1alpha1.AnnotationRetire)
		toldToEnd(ctx, &old)
		Expect(time.Since(begin).Seconds()).To(BeNumerically(">", seconds-1))
		kill(ctx, &old) // Ray would wait for the actors for 45 of the 60 seconds of grace
		Expect(holder.leave(ctx)).To(Equal(map[string]string{
			"put by an actor": "OwnerDiedError", "a detached actor that may restart": "there", "a detached actor that may not": "ActorDiedError",
		}))
	}, SpecTimeout(limit))
}

// on runs a program in the head that puts something on a worker, and waits until it is there.
func (e *env) on(ctx context.Context, worker *corev1.Pod, program string) *work {
	GinkgoHelper()
	w := e.begin(ctx, fmt.Sprintf(ahead, e.node(ctx, e.dial(ctx), worker.UID).ID)+program+behind)
	exec(ctx, &w.pod, "sh", "-c", "until rm /tmp/there 2>/dev/null; do sleep 0.1; done")
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

// ahead and behind are what is around the programs below: there are options that place
// something on the worker as long as it lives, held are objects by name, and asked is what
// else to look at.
const ahead = `
import time
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as on
there = {"scheduling_strategy": on(node_id=%q, soft=True)}
asked, cleanup = {}, lambda: None
`

const behind = `
ray.wait(list(held.values()), num_returns=len(held), fetch_local=False)
os.mknod("/tmp/there")
while not os.path.exists("/tmp/left"):
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
    "returned": make.options(**there).remote(),
    "returned by a task that may not run twice": make.options(max_retries=0, **there).remote(),
    "put by a task": ray.get(put.options(**there).remote())[0],
    "put by the driver": ray.put(bytes(1 << 20)),
    "fetched before": make.options(max_retries=0, **there).remote(),
}
ray.get(held["fetched before"])
`

const actors = `
@ray.remote(num_cpus=0)
class Holder:
    def put(self):
        return [ray.put(bytes(1 << 20))]
    def ping(self):
        return 0
lasting = Holder.options(name="lasting", lifetime="detached", max_restarts=-1, max_task_retries=-1, **there).remote()
once = Holder.options(name="once", lifetime="detached", **there).remote()
ray.get(lasting.ping.remote())
held = {"put by an actor": ray.get(once.put.remote())[0]}
asked = {
    "a detached actor that may restart": lambda: ray.get(lasting.ping.remote(), timeout=60),
    "a detached actor that may not": lambda: ray.get(once.ping.remote(), timeout=60),
}
cleanup = lambda: ray.kill(lasting) # or it would keep the next worker in its turn
`
