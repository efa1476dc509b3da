package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	osexec "os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// trial is a gang of four processes on two nodes that is given faults, and the round that it is in.
type trial struct {
	*gangs
	job    task
	random *rand.Rand
	round  round
}

// fault is what can happen to a gang.
type fault struct {
	name string
	// hit does it to a process, or to what that process needs, and returns what ends it.
	hit func(context.Context, *trial, process) (undo func(context.Context))
	// names is what the status must name as the first: the process, or one of those that went with it. Without it the attempt
	// ends with the round, and another one begins.
	names func(*trial, process) types.GomegaMatcher
	// reasons are those of which the status must have one.
	reasons []string
	// isSlow reports whether the next round waits until a place that is lost cannot run on.
	isSlow bool
	// ofNode reports whether it is of a whole node. It takes minutes, so make accept alone does it.
	ofNode bool
}

// grace is the grace of gangs that faults are done to, in seconds.
const grace = 5

var faults = []fault{
	{name: "SIGKILL", hit: signalled("KILL"), names: itself, reasons: exits},
	{name: "SIGSEGV", hit: signalled("SEGV"), names: itself, reasons: exits},
	{name: "exit 3", hit: signalled("USR1"), names: itself, reasons: exits},
	{name: "out of memory", hit: signalled("USR2"), names: onItsPod, reasons: []string{"OutOfMemory"}, isSlow: true},
	{name: "agent stopped", hit: stopAgent, names: onItsPod, reasons: losses, isSlow: true},
	// Ray drains a node whose raylet is asked to end, and may have told of that before the node is gone.
	{name: "pod deleted", hit: deletePod, names: onItsPod, reasons: append(losses, "Drained")},
	{name: "driver killed", hit: killDriver, isSlow: true},
	{name: "node deleted", hit: ofNode("stop", "start"), names: onItsPod, reasons: losses, ofNode: true},
	{name: "node cut off", hit: ofNode("partition", "heal"), names: onItsPod, reasons: losses, ofNode: true},
	{name: "node cut off one way", hit: mute, names: onItsPod, reasons: losses, ofNode: true},
}

// exits are the reasons of a process that ended, and losses those of a place that is lost.
var exits, losses = []string{"Exit"}, []string{"Lost"}

// gangFaults are the specs of faults that are drawn by the seed: five kinds, or all kinds again and again.
func gangFaults(given func() *gangs) {
	It("name the process that was hit, and go on from its checkpoint, with no process of the round before", func(ctx SpecContext) {
		t := &trial{gangs: given(), random: rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 1))}
		drawn := t.draw()
		t.submit(ctx)
		DeferCleanup(func(ctx SpecContext) { // what waits for places keeps others waiting
			Expect(client.IgnoreNotFound(kubernetes.Delete(ctx, t.job.now(ctx)))).To(Succeed())
			t.job.gone(ctx)
		}, NodeTimeout(limit))
		for _, f := range drawn {
			t.play(ctx, f)
		}
	}, Label(live.GangFaultsLabel), SpecTimeout(60*time.Minute))
}

const faultsOfARound = 5

// draw returns faults in an order of chance: all kinds again and again in full, else one that is slow among others.
func (t *trial) draw() []fault {
	kinds := slices.Clone(faults)
	t.random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	if !*full {
		slow := slices.IndexFunc(kinds, func(f fault) bool { return f.isSlow })
		kinds = append(slices.DeleteFunc(slices.Clone(kinds), func(f fault) bool { return f.isSlow || f.ofNode }), kinds[slow])
	}
	var drawn []fault
	for len(drawn) < faultsOfARound**rounds {
		t.random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		drawn = append(drawn, kinds...)
	}
	return drawn[:faultsOfARound**rounds]
}

