package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
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
	"github.com/heliostat-dev/heliostat/tests/frameworks"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Gangs on one cluster of two workers, each on a node of its own and with four CPUs and devices as Ray counts them. Their
// programs are those of tests/frameworks, which know neither Ray nor this operator.
var _ = Describe("gangs", Ordered, ContinueOnFailure, Label(localkubeLabel), func() {
	var g *gangs

	BeforeAll(func(ctx SpecContext) { g = withGangs(ctx, values{"HeadOn": nodes(ctx)[0].Name}) }, NodeTimeout(limit))

	It("train one model with PyTorch on two nodes, though a rank is killed, and the same one by torchrun", func(ctx SpecContext) {
		job := g.submit(ctx, "ddp", "jobs/gang.yaml", values{"Framework": "PyTorch", "MaxRestarts": 3, "Placement": "Spread",
			"Command": inRounds("python", "/programs/ddp.py", "--pause", "0.2"), "Roles": `[{name: worker, replicas: 4, resources: {CPU: "1", GPU: "1"}}]`})
		job.is(ctx, v1beta1.PhaseRunning)
		first := g.round(ctx, "ddp", 0, 4)
		g.untilStep(ctx, "ddp/log", 5)
		victim := first.process("worker/3")
		g.signal(ctx, victim, "KILL")
		second := g.round(ctx, "ddp", first.number, 4)
		restart := job.restarted(ctx, 1)
		Expect(restart.Replica).To(Equal("worker/3"))
		Expect(restart.Message).To(ContainSubstring("SIGKILL"))
		job.told(ctx, reason.GangRestarted.Code, "worker/3", victim.pod)
		Expect(victim.pod).NotTo(Equal(first.process("worker/0").pod), "the ranks are on two nodes")
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		g.resumed(ctx, "ddp/log", 1)
		g.apart(ctx, "ddp")
		Expect(second.processes).To(HaveLen(4))
		loss := g.loss(ctx, ended)

		torchrun := g.submit(ctx, "torchrun", "jobs/gang.yaml", values{"Framework": "PyTorch", "Placement": "StrictSpread",
			"Command": inRounds("torchrun", "/programs/ddp.py"),
			"Roles":   `[{name: worker, replicas: 2, processesPerReplica: 2, start: PerReplica, resources: {CPU: "2", GPU: "2"}}]`})
		Expect(g.loss(ctx, torchrun.is(ctx, v1beta1.PhaseSucceeded))).To(Equal(loss), "a restart from the checkpoint changes nothing, nor does torchrun")
	}, Label(live.GangFrameworksLabel, live.GangIPv6Label), SpecTimeout(2*limit))

	It("give places on one node devices of their own, and have phases that kubectl shows", func(ctx SpecContext) {
		job := g.submit(ctx, "devices", "jobs/gang.yaml", values{"Framework": "PyTorch", "Placement": "StrictPack",
			"Command": `[sh, -c, 'echo "devices $CUDA_VISIBLE_DEVICES for $PET_NPROC_PER_NODE"; until [ -e /ledger/seen ]; do sleep 0.1; done']`,
			"Roles":   `[{name: worker, replicas: 2, processesPerReplica: 2, start: PerReplica, resources: {CPU: "1", GPU: "2"}}]`})
		Expect(job.is(ctx, v1beta1.PhaseRunning).Status.Gang.Ready).To(BeEquivalentTo(2))
		crowd := g.submit(ctx, "crowd", "jobs/gang.yaml", values{"Command": `["true"]`, "Roles": `[{name: worker, replicas: 2, resources: {GPU: "4"}}]`})
		crowd.says(ctx, reason.GangGathering.Code)
		eventually(ctx, "what crowd waits for", func(ctx context.Context) error {
			if said := live.SaysOf(crowd.now(ctx)); !strings.Contains(said, "1 of 2 × {GPU: 4} missing") {
				return errors.New(said)
			}
			return nil
		})
		Expect(g.kubectl(ctx, "get", "cjob")).To(And(MatchRegexp(`(?m)^crowd .*\bGathering\b`), MatchRegexp(`(?m)^devices .*\bRunning\b`)))
		exec(ctx, &g.clerk, "touch", "/ledger/seen")
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		Expect(g.printed(ctx, ended, regexp.MustCompile(`devices (\S+ for \d)`))).To(ConsistOf("0,1 for 2", "2,3 for 2"))
		crowd.is(ctx, v1beta1.PhaseSucceeded)
	}, SpecTimeout(limit))

	It("that no worker can hold say so, with the arithmetic", func(ctx SpecContext) {
		job := g.submit(ctx, "giant", "jobs/gang.yaml", values{"Command": `["true"]`, "Roles": `[{name: worker, replicas: 1, resources: {GPU: "5"}}]`})
		begin := time.Now()
		said := job.says(ctx, reason.GangTooLarge.Code)
		takes(begin, 10*time.Second, "the reason of a gang that is too large")
		Expect(said.Status.Phase).To(Equal(v1beta1.PhasePending))
		Expect(live.SaysOf(said)).To(And(ContainSubstring("GPU: 5"), ContainSubstring("group gpu")))
		job.remove(ctx)
	}, SpecTimeout(limit))

	It("that fail name the process that was first, its pod, and its own last lines", func(ctx SpecContext) {
		job := g.submit(ctx, "fails", "jobs/gang.yaml", values{"Placement": "Spread",
			"Command": `[sh, -c, 'echo "words of $ROLE_INDEX"; [ $ROLE_INDEX = 0 ] || exit 3; exec sleep 1000']`,
			"Roles":   `[{name: worker, replicas: 2, resources: {CPU: "1"}}]`})
		missing := g.submit(ctx, "missing", "jobs/gang.yaml", values{"Command": `[mpirum, a.out]`, "Roles": `[{name: worker, resources: {CPU: "1"}}]`})
		failed := job.is(ctx, v1beta1.PhaseFailed)
		Expect(reasonOf(failed)).To(Equal(reason.ProcessFailed.Code), live.SaysOf(failed))
		Expect(live.SaysOf(failed)).To(MatchRegexp("worker/1 on pod gangs-gpu-.* exit code 3"))
		Expect(last(failed).ExitCode).To(HaveValue(BeEquivalentTo(3)))
		Expect(last(failed).LastLines).To(And(ContainElement("words of 1"), Not(ContainElement(ContainSubstring("words of 0")))))
		g.leavesNothing(ctx, failed, time.Second)
		unknown := missing.is(ctx, v1beta1.PhaseFailed)
		Expect(live.SaysOf(unknown)).To(And(ContainSubstring("mpirum"), ContainSubstring("gangs-gpu-")))
	}, SpecTimeout(limit))

	gangSaves(func() *gangs { return g })
	gangFrameworks(func() *gangs { return g })
	gangFaults(func() *gangs { return g })
	gangEnds(func() *gangs { return g })
	gangPlaces(func() *gangs { return g })
})

