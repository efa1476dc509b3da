package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// onShared is where the jobs of these specs run.
const onShared = "clusterRef: {name: shared}\n"

// Jobs on a cluster that was there before them, which has a head that takes no tasks and
// one worker. Those that need nothing of each other run at once.
var _ = Describe("jobs on a shared cluster", Ordered, ContinueOnFailure, Label(localkubeLabel), func() {
	var o *office
	var shared *env
	jobs := map[string]task{}

	BeforeAll(func(ctx SpecContext) {
		o = opened(ctx)
		shared = &env{o.named("shared")}
		shared.apply(ctx, aHead+"\nworkerGroups: ["+aWorker+"]\n")
		for name, spec := range together {
			jobs[name] = o.submit(ctx, name, onShared+spec)
		}
		shared.ready(ctx)
	}, NodeTimeout(limit))

	It("succeed, with a command's words byte for byte and the environment in driver and tasks", func(ctx SpecContext) {
		job := jobs["words"].is(ctx, v1alpha1.PhaseSucceeded)
		Expect(meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionComplete)).To(BeTrue())
		Expect(last(job).ExitCode).To(HaveValue(BeZero()))
		Expect(last(job).LogState).To(Equal(v1alpha1.LogComplete))
		Expect(last(job).LastLines).To(ContainElement("said at the end"))
		var have struct {
			Words        []string
			Driver, Task map[string]string
			Place        string
		}
		Expect(json.Unmarshal([]byte(exec(ctx, &o.clerk, "cat", "/ledger/words")), &have)).To(Succeed())
		Expect(have.Words).To(Equal(words))
		Expect(have.Driver).To(Equal(map[string]string{"LITERAL": `a "literal" $ $5 $$ $(id)`, "GIVEN": "to Ray in /home/ray", "HELIOSTAT_JOB_NAME": "words", "HELIOSTAT_JOB_ATTEMPT": "1"}))
		Expect(have.Task).To(Equal(have.Driver))
		Expect(have.Place).To(Equal(shared.workers(ctx, 1)[0].Name))
	}, SpecTimeout(limit))

	It("fail with the exit code and the last lines", func(ctx SpecContext) {
		job := jobs["fails"].is(ctx, v1alpha1.PhaseFailed)
		Expect(meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionFailed)).To(BeTrue())
		Expect(reasonOf(job)).To(Equal(reason.EntrypointFailed.Code))
		Expect(last(job).ExitCode).To(HaveValue(BeEquivalentTo(3)))
		Expect(last(job).LastLines).To(HaveLen(20))
		Expect(last(job).LastLines[19]).To(Equal("line 30"))
	}, SpecTimeout(limit))

	It("say that a runtime environment cannot be set up", func(ctx SpecContext) {
		job := jobs["nowhere"].is(ctx, v1alpha1.PhaseFailed)
		Expect(reasonOf(job)).To(Equal(reason.RuntimeEnvFailed.Code), live.SaysOf(job))
	}, SpecTimeout(limit))

	It("are submitted, followed and reached by the command line", func(ctx SpecContext) {
		code, said := commandLine(ctx, o.namespace, "job", "submit", "--cluster", "shared", "--name", "typed", "--", "sh", "-c", "echo typed; exit 3")
		Expect(code).To(Equal(outcome.Failed))
		Expect(said).To(ContainSubstring("\ntyped\n"))
		code, said = commandLine(ctx, o.namespace, "logs", "job/typed")
		Expect(code).To(Equal(outcome.Done))
		Expect(said).To(ContainSubstring("\ntyped\n"))
		code, said = commandLine(ctx, o.namespace, "session", "shared", "--", "python3", "-c", asksVersion)
		Expect(code).To(Equal(outcome.Done))
		Expect(said).To(ContainSubstring(`"ray_version": "` + release + `"`))
		code, said = commandLine(ctx, o.namespace, "connect", "shared", "-o", "jsonpath={.cluster.ray} {.cluster.python}")
		Expect(code).To(Equal(outcome.Done))
		Expect(said).To(MatchRegexp(`^` + regexp.QuoteMeta(release) + ` 3\.[0-9]+\.[0-9]+$`))
		code, said = commandLine(ctx, o.namespace, "logs", "cluster/shared")
		Expect(code).To(Equal(outcome.Done))
		Expect(said).To(ContainSubstring("Ray runtime started"))
	}, SpecTimeout(limit))

	It("run in a directory of the user's machine", func(ctx SpecContext) {
		code := filesOf(map[string]string{"train.py": "import lib.said", "lib/said.py": "print(open('lib/words').read())", "lib/words": "brought along",
			".gitignore": "*.log", "large.log": "left out"})
		ended, said := commandLine(ctx, o.namespace, "job", "submit", "--cluster", "shared", "--name", "brought", "--working-dir", code, "--", "sh", "-c", "python train.py; ls")
		Expect(ended).To(Equal(outcome.Done))
		Expect(said).To(ContainSubstring("\nbrought along\nlib\ntrain.py\n"))
		ended, _ = commandLine(ctx, o.namespace, "job", "submit", "--cluster", "shared", "--working-dir", code, "--retries", "1", "--", "ls")
		Expect(ended).To(Equal(outcome.Refused))
	}, SpecTimeout(limit))

	It("are tried again on the same cluster", func(ctx SpecContext) {
		job := jobs["third"].is(ctx, v1alpha1.PhaseSucceeded)
		attempts, _ := o.ran(ctx, "third")
		Expect(attempts).To(Equal([]string{"1", "2", "3"}))
		Expect(job.Status.Attempts).To(HaveLen(3))
		Expect(job.Status.Attempts[0].ExitCode).To(HaveValue(BeEquivalentTo(1)))
		Expect(job.Status.Summary.Attempt).To(Equal("3/4"))
	}, SpecTimeout(limit))

	It("run their driver where its resources and labels are", func(ctx SpecContext) {
		worker := shared.workers(ctx, 1)[0].Name
		for _, name := range []string{"resources", "labels"} {
			jobs[name].is(ctx, v1alpha1.PhaseSucceeded)
			_, pods := o.ran(ctx, name)
			Expect(pods).To(Equal([]string{worker}))
		}
		_, pods := o.ran(ctx, "third")
		Expect(pods[0]).To(Equal(shared.head(ctx).Name))
	}, SpecTimeout(limit))

	for name, why := range map[string]reason.Reason{"active": reason.DeadlineExceeded, "attempt": reason.AttemptDeadlineExceeded} {
		It("are stopped when a deadline is over: "+name, func(ctx SpecContext) {
			job := jobs[name].is(ctx, v1alpha1.PhaseFailed)
			Expect(reasonOf(job)).To(Equal(why.Code), live.SaysOf(job))
			o.silent(ctx, name)
			attempts, _ := o.ran(ctx, name)
			Expect(attempts).To(Equal([]string{"1"}))
		}, SpecTimeout(limit))
	}

	It("are killed when they did not start in time", func(ctx SpecContext) {
		jobs["late"].says(ctx, reason.JobPending.Code)
		begin := time.Now()
		second := int32(1)
		jobs["late"].edit(ctx, func(spec *v1alpha1.ClusterJobSpec) { spec.StartDeadlineSeconds = &second })
		job := jobs["late"].is(ctx, v1alpha1.PhaseFailed)
		told("start deadline over to Failed", begin)
		Expect(reasonOf(job)).To(Equal(reason.StartDeadlineExceeded.Code), live.SaysOf(job))
		Expect(shared.inRay(ctx, job).Status.Over()).To(BeTrue())
		attempts, _ := o.ran(ctx, "late")
		Expect(attempts).To(BeEmpty())
	}, SpecTimeout(limit))

	It("are stopped by their annotation, while Ray has no room for them and while they run", func(ctx SpecContext) {
		jobs["endless"] = o.submit(ctx, "endless", onShared+"retry: {limit: 3, backoffSeconds: 0}\n"+entrypoint(beat))
		jobs["endless"].is(ctx, v1alpha1.PhaseRunning)
		o.beating(ctx, "endless")
		jobs["crowded"].says(ctx, reason.JobPending.Code)
		for name, ran := range map[string][]string{"crowded": nil, "endless": {"1"}} {
			begin := time.Now()
			jobs[name].stop(ctx)
			job := jobs[name].is(ctx, v1alpha1.PhaseStopped)
			told(name+" job annotated to Stopped", begin)
			Expect(reasonOf(job)).To(Equal(reason.Stopped.Code), live.SaysOf(job))
			Expect(job.Status.Attempts).To(HaveLen(1))
			Expect(last(job).SubmissionID).To(Equal(job.Status.SubmissionID))
			Expect(last(job).Reason).To(Equal(reason.Stopped.Code))
			Expect(shared.inRay(ctx, job).Status.Over()).To(BeTrue())
			o.silent(ctx, name)
			attempts, _ := o.ran(ctx, name)
			Expect(attempts).To(Equal(ran))
		}
	}, SpecTimeout(limit))

	It("end with what they left behind in their process group", func(ctx SpecContext) {
		job := o.submit(ctx, "forks", onShared+entrypoint(note+forks+"exec sleep 1000"))
		o.submit(ctx, "ends", onShared+entrypoint(note+forks)).is(ctx, v1alpha1.PhaseSucceeded)
		o.falls(ctx, "ends")
		job.is(ctx, v1alpha1.PhaseRunning)
		o.beating(ctx, "forks")
		job.stop(ctx)
		job.is(ctx, v1alpha1.PhaseStopped)
		o.falls(ctx, "forks")
	}, SpecTimeout(limit))

	It("are left alone where another looks after them", func(ctx SpecContext) {
		job := jobs["foreign"].now(ctx)
		Expect(job.Annotations).NotTo(HaveKey(v1alpha1.AnnotationRecord))
		Expect(job.Finalizers).To(BeEmpty())
		Expect(job.Status.ObservedGeneration).To(BeZero())
	}, SpecTimeout(limit))

	served(func() (*office, *env) { return o, shared }, jobs)
	stopped(func() (*office, *env) { return o, shared })
	lined(func() (*office, *env) { return o, shared })
	orphaned(func() (*office, *env) { return o, shared })

	It("wait for a cluster that is suspended", func(ctx SpecContext) {
		shared.edit(ctx, func(spec *v1alpha1.ComputeClusterSpec) { spec.Suspend = true })
		waits := o.submit(ctx, "waits", onShared+entrypoint(note))
		Expect(waits.says(ctx, reason.ClusterSuspended.Code).Status.Phase).To(Equal(v1alpha1.PhasePending))
		waits.remove(ctx)
	}, SpecTimeout(limit))

	It("never show the token", func(ctx SpecContext) { secret(ctx, o.namespace, shared.token(ctx)) }, SpecTimeout(limit))
})

