package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// wordParts is how many tasks count words.
const wordParts = 24

// What words.py of tests/frameworks prints, with 24 parts: half of the lines have a fox. The sum is 1,000 times that of twice 0 to 99.
const (
	wordsCounted = "words: dog 12 fox 12 the 24"
	tablesJoined = "join: 9900000"
)

// Applications of Spark on a cluster of two workers whose image has Java and Spark.
var _ = Describe("gangs of Spark", Ordered, ContinueOnFailure, Label(live.AcceptLabel, live.GangSparkLabel, localkubeLabel), func() {
	var g *gangs

	BeforeAll(func(ctx SpecContext) {
		g = withGangs(ctx, values{"Image": "frameworks-spark", "HeadOn": nodes(ctx)[0].Name})
	}, NodeTimeout(limit))

	It("count words and join by a shuffle, though an executor's pod is deleted in mid-stage", func(ctx SpecContext) {
		job := g.submit(ctx, "words", "jobs/gang.yaml", values{"Framework": "Spark", "Placement": "Spread",
			"Command": `[spark-submit, /programs/words.py, --pause, "4"]`, "Roles": sparkRoles("4", 1, 1)})
		driver := g.page(ctx, job).PodName
		g.untilTasks(ctx, "words", 2)
		victim := g.otherWorker(ctx, driver)
		Expect(kubernetes.Delete(ctx, victim)).To(Succeed())
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		g.counted(ctx, ended)
		Expect(ended.Status.Gang.Restarts).To(BeZero())
		Expect(g.log(ctx, "words/drivers")).To(HaveLen(1), "runs of the driver")
		g.leavesNothing(ctx, ended, time.Second)
	}, SpecTimeout(3*limit))

	It("grow from one executor to three as places appear, and refuse an application without the secret", func(ctx SpecContext) {
		blocker := g.submit(ctx, "blocker", "jobs/gang.yaml", values{"Placement": "StrictSpread",
			"Command": `[sleep, infinity]`, "Roles": `[{name: worker, replicas: 2, resources: {CPU: "3"}}]`})
		blocker.is(ctx, v1beta1.PhaseRunning)
		job := g.submit(ctx, "grows", "jobs/gang.yaml", values{"Framework": "Spark", "MoreAfter": "0",
			"Command": `[python, /programs/words.py, --pause, "5", --parts, "60"]`, "Roles": sparkRoles("1", 3, 1)})
		page := g.page(ctx, job)
		Expect(job.now(ctx).Status.Gang.Ready).To(BeEquivalentTo(2), "the driver and one executor")
		driver := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: page.PodName}}
		ask := fmt.Sprintf("import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:%d/jobs/').read().decode())", page.Port)
		eventually(ctx, "the application's page", func(ctx context.Context) error { // it is served a few seconds after the driver's start
			answer, err := kubernetes.Exec(ctx, client.ObjectKeyFromObject(driver), v1beta1.ContainerRay, "python", "-c", ask)
			if err == nil && !strings.Contains(answer, "Spark Jobs") {
				err = fmt.Errorf("it answers %q", answer)
			}
			if err == nil {
				Expect(answer).NotTo(ContainSubstring("kill"))
			}
			return err
		})
		secret := strings.TrimSpace(exec(ctx, driver, "sh", "-c", "cat /tmp/heliostat-spark-*/conf/spark-defaults.conf | sed -n 's/^spark.authenticate.secret //p' | head -n 1"))
		Expect(secret).To(HaveLen(64))
		Expect(g.refusals(ctx, driver)).To(ConsistOf("without a secret: refused", "with another secret: refused"))
		blocker.stop(ctx)
		eventually(ctx, "three executors", func(ctx context.Context) error {
			if ready := job.now(ctx).Status.Gang.Ready; ready != 4 {
				return fmt.Errorf("%d places are there", ready)
			}
			return nil
		})
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		Expect(g.log(ctx, "grows/drivers")).To(HaveLen(1), "runs of the driver")
		settings := g.printed(ctx, ended, regexp.MustCompile(`settings: (.*)`))
		Expect(settings).To(HaveLen(1))
		Expect(settings[0]).To(And(ContainSubstring("spark.ui.killEnabled=false"), ContainSubstring("spark.master.rest.enabled=false"),
			ContainSubstring("spark.authenticate=true")))
		_, output := commandLine(ctx, g.namespace, "logs", "job/"+ended.Name)
		Expect(output).NotTo(ContainSubstring(secret), "the secret of the round in the output of all processes")
		g.leavesNothing(ctx, ended, time.Second)
	}, SpecTimeout(4*limit))

	It("move the blocks of an executor on a draining node to another one before its place is given up", func(ctx SpecContext) {
		g.cluster.staying(ctx, 2)
		job := g.submit(ctx, "drains", "jobs/gang.yaml", values{"Framework": "Spark", "Placement": "Spread",
			"Command": `[spark-submit, /programs/words.py, --pause, "6"]`, "Roles": sparkRoles("3", 2, 2)}) // no two executors fit one worker
		driver := g.page(ctx, job).PodName
		g.untilTasks(ctx, "drains", 8)
		leaving := g.otherWorker(ctx, driver)
		annotate(ctx, leaving, v1beta1.AnnotationRetire)
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		g.counted(ctx, ended)
		Expect(ended.Status.Gang.Restarts).To(BeZero())
		Expect(g.log(ctx, "drains/drivers")).To(HaveLen(1), "runs of the driver")
		Expect(g.printed(ctx, ended, regexp.MustCompile(`Migrated (migrate_shuffle_0_\d+) .*to BlockManagerId`))).NotTo(BeEmpty(), "blocks that were moved")
		Expect(g.log(ctx, "drains/tasks")).To(HaveLen(wordParts), "tasks, none of which runs twice where no block is lost")
		g.leavesNothing(ctx, ended, time.Second)
	}, SpecTimeout(3*limit))

	It("say which pod has no Spark, and which size does not fit", func(ctx SpecContext) {
		missing := g.submit(ctx, "missing", "jobs/gang.yaml", values{"Framework": "Spark", "Command": `[spark-submit, /programs/words.py]`,
			"Roles": `[{name: driver, resources: {CPU: "1"}}, {name: executor, resources: {CPU: "1"}, env: [{name: SPARK_HOME, value: /nowhere}]}]`})
		large := g.submit(ctx, "large", "jobs/gang.yaml", values{"Framework": "Spark",
			"Command": `[spark-submit, --executor-memory, 1g, /programs/words.py]`, "Roles": sparkRoles("1", 1, 1)})
		said := live.SaysOf(missing.is(ctx, v1beta1.PhaseFailed))
		Expect(said).To(And(ContainSubstring("executor/0 on pod gangs-gpu-"), ContainSubstring("SPARK_HOME, which is /nowhere")))
		failed := large.is(ctx, v1beta1.PhaseFailed)
		Expect(reasonOf(failed)).To(Equal(reason.ProcessFailed.Code))
		Expect(live.SaysOf(failed)).To(ContainSubstring("spark.executor.memory of 1024 MiB with an overhead of 384 MiB does not fit the 1000 MiB of a place"))
	}, SpecTimeout(2*limit))
})

