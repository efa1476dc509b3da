package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// ways are those in which a gang that is not tried again comes to its end, by what happens to it.
var ways = []struct {
	name string
	// spec is more of the job's.
	spec values
	end  func(context.Context, *gangs, task, round)
}{
	{"driver killed", nil, onHead(driverProcess)},
	{"supervisor killed", nil, onHead(supervisorProcess)},
	{"agent killed", nil, onWorker(agentProcess)},
	{"guard killed", nil, onWorker(guardProcess)},
	{"raylet killed", nil, onWorker(rayletProcess)},
	{"stopped", nil, func(ctx context.Context, _ *gangs, job task, _ round) { job.stop(ctx) }},
	{"suspended", nil, func(ctx context.Context, _ *gangs, job task, _ round) { job.suspend(ctx, true) }},
	{"deleted", nil, func(ctx context.Context, _ *gangs, job task, _ round) {
		Expect(client.IgnoreNotFound(kubernetes.Delete(ctx, job.now(ctx)))).To(Succeed())
	}},
	{"deadline", values{"Deadline": 5}, func(context.Context, *gangs, task, round) {}},
	{"operator killed, then stopped", nil, func(ctx context.Context, _ *gangs, job task, _ round) {
		killOperator(ctx)
		job.stop(ctx)
	}},
}

// gangEnds are the specs of how gangs end whose programs leave daemons: some ways that are drawn by the seed, or all again and again.
func gangEnds(given func() *gangs) {
	It("leave no process anywhere within their grace and ten seconds, however they end", func(ctx SpecContext) {
		g, random := given(), rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 2))
		drawn := slices.Clone(ways)
		for len(drawn) < endsOfARound**rounds {
			drawn = append(drawn, ways...)
		}
		random.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
		for i, way := range drawn[:endsOfARound**rounds] {
			By(way.name)
			g.renewWorkers(ctx)
			g.cluster.staying(ctx, 2)
			name := fmt.Sprintf("ends-%d", i)
			job := g.submit(ctx, name, "jobs/gang.yaml", values{"Grace": grace, "Placement": "Spread",
				"Command": inRounds("python", "/programs/saver.py", "--name", "$(role)-$(index)", "--daemon"),
				"Roles":   `[{name: worker, replicas: 2, resources: {CPU: "1"}}]`}.and(way.spec))
			begun := g.round(ctx, name, 0, 2)
			now := job.now(ctx)
			way.end(ctx, g, job, begun)
			// Of a job with a deadline it is part of the wait, from its first process on.
			seconds := g.leavesNothing(ctx, now, (grace+10)*time.Second+deadlineOf(now)).Seconds()
			AddReportEntry(live.GangEndsEntry, live.GangEnd{Way: way.name, Seconds: seconds}, ReportEntryVisibilityAlways)
			g.apart(ctx, name)
			Expect(client.IgnoreNotFound(kubernetes.Delete(ctx, now))).To(Succeed())
			job.gone(ctx)
		}
	}, Label(live.GangEndsLabel), SpecTimeout(60*time.Minute))
}

const endsOfARound = 5

// renewWorkers deletes workers whose container was restarted twice: each time the kubelet waits longer for the next start, up to 5 minutes.
func (g *gangs) renewWorkers(ctx context.Context) {
	GinkgoHelper()
	pods, err := kubernetes.PodsOf(ctx, g.cluster.NamespacedName, v1beta1.RoleWorker)
	Expect(err).NotTo(HaveOccurred())
	for i := range pods {
		for _, container := range pods[i].Status.ContainerStatuses {
			if container.RestartCount > 1 && pods[i].DeletionTimestamp == nil {
				kill(ctx, &pods[i])
			}
		}
	}
}

func deadlineOf(job *v1beta1.ClusterJob) time.Duration {
	if job.Spec.ActiveDeadlineSeconds == nil {
		return 0
	}
	return time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second
}

// onHead ends a component of the gang in the head.
func onHead(word string) func(context.Context, *gangs, task, round) {
	return func(ctx context.Context, g *gangs, _ task, _ round) {
		GinkgoHelper()
		head := g.cluster.head(ctx)
		g.component(ctx, &head, word, syscall.SIGKILL)
	}
}

// onWorker ends a component of the gang in the pod of its first process.
func onWorker(word string) func(context.Context, *gangs, task, round) {
	return func(ctx context.Context, g *gangs, _ task, r round) {
		GinkgoHelper()
		pod := g.pod(ctx, r.processes[0])
		g.component(ctx, &pod, word, syscall.SIGKILL)
	}
}

// gangPlaces are the specs of many gangs on few places.
func gangPlaces(given func() *gangs) {
	It("are placed whole or not at all, and all end, where they are too many for the places", func(ctx SpecContext) {
		g, random := given(), rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 3))
		sizes := map[string]int{}
		var jobs []task
		for i := range gangsOfARound * *rounds {
			name := fmt.Sprintf("many-%d", i)
			sizes[name] = 2 + random.IntN(3)
			jobs = append(jobs, g.submit(ctx, name, "jobs/gang.yaml", values{"Directory": name, "Command": inRounds("sleep", "2"),
				"Roles": fmt.Sprintf(`[{name: worker, replicas: %d, resources: {CPU: "1"}}]`, sizes[name])}))
		}
		for _, job := range jobs {
			job.is(ctx, v1beta1.PhaseSucceeded)
			begun, err := g.newest(ctx, job.Name)
			Expect(err).NotTo(HaveOccurred())
			Expect(begun.processes).To(HaveLen(sizes[job.Name]), "processes of %s, which begin together", job.Name)
		}
	}, Label(live.GangPlacesLabel), SpecTimeout(60*time.Minute))
}

const gangsOfARound = 5