// gangs is a namespace with jobs in it, a volume that they save to, and a cluster whose image has frameworks.
type gangs struct {
	*office
	cluster *env
}

// withGangs makes a fresh namespace with programs of frameworks and the cluster, and waits until it is Ready.
func withGangs(ctx context.Context, v values) *gangs {
	GinkgoHelper()
	g := withPrograms(ctx)
	g.cluster.apply(ctx, "clusters/gangs.yaml", v)
	g.cluster.ready(ctx)
	return g
}

// withPrograms makes a fresh namespace with programs of frameworks, and no cluster.
func withPrograms(ctx context.Context) *gangs {
	GinkgoHelper()
	o := opened(ctx)
	programs, err := frameworks.Programs()
	Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"round.sh", "times.sh", "handmade.py", "handspark.py", "localspark.sh", "lines.py"} {
		programs[name] = rendered("programs/"+name, nil)
	}
	golden, err := os.ReadFile("../../ray-operator/launcher/tests/environments.golden")
	Expect(err).NotTo(HaveOccurred())
	programs["environments.golden"] = string(golden)
	Expect(kubernetes.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "programs"}, Data: programs})).To(Succeed())
	return &gangs{o, &env{o.named("gangs")}}
}

// inRounds is a command whose processes note when they begin, and which processes of other rounds run then.
func inRounds(words ...string) string {
	GinkgoHelper()
	return commandOf(append([]string{"sh", "/programs/round.sh"}, words...))
}