// How soon applications of Spark start, and how long they compute, beside Spark without gangs. All have the same cores: those of one pod.
var _ = Describe("gangs of Spark", Label(live.AcceptLabel, live.SparkTimesLabel, localkubeLabel), func() {
	It("start and compute as those of a Master and Workers made by hand, and of local-cluster mode", func(ctx SpecContext) {
		g := withGangs(ctx, values{"Image": "frameworks-spark"})
		var measured live.SparkTimes
		program := []string{"/programs/words.py", "--measure", "2", "--lines", "5000", "--rows", "3000000"}
		sizes := []string{"--driver-memory", "512m", "--executor-memory", "512m"} // all of them fit one pod
		submit := slices.Concat([]string{"spark-submit"}, sizes, program)
		local := slices.Concat([]string{"sh", "/programs/localspark.sh", "--driver-memory", "512m"}, program)
		const executors = `{name: executor, replicas: 2, resources: {CPU: "1"}}`
		for i := range live.SparkRunsMeasured {
			begin := time.Now()
			job := g.submit(ctx, fmt.Sprintf("gang-%d", i), "jobs/gang.yaml", values{"Framework": "Spark", "Placement": "StrictPack",
				"Command": commandOf(submit), "Roles": `[{name: driver, resources: {CPU: "1"}}, ` + executors + `]`})
			ended := job.is(ctx, v1beta1.PhaseSucceeded)
			measured.Firsts = append(measured.Firsts, g.number(ctx, ended, "first")-seconds(begin))
			measured.Works = append(measured.Works, g.number(ctx, ended, "took"))

			begin = time.Now()
			job = g.submit(ctx, fmt.Sprintf("hand-%d", i), "jobs/shared.yaml", values{"Cluster": "gangs",
				"Entrypoint": "python /programs/handspark.py " + strings.Join(program, " ")})
			measured.FirstsByHand = append(measured.FirstsByHand, g.number(ctx, job.is(ctx, v1beta1.PhaseSucceeded), "first")-seconds(begin))

			job = g.submit(ctx, fmt.Sprintf("local-%d", i), "jobs/gang.yaml", values{"Command": commandOf(local), "Roles": `[{name: worker, replicas: 1, resources: {CPU: "3"}}]`})
			measured.WorksOfLocal = append(measured.WorksOfLocal, g.number(ctx, job.is(ctx, v1beta1.PhaseSucceeded), "took"))
		}
		AddReportEntry(live.SparkTimesEntry, measured, ReportEntryVisibilityAlways)
	}, SpecTimeout(10*limit))
})