// submit makes the gang in place of a former one.
func (t *trial) submit(ctx context.Context) {
	GinkgoHelper()
	if t.job.Name != "" {
		t.job.remove(ctx)
		exec(ctx, &t.clerk, "rm", "-r", "/ledger/faults")
	}
	t.cluster.staying(ctx, 2)
	t.job = t.gangs.submit(ctx, "faults", "jobs/gang.yaml", values{"Grace": grace, "MaxRestarts": 1000, "Placement": "Spread",
		"Retry":   "{limit: 1000, infrastructureLimit: 1000, backoffSeconds: 0}",
		"Command": inRounds("python", "/programs/saver.py", "--name", "$(role)-$(index)"),
		"Roles":   `[{name: worker, replicas: 2, processesPerReplica: 2, resources: {CPU: "1"}}]`})
	t.round = t.gangs.round(ctx, "faults", 0, 4)
}

// play does a fault to the gang once all its processes have saved a step of this round, and checks what comes of it.
func (t *trial) play(ctx context.Context, f fault) {
	GinkgoHelper()
	By(f.name)
	t.cluster.staying(ctx, 2)
	victim := t.round.processes[t.random.IntN(len(t.round.processes))]
	if f.ofNode {
		victim = t.onTheOther(ctx)
	}
	for i := range t.round.processes {
		exec(ctx, &t.clerk, "sh", "-c", "until tail -n 1 /ledger/"+logOf(i)+" | grep -q '^saved'; do sleep 0.1; done")
	}
	job := t.job.reported(ctx)
	begin := time.Now()
	undo := f.hit(ctx, t, victim)
	next := t.gangs.round(ctx, "faults", t.round.number, 4)
	result := live.GangFault{Fault: f.name, Seconds: time.Since(begin).Seconds()}
	told(f.name+" to the next round", begin)
	if f.ofNode {
		takes(begin, (40+grace)*time.Second, "the next round after: "+f.name)
	}
	if f.names == nil {
		Expect(t.job.runs(ctx, job.Status.Attempt+1).Number).To(Equal(job.Status.Attempt + 1))
	} else {
		restart := t.job.restarted(ctx, job.Status.Gang.Restarts+1)
		result.Named = restart.Replica
		Expect(restart.Replica).To(f.names(t, victim), "%s was done to %s: %s", f.name, victim.name, restart.Message)
		Expect(restart.Reason).To(BeElementOf(f.reasons), "%s: %s", f.name, restart.Message)
		t.job.told(ctx, reason.GangRestarted.Code, result.Named, victim.pod)
	}
	if undo != nil {
		undo(ctx)
	}
	t.round = next
	for i := range t.round.processes {
		t.resumed(ctx, logOf(i), starts(t.log(ctx, logOf(i)))-1)
	}
	t.apart(ctx, "faults")
	AddReportEntry(live.GangFaultsEntry, result, ReportEntryVisibilityAlways)
}

// logOf is the file in which a process of the gang logs its steps.
func logOf(index int) string { return fmt.Sprintf("faults/worker-%d.log", index) }

// starts is how often a program began, by its log.
func starts(log []string) int {
	return len(slices.DeleteFunc(slices.Clone(log), func(line string) bool { return !strings.HasPrefix(line, "start ") }))
}

// itself matches the process that was hit.
func itself(_ *trial, victim process) types.GomegaMatcher { return Equal(victim.name) }

// onItsPod matches each process on the pod of the one that was hit.
func onItsPod(t *trial, victim process) types.GomegaMatcher {
	var names []string
	for _, p := range t.round.processes {
		if p.pod == victim.pod {
			names = append(names, p.name)
		}
	}
	return BeElementOf(names)
}

// signalled is a fault that is a signal to the program.
func signalled(signal string) func(context.Context, *trial, process) func(context.Context) {
	return func(ctx context.Context, t *trial, victim process) func(context.Context) {
		t.signal(ctx, victim, signal)
		return nil
	}
}

