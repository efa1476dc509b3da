package e2e

import (
	"context"
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
		holder := team.on(ctx, &old, "programs/objects.py")
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
		holder := team.on(ctx, &old, "programs/actors.py")
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

// on runs a program of testdata in the head that puts something on a worker, and waits until it is there.
func (e *env) on(ctx context.Context, worker *corev1.Pod, program string) *work {
	GinkgoHelper()
	w := e.begin(ctx, rendered(program, values{"Place": e.node(ctx, e.dial(ctx), worker.UID).ID}))
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