// seconds is a time as the programs print it.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / float64(time.Second) }

// number is what a job has printed behind a word.
func (g *gangs) number(ctx context.Context, job *v1beta1.ClusterJob, word string) float64 {
	GinkgoHelper()
	found := g.printed(ctx, job, regexp.MustCompile(word+`: ([0-9.]+)`))
	Expect(found).To(HaveLen(1), word)
	value, err := strconv.ParseFloat(found[0], 64)
	Expect(err).NotTo(HaveOccurred())
	return value
}

// sparkRoles are a driver and executors, each of some CPUs and 1,000 MiB.
func sparkRoles(cpus string, executors, least int) string {
	return fmt.Sprintf(`[{name: driver, resources: {CPU: "1"}}, {name: executor, replicas: %d, minReplicas: %d, resources: {CPU: %q, memory: 1000Mi}}]`,
		executors, least, cpus)
}

// page waits until the status has where the application serves its page.
func (g *gangs) page(ctx context.Context, of task) v1beta1.GangPage {
	GinkgoHelper()
	var page v1beta1.GangPage
	eventually(ctx, "the page of "+of.Name, func(ctx context.Context) error {
		job := of.now(ctx)
		if job.Status.Gang == nil || job.Status.Gang.Page == nil {
			return fmt.Errorf("there is none: %s", live.SaysOf(job))
		}
		page = *job.Status.Gang.Page
		return nil
	})
	return page
}

// untilTasks waits until as many tasks of an application have ended.
func (g *gangs) untilTasks(ctx context.Context, job string, tasks int) {
	GinkgoHelper()
	exec(ctx, &g.clerk, "sh", "-c", fmt.Sprintf("until [ $(cat /ledger/%s/tasks 2>/dev/null | wc -l) -ge %d ]; do sleep 0.2; done", job, tasks))
}

// otherWorker returns a worker that is not in a pod.
func (g *gangs) otherWorker(ctx context.Context, pod string) *corev1.Pod {
	GinkgoHelper()
	workers := g.cluster.pods(ctx, v1beta1.RoleWorker)
	for i := range workers {
		if workers[i].Name != pod {
			return &workers[i]
		}
	}
	Fail("all workers are " + pod)
	return nil
}

// counted checks what an application printed.
func (g *gangs) counted(ctx context.Context, job *v1beta1.ClusterJob) {
	GinkgoHelper()
	_, output := commandLine(ctx, g.namespace, "logs", "job/"+job.Name)
	Expect(output).To(And(ContainSubstring(wordsCounted), ContainSubstring(tablesJoined)))
}

// refusals tries applications without the secret of the round, in a pod that has the Master.
func (g *gangs) refusals(ctx context.Context, pod *corev1.Pod) []string {
	GinkgoHelper()
	const find = `for f in /tmp/heliostat-spark-*/conf/spark-defaults.conf; do sed -n 's/^spark.master //p' "$f"; done | head -n 1`
	master := strings.TrimSpace(exec(ctx, pod, "sh", "-c", find))
	Expect(master).To(HavePrefix("spark://"))
	var found []string
	for what, options := range map[string]string{
		"without a secret":    "",
		"with another secret": "--conf spark.authenticate=true --conf spark.authenticate.secret=guessed",
	} {
		line := fmt.Sprintf("CHECKPOINT_DIR=/tmp SPARK_CONF_DIR=/nowhere spark-submit --master %s %s /programs/words.py 2>&1 && echo ran || echo refused", master, options)
		said := strings.Fields(exec(ctx, pod, "sh", "-c", line))
		found = append(found, what+": "+said[len(said)-1])
	}
	return found
}