// words are those of a command that no shell may touch.
var words = []string{"", "a b", `it's "quoted"`, "two\nlines", "tab\there", "grüße ☀ 日本", "$HOME", "${HOME}", "`id`", "$(id)", `\n\\`, "*", "~", "-x", "&& false", "#"}

// look writes down what reached a driver and a task.
const look = `
import json, os, ray, socket, sys
ray.init()
names = ["LITERAL", "GIVEN", "HELIOSTAT_JOB_NAME", "HELIOSTAT_JOB_ATTEMPT"]
of = lambda: {name: os.environ.get(name) for name in names}
place, task = ray.get(ray.remote(lambda: (socket.gethostname(), of())).remote())
json.dump({"Words": sys.argv[1:], "Driver": of(), "Task": task, "Place": place}, open("/ledger/words", "w"))
print("said at the end")`

// together are the specs of jobs that run at once.
var together = map[string]string{
	"words": command(append([]string{"python", "-c", look}, words...)...) +
		"env: [{name: LITERAL, value: 'a \"literal\" $ $5 $$ $(id)'}]\nruntimeEnv: {env_vars: {GIVEN: 'to Ray in ${HOME}${NOWHERE}'}}\n",
	"fails":     entrypoint("for i in $(seq 30); do echo line $i; done; exit 3"),
	"nowhere":   "runtimeEnv: {working_dir: \"file:///nowhere/at-all.zip\"}\n" + entrypoint(note),
	"third":     "retry: {limit: 3, backoffSeconds: 0}\n" + entrypoint(note+"[ $HELIOSTAT_JOB_ATTEMPT = 3 ]"),
	"resources": "entrypointResources: {CPU: 500m}\n" + entrypoint(note),
	"labels":    "entrypointLabelSelector: {market: spot}\n" + entrypoint(note),
	"crowded":   "retry: {limit: 3, backoffSeconds: 0}\nentrypointResources: {CPU: 64}\n" + entrypoint(beat),
	"active":    "activeDeadlineSeconds: 3\n" + entrypoint(beat),
	"attempt":   "retry: {attemptDeadlineSeconds: 3}\n" + entrypoint(beat),
	"late":      "entrypointResources: {nothing: 1}\n" + entrypoint(note),
	"foreign":   "managedBy: example.com/other\n" + entrypoint(note),
}