// process is a process of a gang that has begun: its number in its pod is that of the program.
type process struct {
	name, pod string
	id        int
}

// round is a start of all processes of a gang.
type round struct {
	number    int
	processes []process
}

// process returns the one of a name.
func (r round) process(name string) process {
	GinkgoHelper()
	at := slices.IndexFunc(r.processes, func(p process) bool { return p.name == name })
	Expect(at).NotTo(Equal(-1), "%s has not begun in round %d", name, r.number)
	return r.processes[at]
}

// round waits until as many processes have begun in the newest round after another one, and gives it.
func (g *gangs) round(ctx context.Context, job string, after, processes int) round {
	GinkgoHelper()
	var newest round
	eventually(ctx, fmt.Sprintf("%d processes of %s to begin after round %d", processes, job, after), func(ctx context.Context) (err error) {
		if newest, err = g.newest(ctx, job); err == nil && (newest.number <= after || len(newest.processes) != processes) {
			err = fmt.Errorf("in round %d there are %v", newest.number, newest.processes)
		}
		return err
	})
	return newest
}

// newest is the newest round of a job, by what its processes wrote when they began: "round process pod id".
func (g *gangs) newest(ctx context.Context, job string) (round, error) {
	text, err := kubernetes.Exec(ctx, g.named("clerk"), v1beta1.ContainerRay, "sh", "-c", "cat /ledger/"+job+"/began 2>/dev/null || true")
	if err != nil {
		return round{}, err
	}
	var newest round
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 4 {
			return round{}, fmt.Errorf("read %q", line)
		}
		number, err := strconv.Atoi(words[0])
		id, idErr := strconv.Atoi(words[3])
		if err := errors.Join(err, idErr); err != nil {
			return round{}, fmt.Errorf("read %q: %w", line, err)
		}
		if number > newest.number {
			newest = round{number: number}
		}
		if number == newest.number {
			newest.processes = append(newest.processes, process{words[1], words[2], id})
		}
	}
	return newest, nil
}

// signal sends a signal to a process.
func (g *gangs) signal(ctx context.Context, p process, signal string) {
	GinkgoHelper()
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: p.pod}}
	exec(ctx, &pod, "sh", "-c", fmt.Sprintf("kill -%s %d", signal, p.id))
}

// log is what a program wrote to a file of the ledger of when it began, from which step, and which steps it saved.
func (g *gangs) log(ctx context.Context, file string) []string {
	GinkgoHelper()
	return strings.Split(strings.TrimSpace(exec(ctx, &g.clerk, "sh", "-c", "cat /ledger/"+file+" 2>/dev/null || true")), "\n")
}

// untilStep waits until a program has saved a step.
func (g *gangs) untilStep(ctx context.Context, file string, step int) {
	GinkgoHelper()
	exec(ctx, &g.clerk, "sh", "-c", fmt.Sprintf("until grep -q '^saved %d$' /ledger/%s 2>/dev/null; do sleep 0.1; done", step, file))
}

// resumed checks that a program began again as often, each time with the step that it had saved last. A program that was
// killed between the two may have saved one more than it wrote.
func (g *gangs) resumed(ctx context.Context, file string, times int) {
	GinkgoHelper()
	begun, saved := 0, 0
	for _, line := range g.log(ctx, file) {
		what, number, _ := strings.Cut(line, " ")
		step, err := strconv.Atoi(number)
		Expect(err).NotTo(HaveOccurred(), line)
		if what == "start" {
			begun++
			Expect(step).To(BeNumerically("~", saved, 1), "%s: the step from which a round goes on", file)
			Expect(step).To(BeNumerically(">=", saved), "%s: the step from which a round goes on", file)
		}
		saved = step
	}
	Expect(begun).To(Equal(times+1), "%s: how often it began", file)
}

// apart checks that no process began while one of another round of its gang ran.
func (g *gangs) apart(ctx context.Context, job string) {
	GinkgoHelper()
	Expect(exec(ctx, &g.clerk, "sh", "-c", "cat /ledger/"+job+"/overlaps 2>/dev/null || true")).To(BeEmpty(), "processes of two rounds ran at once")
}

