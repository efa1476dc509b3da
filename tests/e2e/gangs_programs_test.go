package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// gangSaves are the specs of programs that take a while to save when they are asked to end.
func gangSaves(given func() *gangs) {
	It("save for ten seconds when they are suspended and stopped, go on from there, and leave nothing", func(ctx SpecContext) {
		g := given()
		job := g.submit(ctx, "saver", "jobs/gang.yaml", values{"Grace": 30, "Placement": "Spread",
			"Command": inRounds("python", "/programs/saver.py", "--name", "$(role)-$(index)", "--save-seconds", "10", "--daemon"),
			"Roles":   `[{name: worker, replicas: 2, processesPerReplica: 2, resources: {CPU: "1"}}]`})
		job.is(ctx, v1beta1.PhaseRunning)
		first := g.round(ctx, "saver", 0, 4)
		job.suspend(ctx, true)
		g.leavesNothing(ctx, job.is(ctx, v1beta1.PhaseSuspended), time.Second)
		job.suspend(ctx, false)
		g.round(ctx, "saver", first.number, 4)
		job.stop(ctx)
		g.leavesNothing(ctx, job.is(ctx, v1beta1.PhaseStopped), time.Second)
		for i := range 4 {
			log := fmt.Sprintf("saver/worker-%d.log", i)
			g.resumed(ctx, log, 1)
			Expect(g.log(ctx, log)).To(HaveExactElements(HavePrefix("start "), HavePrefix("ended "), HavePrefix("start "), HavePrefix("ended ")), "what worker/%d did", i)
		}
		g.apart(ctx, "saver")
	}, SpecTimeout(limit))
}

// gangFrameworks are the specs of frameworks whose processes find each other in other ways than PyTorch's.
func gangFrameworks(given func() *gangs) {
	It("sum the numbers of ranks on two nodes by MPI, without an sshd", func(ctx SpecContext) {
		given().sums(ctx)
	}, Label(live.GangFrameworksLabel), SpecTimeout(limit))

	It("train one model with XGBoost, whose tracker is in rank 0", func(ctx SpecContext) {
		g := given()
		job := g.submit(ctx, "boost", "jobs/gang.yaml", values{"Framework": "XGBoost", "Placement": "Spread",
			"Command": `[python, /programs/boost.py]`, "Roles": `[{name: worker, replicas: 2, resources: {CPU: "1"}}]`})
		models := g.printed(ctx, job.is(ctx, v1beta1.PhaseSucceeded), regexp.MustCompile(`rank \d of 2: model (\w+)`))
		Expect(models).To(HaveLen(2))
		Expect(models[0]).To(Equal(models[1]), "the model of both ranks")
	}, Label(live.GangFrameworksLabel, live.GangIPv6Label), SpecTimeout(limit))

	It("have environments that PyTorch and XGBoost read as they are meant", func(ctx SpecContext) {
		given().reads(ctx, "PyTorch", "XGBoost")
	}, Label(live.AcceptLabel, live.GangFrameworksLabel), SpecTimeout(limit))

	It("find each other by their arguments: a scheduler, servers and workers", func(ctx SpecContext) {
		g := given()
		job := g.submit(ctx, "servers", "jobs/gang.yaml", values{"Command": `[python, /programs/paramserver.py]`, "Roles": `
    - name: scheduler
      resources: {CPU: "0.5"}
      successPolicy: Ignore
      command: [python, /programs/paramserver.py, --role, scheduler, --scheduler, "$(scheduler.0.host):$(scheduler.0.port)", --workers, $(worker.count)]
    - name: server
      processesPerReplica: 2
      resources: {CPU: "0.5"}
      successPolicy: Ignore
      command: [python, /programs/paramserver.py, --role, server, --servers, $(server.addresses), --index, $(index)]
    - name: worker
      processesPerReplica: 2
      resources: {CPU: "0.5"}
      command: [python, /programs/paramserver.py, --role, worker, --scheduler, "$(scheduler.0.host):$(scheduler.0.port)", --servers, $(server.addresses)]`})
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		Expect(g.printed(ctx, ended, regexp.MustCompile(`(worker \d): slope 3\.\d, offset 1\.\d`))).To(ConsistOf("worker 0", "worker 1"))
		g.leavesNothing(ctx, ended, time.Second)
	}, Label(live.GangFrameworksLabel, live.GangIPv6Label), SpecTimeout(limit))
}

// sums has ranks on two nodes sum their numbers by MPI: four, or eight in full, as ranks that wait use up the CPUs.
func (g *gangs) sums(ctx context.Context) {
	GinkgoHelper()
	each := 2
	if *full {
		each = 4
	}
	ranks := 2 * each
	job := g.submit(ctx, "sums", "jobs/gang.yaml", values{"Framework": "MPI", "Placement": "StrictSpread",
		"Command": `[mpirun, python3, /programs/allreduce.py]`, "Roles": fmt.Sprintf(`[{name: worker, replicas: 2, processesPerReplica: %d, resources: {CPU: "4"}}]`, each)})
	ended := job.is(ctx, v1beta1.PhaseSucceeded)
	hosts := g.printed(ctx, ended, regexp.MustCompile(fmt.Sprintf(`rank \d of %d on (\S+): sum %d`, ranks, ranks*(ranks+1)/2)))
	Expect(hosts).To(HaveLen(ranks), "ranks with the sum")
	slices.Sort(hosts)
	Expect(slices.Compact(hosts)).To(HaveLen(2), "places of the ranks")
	g.leavesNothing(ctx, ended, time.Second)
}