// command is a line of a spec.
func command(words ...string) string {
	text, err := json.Marshal(words)
	if err != nil {
		panic(err) // strings always marshal
	}
	return fmt.Sprintf("command: %s\n", text)
}

// stopped are the specs of jobs that their owners stop.
func stopped(given func() (*office, *env)) {
	It("are suspended, resumed as another attempt, and deleted while they run", func(ctx SpecContext) {
		o, _ := given()
		job := o.submit(ctx, "pauses", onShared+entrypoint(beat))
		job.is(ctx, v1alpha1.PhaseRunning)
		o.beating(ctx, "pauses")
		begin := time.Now()
		job.suspend(ctx, true)
		job.is(ctx, v1alpha1.PhaseSuspended)
		told("job suspended on a shared cluster to Suspended", begin)
		o.silent(ctx, "pauses")
		job.suspend(ctx, false)
		Expect(job.is(ctx, v1alpha1.PhaseRunning).Status.Attempt).To(BeEquivalentTo(2))
		begin = time.Now()
		job.remove(ctx)
		told("running job deleted to gone", begin)
		o.silent(ctx, "pauses")
		attempts, _ := o.ran(ctx, "pauses")
		Expect(attempts).To(Equal([]string{"1", "2"}))
	}, SpecTimeout(limit))

	It("are deleted while they wait, for a cluster, for Ray to take them or to start them", func(ctx SpecContext) {
		o, shared := given()
		waits := o.submit(ctx, "no-cluster", "clusterRef: {name: missing}\n"+entrypoint(note))
		waits.says(ctx, reason.ClusterMissing.Code)
		pending := o.submit(ctx, "no-place", onShared+"entrypointResources: {nothing: 1}\n"+entrypoint(note))
		seen := pending.says(ctx, reason.JobPending.Code)
		early := o.submit(ctx, "too-early", onShared+entrypoint(beat))
		early.is(ctx, v1alpha1.PhaseSubmitting)
		for _, job := range []task{early, waits, pending} {
			job.remove(ctx)
		}
		Expect(shared.inRay(ctx, seen).Status.Over()).To(BeTrue())
		o.silent(ctx, "too-early")
		attempts, _ := o.ran(ctx, "no-place")
		Expect(attempts).To(BeEmpty())
	}, SpecTimeout(limit))
}

