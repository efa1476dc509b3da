package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// steps is a command whose processes save as many steps, of a tenth of a second each.
func steps(count string, more ...string) string {
	GinkgoHelper()
	return inRounds(append([]string{"python", "/programs/saver.py", "--name", "$(role)-$(index)", "--steps", count}, more...)...)
}

// spread is a role of four replicas, which are two on each node.
const spread = `[{name: worker, replicas: 4, resources: {CPU: "1"}}]`

// What gangs do on clusters whose workers come and go: make accept alone plays it, as it waits for minutes.
var _ = Describe("gangs whose cluster changes", Label(live.AcceptLabel, live.GangClustersLabel, localkubeLabel), func() {
	It("release their places where two of them wait for each other's, so that both end", func(ctx SpecContext) {
		g := withGangs(ctx, values{"HeadOn": nodes(ctx)[0].Name})
		var jobs []task
		for _, name := range []string{"first", "second"} {
			jobs = append(jobs, g.submit(ctx, name, "jobs/gang.yaml", values{"Grace": grace, "Placement": "Spread", "GatherTimeout": 30, "MaxRestarts": 10,
				"Retry": "{limit: 100, infrastructureLimit: 100, backoffSeconds: 1}", "Command": steps("400"), "Roles": spread}))
			g.round(ctx, name, 0, 4)
		}
		away := nodes(ctx)[1].Name
		cordon(ctx, away, true)
		DeferCleanup(func(ctx SpecContext) { cordon(ctx, away, false) }, NodeTimeout(limit))
		for _, pod := range g.cluster.staying(ctx, 2) {
			if pod.Spec.NodeName == away {
				kill(ctx, &pod)
			}
		}
		for _, job := range jobs {
			job.is(ctx, v1beta1.PhaseSucceeded)
			g.apart(ctx, job.Name)
		}
	}, SpecTimeout(5*limit))

	It("start in the order of their creation, a large one among small ones too", func(ctx SpecContext) {
		g := withGangs(ctx, nil)
		small := func(i int) task {
			return g.submit(ctx, fmt.Sprintf("small-%d", i), "jobs/gang.yaml", values{"Command": inRounds("sleep", "10"), "Roles": `[{name: worker, replicas: 2, resources: {CPU: "1"}}]`})
		}
		for i := range 4 {
			small(i)
		}
		g.round(ctx, "small-0", 0, 2)
		large := g.submit(ctx, "large", "jobs/gang.yaml", values{"Command": inRounds("true"), "Roles": `[{name: worker, replicas: 8, resources: {CPU: "1"}}]`})
		var after []task
		for i := range 8 {
			after = append(after, small(4+i))
		}
		end := large.is(ctx, v1beta1.PhaseSucceeded).Status.EndTime
		for _, job := range after[4:] {
			Expect(job.is(ctx, v1beta1.PhaseSucceeded).Status.EndTime.Time).To(BeTemporally(">", end.Time), "%s was created after the large one", job.Name)
		}
	}, SpecTimeout(3*limit))

	It("go on while their head is replaced, which has a control store", func(ctx SpecContext) {
		g := withGangs(ctx, values{"Store": embedded})
		job := g.submit(ctx, "steady", "jobs/gang.yaml", values{"Command": steps("1000000"), "Roles": spread})
		begun := g.round(ctx, "steady", 0, 4)
		head := g.cluster.head(ctx)
		kill(ctx, &head)
		gone(ctx, &head)
		g.cluster.ready(ctx)
		step := g.log(ctx, "steady/worker-0.log")
		eventually(ctx, "more steps than "+step[len(step)-1], func(ctx context.Context) error {
			if len(g.log(ctx, "steady/worker-0.log")) < len(step)+20 {
				return errors.New("it stands still")
			}
			return nil
		})
		Expect(g.round(ctx, "steady", 0, 4)).To(Equal(begun), "no process ended")
		job.stop(ctx)
		g.leavesNothing(ctx, job.is(ctx, v1beta1.PhaseStopped), time.Second)
	}, SpecTimeout(2*limit))

	It("go on while the operator is upgraded, and the new one counts their restarts", func(ctx SpecContext) {
		g := withGangs(ctx, nil)
		job := g.submit(ctx, "upgraded", "jobs/gang.yaml", values{"MaxRestarts": 1, "Command": steps("1000000"), "Roles": spread})
		begun := g.round(ctx, "upgraded", 0, 4)
		before := job.reported(ctx)
		upgradeOperator(ctx)
		Expect(g.round(ctx, "upgraded", 0, 4)).To(Equal(begun), "no process ended")
		g.signal(ctx, begun.process("worker/2"), "KILL")
		Expect(job.restarted(ctx, 1).Replica).To(Equal("worker/2"))
		g.round(ctx, "upgraded", begun.number, 4)
		after := job.now(ctx)
		Expect(last(after).SubmissionID).To(Equal(last(before).SubmissionID), "the attempt goes on")
		Expect(after.Status.Attempts).To(HaveLen(1))
		job.stop(ctx)
		g.leavesNothing(ctx, job.is(ctx, v1beta1.PhaseStopped), time.Second)
	}, SpecTimeout(2*limit))

	It("are one demand of the autoscaler", func(ctx SpecContext) {
		g := withGangs(ctx, values{"Scaled": true})
		watch, err := kubernetes.Watch(ctx, &v1beta1.ComputeClusterList{}, client.InNamespace(g.namespace))
		Expect(err).NotTo(HaveOccurred())
		defer watch.Stop()
		numbers := make(chan map[int32]bool, 1)
		go func() {
			seen := map[int32]bool{}
			for event := range watch.ResultChan() {
				if cluster, ok := event.Object.(*v1beta1.ComputeCluster); ok && len(cluster.Status.Groups) > 0 {
					seen[cluster.Status.Groups[0].Desired] = true
				}
			}
			numbers <- seen
		}()
		job := g.submit(ctx, "scaled", "jobs/gang.yaml", values{"Command": inRounds("true"), "Placement": "StrictSpread", "Roles": `[{name: worker, replicas: 2, resources: {CPU: "1"}}]`})
		job.is(ctx, v1beta1.PhaseSucceeded)
		watch.Stop()
		Expect(<-numbers).To(And(HaveKey(int32(2)), Not(HaveKey(int32(1)))), "numbers of workers that were wanted")
	}, SpecTimeout(2*limit))

	It("go on from their checkpoint on another cluster of their own after they were preempted", func(ctx SpecContext) {
		g := withPrograms(ctx)
		job := g.submit(ctx, "moved", "jobs/gang.yaml", values{"Own": true, "Grace": 30, "Placement": "Spread",
			"Command": steps("1000000", "--save-seconds", "10"), "Roles": `[{name: worker, replicas: 2, resources: {CPU: "1"}}]`})
		first := g.round(ctx, "moved", 0, 2)
		before := g.pod(ctx, first.process("worker/0"))
		exec(ctx, &before, "sh", "-c", "echo kept > /saved/mark")
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: naming.JobClaim(job.now(ctx).UID, "saved")}}
		job.suspend(ctx, true)
		job.is(ctx, v1beta1.PhaseSuspended)
		g.cleared(ctx)
		job.suspend(ctx, false)
		second := g.round(ctx, "moved", first.number, 2)
		after := g.pod(ctx, second.process("worker/1"))
		Expect(exec(ctx, &after, "cat", "/saved/mark")).To(HavePrefix("kept"), "the second cluster has the volume of the first")
		for i := range 2 {
			g.resumed(ctx, fmt.Sprintf("moved/worker-%d.log", i), 1)
			Expect(g.log(ctx, fmt.Sprintf("moved/worker-%d.log", i))).To(ContainElement(HavePrefix("ended ")))
		}
		g.apart(ctx, "moved")
		job.remove(ctx)
		eventually(ctx, "the job's claim to be gone", func(ctx context.Context) error {
			err := kubernetes.Get(ctx, client.ObjectKeyFromObject(claim), claim)
			if err == nil {
				err = errors.New("it is there")
			}
			return client.IgnoreNotFound(err)
		})
	}, SpecTimeout(2*limit))

	It("save for forty seconds, however they must end", func(ctx SpecContext) {
		g := withGangs(ctx, nil)
		for way, end := range map[string]func(task, round){
			"suspended": func(job task, _ round) { job.suspend(ctx, true) },
			"stopped":   func(job task, _ round) { job.stop(ctx) },
			"deleted":   func(job task, _ round) { Expect(kubernetes.Delete(ctx, job.now(ctx))).To(Succeed()) },
			"deadline":  func(task, round) {},
			"restarted": func(_ task, r round) { g.signal(ctx, r.process("worker/0"), "KILL") },
			"drained": func(_ task, r round) {
				pod := g.pod(ctx, r.process("worker/1"))
				annotate(ctx, &pod, v1beta1.AnnotationRetire)
			},
			"evicted": func(_ task, r round) {
				pod := g.pod(ctx, r.process("worker/1"))
				Expect(evict(ctx, &pod)).To(Succeed())
			},
		} {
			By(way)
			g.cluster.staying(ctx, 2)
			v := values{"Grace": 60, "Placement": "StrictSpread", "Command": steps("1000000", "--save-seconds", "40"), "Roles": `[{name: worker, replicas: 2, resources: {CPU: "1"}}]`}
			if way == "deadline" {
				v["Deadline"] = 10
			}
			job := g.submit(ctx, way, "jobs/gang.yaml", v)
			now := job.now(ctx)
			end(job, g.round(ctx, way, 0, 2))
			eventually(ctx, "worker/1 to have saved", func(ctx context.Context) error {
				if starts(g.log(ctx, way+"/worker-1.log")) == len(g.log(ctx, way+"/worker-1.log")) {
					return errors.New("it has not")
				}
				return nil
			})
			Expect(client.IgnoreNotFound(kubernetes.Delete(ctx, now))).To(Succeed())
			job.gone(ctx)
		}
	}, SpecTimeout(10*limit))
})