// pod is the pod of a process.
func (g *gangs) pod(ctx context.Context, p process) corev1.Pod {
	GinkgoHelper()
	var pod corev1.Pod
	Expect(kubernetes.Get(ctx, g.named(p.pod), &pod)).To(Succeed())
	return pod
}

func deletePod(ctx context.Context, t *trial, victim process) func(context.Context) {
	GinkgoHelper()
	pod := t.pod(ctx, victim)
	kill(ctx, &pod)
	return nil
}

// stopAgent stops the agent of the victim's place, as a machine does that swaps, and lets it go on later.
func stopAgent(ctx context.Context, t *trial, victim process) func(context.Context) {
	GinkgoHelper()
	pod := t.pod(ctx, victim)
	for _, id := range t.component(ctx, &pod, agentProcess, syscall.SIGSTOP) {
		DeferCleanup(func() { _ = syscall.Kill(id, syscall.SIGCONT) }) // it may have been ended
	}
	return nil
}

func killDriver(ctx context.Context, t *trial, _ process) func(context.Context) {
	GinkgoHelper()
	head := t.cluster.head(ctx)
	t.component(ctx, &head, driverProcess, syscall.SIGKILL)
	return nil
}

// Command lines of what a gang is made of beside its programs, by their beginnings or arguments.
const (
	agentProcess      = "ray::Agent"
	driverProcess     = "heliostat_gang"
	supervisorProcess = "ray::JobSupervisor"
	guardProcess      = "gang-guard"
	rayletProcess     = "raylet"
)

// component sends a signal to the processes of one kind in a pod, of which it waits for one, and returns their numbers.
func (g *gangs) component(ctx context.Context, pod *corev1.Pod, word string, signal syscall.Signal) []int {
	GinkgoHelper()
	var ids []int
	eventually(ctx, word+" in "+pod.Name, func(context.Context) error {
		found, err := live.CommandsIn(pod.UID, word)
		if err == nil && len(found) == 0 {
			err = errors.New("there is none")
		}
		for _, process := range found {
			Expect(syscall.Kill(process.ID, signal)).To(Succeed(), process.String())
			ids = append(ids, process.ID)
		}
		return err
	})
	return ids
}

// ofNode is a fault of a whole node, by verbs of localkube that begin and end it.
func ofNode(begins, ends string) func(context.Context, *trial, process) func(context.Context) {
	return func(ctx context.Context, t *trial, victim process) func(context.Context) {
		GinkgoHelper()
		node := t.pod(ctx, victim).Spec.NodeName
		localkube(ctx, begins, node)
		return func(ctx context.Context) { localkube(ctx, ends, node) }
	}
}

// mute drops what the pods of a node send to other nodes, and lets them receive.
func mute(ctx context.Context, t *trial, victim process) func(context.Context) {
	GinkgoHelper()
	node := t.pod(ctx, victim).Spec.NodeName
	networks, err := live.Networks(ctx)
	Expect(err).NotTo(HaveOccurred())
	change := func(ctx context.Context, verb string) {
		for _, chain := range []string{"FORWARD", "OUTPUT"} {
			rule := []string{"--net=" + networks[node], "iptables", "--wait", verb, chain, "--out-interface", "eth0", "--jump", "DROP"}
			out, err := osexec.CommandContext(ctx, "nsenter", rule...).CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
		}
	}
	change(ctx, "--insert")
	return func(ctx context.Context) { change(ctx, "--delete") }
}

// onTheOther is a process on the node without the head, to which the gang is submitted again where it has none there.
func (t *trial) onTheOther(ctx context.Context) process {
	GinkgoHelper()
	head := t.cluster.head(ctx)
	aside(ctx, nodes(ctx)[1].Name)
	for range 2 {
		for _, p := range t.round.processes {
			if t.pod(ctx, p).Spec.NodeName != head.Spec.NodeName {
				return p
			}
		}
		t.submit(ctx)
	}
	Fail("no process is on the node without the head")
	return process{}
}