// leavesNothing waits until no process of a job's programs is on any node, and returns after how long. What started them must
// be gone too, but it may wait until a lost place cannot have any left.
func (g *gangs) leavesNothing(ctx context.Context, job *v1beta1.ClusterJob, within time.Duration) time.Duration {
	GinkgoHelper()
	begin := time.Now()
	left := func(variable string) func(context.Context) error {
		return func(context.Context) error {
			left, err := live.GangProcesses(job.UID, variable)
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("there are %v", left)
			}
			return err
		}
	}
	Expect(live.Until(ctx, within, "the processes of "+job.Name+" to be gone", left(live.OfPrograms))).To(Succeed())
	took := time.Since(begin)
	eventually(ctx, "what started the processes of "+job.Name+" to be gone", left(live.OfKeepers))
	return took
}

// kubectl runs kubectl in the namespace.
func (g *gangs) kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	program := os.Getenv("KUBECTL")
	Expect(program).NotTo(BeEmpty(), noLocalkube)
	out, err := osexec.CommandContext(ctx, program, append([]string{"--namespace", g.namespace}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

// reported waits until the status has the gang's report that all its places are there.
func (t task) reported(ctx context.Context) *v1beta1.ClusterJob {
	GinkgoHelper()
	var job *v1beta1.ClusterJob
	eventually(ctx, "the status of "+t.Name+" to have its gang", func(ctx context.Context) (err error) {
		if job, err = kubernetes.FindJob(ctx, t.NamespacedName); err != nil {
			return err
		}
		if job.Status.Phase != v1beta1.PhaseRunning || job.Status.Gang == nil || job.Status.Gang.Ready < job.Status.Gang.Replicas {
			return errors.New(live.SaysOf(job))
		}
		return nil
	})
	return job
}

// restarted waits until the status counts as many restarts, and gives the last one.
func (t task) restarted(ctx context.Context, times int32) v1beta1.GangRestart {
	GinkgoHelper()
	var restart v1beta1.GangRestart
	eventually(ctx, fmt.Sprintf("%d restarts of %s", times, t.Name), func(ctx context.Context) error {
		job, err := kubernetes.FindJob(ctx, t.NamespacedName)
		if err != nil {
			return err
		}
		if job.Status.Gang == nil || job.Status.Gang.LastRestart == nil || job.Status.Gang.Restarts < times {
			return errors.New(live.SaysOf(job))
		}
		restart = *job.Status.Gang.LastRestart
		return nil
	})
	return restart
}

// told waits until an event of the job with a reason has all of some words.
func (t task) told(ctx context.Context, why string, words ...string) {
	GinkgoHelper()
	eventually(ctx, fmt.Sprintf("an event %s of %s with %q", why, t.Name, words), func(ctx context.Context) error {
		var events corev1.EventList
		if err := kubernetes.List(ctx, &events, client.InNamespace(t.Namespace)); err != nil {
			return err
		}
		var said []string
		for i := range events.Items {
			event := &events.Items[i]
			if event.InvolvedObject.Name != t.Name || event.Reason != why {
				continue
			}
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(event.Message, word) }) {
				return nil
			}
			said = append(said, event.Message)
		}
		return fmt.Errorf("there are %q", said)
	})
}

// printed are the first groups of an expression in the output of a job that has ended.
func (g *gangs) printed(ctx context.Context, job *v1beta1.ClusterJob, line *regexp.Regexp) []string {
	GinkgoHelper()
	_, output := commandLine(ctx, g.namespace, "logs", "job/"+job.Name)
	var found []string
	for _, match := range line.FindAllStringSubmatch(output, -1) {
		found = append(found, match[1])
	}
	return found
}

var rankEnds = regexp.MustCompile(`rank \d of 4 ends with loss (\d\.\d{6})`) // what two ranks of torchrun print may share a line

// loss is the loss that all four ranks of a job ended with.
func (g *gangs) loss(ctx context.Context, job *v1beta1.ClusterJob) string {
	GinkgoHelper()
	losses := g.printed(ctx, job, rankEnds)
	Expect(losses).To(HaveLen(4), "ranks that ended")
	Expect(slices.Compact(losses)).To(HaveLen(1), "weights of the ranks")
	return losses[0]
}
