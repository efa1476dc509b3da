package e2e

import (
	"context"
	"encoding/json"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Jobs on a cluster that was there before them, which has a head that takes no tasks and
// one worker. Those that need nothing of each other run at once.
var _ = Describe("jobs on a shared cluster", Ordered, ContinueOnFailure, Label(localkubeLabel), func() {
	var o *office
	var shared *env
	jobs := map[string]task{}

	BeforeAll(func(ctx SpecContext) {
		o = opened(ctx)
		shared = &env{o.named("shared")}
		shared.apply(ctx, "clusters/ledger.yaml", values{"Worker": true, "SecurityContext": assigned})
		jobs["words"] = o.submit(ctx, "words", "jobs/words.yaml", values{"Command": commandOf(append([]string{"python", "-c", rendered("programs/words.py", nil)}, words...))})
		jobs["fails"] = o.shares(ctx, "fails", "for i in $(seq 30); do echo line $i; done; exit 3")
		jobs["crowded"] = o.submit(ctx, "crowded", "jobs/shared.yaml", values{"Retry": fewRetries, "Resources": "{CPU: 64}", "Entrypoint": beat})
		shared.ready(ctx)
	}, NodeTimeout(limit))

	It("succeed, with a command's words byte for byte and the environment in driver and tasks", func(ctx SpecContext) {
		job := jobs["words"].is(ctx, v1beta1.PhaseSucceeded)
		Expect(meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionComplete)).To(BeTrue())
		Expect(last(job).ExitCode).To(HaveValue(BeZero()))
		Expect(last(job).LogState).To(Equal(v1beta1.LogComplete))
		Expect(last(job).LastLines).To(ContainElement("said at the end"))
		var have struct {
			Words        []string
			Driver, Task map[string]string
			Place        string
		}
		Expect(json.Unmarshal([]byte(exec(ctx, &o.clerk, "cat", "/ledger/words")), &have)).To(Succeed())
		Expect(have.Words).To(Equal(words))
		Expect(have.Driver).To(Equal(map[string]string{"LITERAL": `a "literal" $ $5 $$ $(id)`, "GIVEN": "to Ray in /tmp/home", "USER OF": "ray", "HELIOSTAT_JOB_NAME": "words", "HELIOSTAT_JOB_ATTEMPT": "1"}))
		Expect(have.Task).To(Equal(have.Driver))
		Expect(have.Place).To(Equal(shared.workers(ctx, 1)[0].Name))
	}, SpecTimeout(limit))

	It("fail with the exit code and the last lines", func(ctx SpecContext) {
		job := jobs["fails"].is(ctx, v1beta1.PhaseFailed)
		Expect(meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionFailed)).To(BeTrue())
		Expect(reasonOf(job)).To(Equal(reason.EntrypointFailed.Code))
		Expect(last(job).ExitCode).To(HaveValue(BeEquivalentTo(3)))
		Expect(last(job).LastLines).To(HaveLen(20))
		Expect(last(job).LastLines[19]).To(Equal("line 30"))
	}, SpecTimeout(limit))

	It("are on a cluster that the command line reaches", func(ctx SpecContext) {
		code, said := commandLine(ctx, o.namespace, "session", "shared", "--", "python3", "-c", asksVersion)
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

	It("are stopped by their annotation, while Ray has no room for them and while they run", func(ctx SpecContext) {
		jobs["endless"] = o.submit(ctx, "endless", "jobs/shared.yaml", values{"Retry": fewRetries, "Entrypoint": beat})
		jobs["endless"].is(ctx, v1beta1.PhaseRunning)
		o.beating(ctx, "endless")
		jobs["crowded"].says(ctx, reason.JobPending.Code)
		for name, ran := range map[string][]string{"crowded": nil, "endless": {"1"}} {
			begin := time.Now()
			jobs[name].stop(ctx)
			job := jobs[name].is(ctx, v1beta1.PhaseStopped)
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
		job := o.shares(ctx, "forks", note+forks+"exec sleep 1000")
		o.shares(ctx, "ends", note+forks).is(ctx, v1beta1.PhaseSucceeded)
		o.falls(ctx, "ends")
		job.is(ctx, v1beta1.PhaseRunning)
		o.beating(ctx, "forks")
		job.stop(ctx)
		job.is(ctx, v1beta1.PhaseStopped)
		o.falls(ctx, "forks")
	}, SpecTimeout(limit))

	served(func() (*office, *env) { return o, shared }, jobs)
	stopped(func() (*office, *env) { return o, shared })

	It("never show the token", func(ctx SpecContext) { secret(ctx, o.namespace, shared.token(ctx)) }, SpecTimeout(limit))
})

// words are those of a command that no shell may touch.
var words = []string{"", "a b", `it's "quoted"`, "two\nlines", "tab\there", "grüße ☀ 日本", "$HOME", "${HOME}", "`id`", "$(id)", `\n\\`, "*", "~", "-x", "&& false", "#"}

// commandOf writes words as JSON does.
func commandOf(words []string) string {
	GinkgoHelper()
	text, err := json.Marshal(words)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// fewRetries has a job tried again at once.
const fewRetries = "{limit: 3, backoffSeconds: 0}"

// stopped are the specs of jobs that their owners stop.
func stopped(given func() (*office, *env)) {
	It("are suspended, resumed as another attempt, and deleted while they run", func(ctx SpecContext) {
		o, _ := given()
		job := o.shares(ctx, "pauses", beat)
		job.is(ctx, v1beta1.PhaseRunning)
		o.beating(ctx, "pauses")
		begin := time.Now()
		job.suspend(ctx, true)
		job.is(ctx, v1beta1.PhaseSuspended)
		told("job suspended on a shared cluster to Suspended", begin)
		o.silent(ctx, "pauses")
		job.suspend(ctx, false)
		Expect(job.is(ctx, v1beta1.PhaseRunning).Status.Attempt).To(BeEquivalentTo(2))
		begin = time.Now()
		job.remove(ctx)
		told("running job deleted to gone", begin)
		o.silent(ctx, "pauses")
		attempts, _ := o.ran(ctx, "pauses")
		Expect(attempts).To(Equal([]string{"1", "2"}))
	}, SpecTimeout(limit))
}

// secret checks that a token is in no job, no event and no word of the operator.
func secret(ctx context.Context, namespace, token string) {
	GinkgoHelper()
	Expect(token).NotTo(BeEmpty())
	Expect(said(ctx, namespace)).NotTo(ContainSubstring(token))
}