// lined is the spec of a cluster that runs one job at a time.
func lined(given func() (*office, *env)) {
	It("stand in a line where the cluster runs one at a time", func(ctx SpecContext) {
		o, shared := given()
		one := int32(1)
		shared.edit(ctx, func(spec *v1alpha1.ComputeClusterSpec) { spec.MaxConcurrentJobs = &one })
		var line []task
		for _, name := range []string{"line-c", "line-a", "line-b"} {
			line = append(line, o.submit(ctx, name, onShared+entrypoint(note+"sleep 1; "+note)))
			made := line[len(line)-1].now(ctx).CreationTimestamp
			Eventually(ctx, time.Now).Should(BeTemporally(">=", made.Add(time.Second)), "Kubernetes counts seconds")
		}
		line[2].says(ctx, reason.JobQueued.Code)
		for _, job := range line {
			job.is(ctx, v1alpha1.PhaseSucceeded)
		}
		var order []string
		for _, note := range o.notes(ctx) {
			if len(note) > 6 && note[:5] == "line-" {
				order = append(order, note[:6])
			}
		}
		Expect(order).To(Equal([]string{"line-c", "line-c", "line-a", "line-a", "line-b", "line-b"}))
		shared.edit(ctx, func(spec *v1alpha1.ComputeClusterSpec) { spec.MaxConcurrentJobs = nil })
	}, SpecTimeout(limit))
}

// orphaned is the spec of jobs whose operator is killed, and away when they end.
func orphaned(given func() (*office, *env)) {
	It("run once whatever becomes of the operator, and their end is told when it is back", func(ctx SpecContext) {
		o, _ := given()
		early := o.submit(ctx, "submitting", onShared+entrypoint(note+"sleep 3"))
		early.is(ctx, v1alpha1.PhaseSubmitting)
		killOperator(ctx)
		running := o.submit(ctx, "running", onShared+entrypoint(note+"sleep 3"))
		running.is(ctx, v1alpha1.PhaseRunning)
		killOperator(ctx)
		away := o.submit(ctx, "away", onShared+entrypoint(note+"sleep 3; "+note+"exit 7"))
		away.is(ctx, v1alpha1.PhaseRunning)
		scaleOperator(ctx, 0)
		DeferCleanup(func(ctx SpecContext) { scaleOperator(ctx, 1) }, NodeTimeout(limit))
		exec(ctx, &o.clerk, "sh", "-c", `until [ "$(grep -c '^away ' /ledger/runs)" = 2 ]; do sleep 0.1; done`)
		scaleOperator(ctx, 1)
		for _, job := range []task{early, running} {
			job.is(ctx, v1alpha1.PhaseSucceeded)
			attempts, _ := o.ran(ctx, job.Name)
			Expect(attempts).To(Equal([]string{"1"}))
		}
		job := away.is(ctx, v1alpha1.PhaseFailed)
		Expect(last(job).ExitCode).To(HaveValue(BeEquivalentTo(7)))
		Expect(last(job).LogState).To(Equal(v1alpha1.LogComplete))
		attempts, _ := o.ran(ctx, "away")
		Expect(attempts).To(Equal([]string{"1", "1"}))
	}, SpecTimeout(limit))
}

// secret checks that a token is in no job, no event and no word of the operator.
func secret(ctx context.Context, namespace, token string) {
	GinkgoHelper()
	Expect(token).NotTo(BeEmpty())
	Expect(said(ctx, namespace)).NotTo(ContainSubstring(token))
}