// The other generation of Open MPI, and of PyTorch.
var _ = Describe("gangs on Debian 12", Label(live.AcceptLabel, live.GangMPILabel, localkubeLabel), func() {
	It("run Open MPI 4.1, PyTorch 1.13, and the benchmark that mpi4py ships", func(ctx SpecContext) {
		g := withGangs(ctx, values{"Image": "frameworks-bookworm"})
		g.sums(ctx)
		ring := g.submit(ctx, "ring", "jobs/gang.yaml", values{"Framework": "MPI", "Placement": "StrictSpread",
			"Command": `[mpirun, python3, -m, mpi4py.bench, ringtest]`, "Roles": `[{name: worker, replicas: 2, processesPerReplica: 2, resources: {CPU: "2"}}]`})
		Expect(last(ring.is(ctx, v1beta1.PhaseSucceeded)).LastLines).To(ContainElement(ContainSubstring("4 processes")))
		ddp := g.submit(ctx, "ddp", "jobs/gang.yaml", values{"Framework": "PyTorch", "Placement": "Spread",
			"Command": inRounds("python", "/programs/ddp.py"), "Roles": `[{name: worker, replicas: 4, resources: {CPU: "1"}}]`})
		g.loss(ctx, ddp.is(ctx, v1beta1.PhaseSucceeded))
		g.reads(ctx, "PyTorch")
	}, SpecTimeout(3*limit))
})

// Frameworks that are too large for the images of make test.
var _ = Describe("gangs of TensorFlow and JAX", Ordered, ContinueOnFailure, Label(live.AcceptLabel, live.GangTensorFlowLabel, localkubeLabel), func() {
	var g *gangs

	BeforeAll(func(ctx SpecContext) { g = withGangs(ctx, values{"Image": "frameworks-tensorflow"}) }, NodeTimeout(limit))

	It("train one model by MultiWorkerMirroredStrategy, though a worker is killed", func(ctx SpecContext) {
		job := g.submit(ctx, "mirrored", "jobs/gang.yaml", values{"Framework": "TensorFlow", "MaxRestarts": 3, "Placement": "StrictSpread",
			"Command": inRounds("python", "/programs/mirrored.py", "--pause", "0.5"), "Roles": `[{name: worker, replicas: 2, resources: {CPU: "2"}}]`})
		first := g.round(ctx, "mirrored", 0, 2)
		g.untilStep(ctx, "mirrored/log", 5)
		g.signal(ctx, first.process("worker/1"), "KILL")
		g.round(ctx, "mirrored", first.number, 2)
		Expect(job.restarted(ctx, 1).Replica).To(Equal("worker/1"))
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		g.resumed(ctx, "mirrored/log", 1)
		g.apart(ctx, "mirrored")
		losses := g.printed(ctx, ended, regexp.MustCompile(`worker \d of 2 ends with loss (\d\.\d{6})`))
		Expect(losses).To(HaveLen(2), "workers that ended")
		Expect(losses[0]).To(Equal(losses[1]), "the model of both workers")
	}, SpecTimeout(3*limit))

	It("train by ParameterServerStrategy, and are waited for until the evaluator has read the last checkpoint", func(ctx SpecContext) {
		job := g.submit(ctx, "strategy", "jobs/gang.yaml", values{"Framework": "TensorFlow", "Placement": "Spread",
			"Command": inRounds("python", "/programs/strategy.py"), "Roles": `
    - {name: worker, replicas: 2, resources: {CPU: "1"}}
    - {name: ps, resources: {CPU: "1"}}
    - {name: chief, resources: {CPU: "1"}}
    - {name: evaluator, resources: {CPU: "1"}}`})
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		Expect(g.printed(ctx, ended, regexp.MustCompile(`(chief: slope 3\.\d, offset 1\.\d|evaluator: epoch 10)\b`))).To(ConsistOf(HavePrefix("chief"), HavePrefix("evaluator")))
		g.leavesNothing(ctx, ended, time.Second)
	}, SpecTimeout(3*limit))

	It("sum the numbers of processes by jax.distributed", func(ctx SpecContext) {
		job := g.submit(ctx, "psum", "jobs/gang.yaml", values{"Framework": "JAX", "Placement": "Spread",
			"Command": inRounds("python", "/programs/psum.py"), "Roles": `[{name: worker, replicas: 2, processesPerReplica: 2, resources: {CPU: "2"}}]`})
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		Expect(g.printed(ctx, ended, regexp.MustCompile(`process (\d) of 4: sum 10`))).To(ConsistOf("0", "1", "2", "3"))
	}, SpecTimeout(2*limit))

	It("have environments that both read as they are meant", func(ctx SpecContext) { g.reads(ctx, "TensorFlow", "JAX") }, SpecTimeout(limit))
})

// reads has frameworks read the golden environments, in a pod of their image.
func (g *gangs) reads(ctx context.Context, frameworks ...string) {
	GinkgoHelper()
	for _, framework := range frameworks {
		said := exec(ctx, &g.cluster.staying(ctx, 2)[0], "sh", "-c", "python3 /programs/readers.py /programs/environments.golden "+framework+" 2>&1 || true")
		GinkgoWriter.Print(said)
		Expect(said).To(ContainSubstring(framework + ": "))
		Expect(said).To(ContainSubstring(" processes, 0 read otherwise"))
	}
}
