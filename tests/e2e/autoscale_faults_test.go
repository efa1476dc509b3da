package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	osexec "os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

var _ = Describe("a cluster that scales by itself, in trouble", Ordered, Label(live.AcceptLabel, localkubeLabel), func() {
	var team, neighbour *env
	var untouched []types.UID

	BeforeAll(func(ctx SpecContext) {
		namespace := fresh(ctx)
		team, neighbour = &env{types.NamespacedName{Namespace: namespace, Name: "shaky"}}, &env{types.NamespacedName{Namespace: namespace, Name: "calm"}}
		// All sorts of things happen to the first, nothing may to its neighbour.
		team.apply(ctx, "clusters/autoscaled.yaml", values{"IdleTimeoutSeconds": 2, "Min": 0, "Max": 3})
		neighbour.apply(ctx, "clusters/autoscaled.yaml", values{"Min": 1, "Max": 2})
		for _, e := range []*env{team, neighbour} {
			e.ready(ctx)
			e.scales(ctx, "Autoscaled")
		}
		untouched = uids(append(neighbour.workers(ctx, 1), neighbour.head(ctx)))
	}, NodeTimeout(limit))

	AfterEach(func(ctx SpecContext) {
		Expect(uids(neighbour.pods(ctx, ""))).To(ConsistOf(untouched))
	})

	It("loses no task and no object as workers come and go, even if the autoscaler dies", Label(live.ChurnLabel), func(ctx SpecContext) {
		went := 0
		for round := range *rounds {
			gone := team.watch(ctx, func(_ apiwatch.Event, pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
			work := team.begin(ctx, rendered("programs/churn.py", values{"Seed": GinkgoRandomSeed() + int64(round)}))
			head := team.head(ctx)
			work.reaches(ctx, &head, "/tmp/half")
			signal(syscall.SIGKILL, "autoscaler", string(head.UID))
			var seen live.Churn
			work.end(ctx, &seen)
			seen.Gone = len(gone())
			AddReportEntry(live.ChurnEntry, seen, ReportEntryVisibilityAlways)
			Expect(seen).To(And(HaveField("Done", 40), HaveField("Read", 2)))
			went += seen.Gone
			Eventually(ctx, func() int32 { return team.head(ctx).Status.InitContainerStatuses[0].RestartCount }, limit).
				Should(BeNumerically(">", round), "kubelet waits longer from one restart to the next")
			team.workers(ctx, 0)
		}
		Expect(went).To(BeNumerically(">", 0))
	}, SpecTimeout(limit*time.Duration(2+*rounds)))

	It("stands still while the head's control service gives no answer", Label(live.AutoscalerTroubleLabel), func(ctx SpecContext) {
		head := team.head(ctx)
		team.keeps(ctx, "control service back to worker made", 0, func(holder []types.UID, more func()) {
			signal(syscall.SIGSTOP, "gcs_server", string(head.UID))
			DeferCleanup(signal, syscall.SIGCONT, "gcs_server", string(head.UID))
			more()
			eventually(ctx, "Autoscaling to be False", func(ctx context.Context) error {
				cluster, err := kubernetes.Find(ctx, team.NamespacedName)
				if err == nil && !meta.IsStatusConditionFalse(cluster.Status.Conditions, v1beta1.ConditionAutoscaling) {
					err = errors.New("it is not")
				}
				return err
			})
			Expect(uids(team.workers(ctx, 1))).To(Equal(holder))
			signal(syscall.SIGCONT, "gcs_server", string(head.UID))
		})
		team.scales(ctx, "Autoscaled")
		Expect(team.head(ctx).UID).To(Equal(head.UID))
	}, SpecTimeout(limit))

	It("grows from zero for Ray Data", Label(live.AutoscalerTroubleLabel), func(ctx SpecContext) {
		var seen struct {
			Sum   int
			Where []string
		}
		team.program(ctx, rendered("programs/data.py", nil), &seen)
		Expect(seen.Sum).To(Equal(999000))
		Expect(seen.Where).NotTo(BeEmpty())
		Expect(seen.Where).NotTo(ContainElement(team.head(ctx).Name))
		team.workers(ctx, 0)
	}, SpecTimeout(limit))

	long(func() *env { return team })

	hostile(func() (*env, *env) { return team, neighbour })

	It("costs next to nothing while nothing happens", Label(live.QuietLabel), func(ctx SpecContext) {
		lasts := 5 * time.Second
		if *full {
			lasts = 10 * time.Minute
		}
		quiet := neighbour.quiet(ctx, lasts)
		GinkgoWriter.Println(quiet)
		AddReportEntry(live.QuietEntry, quiet, ReportEntryVisibilityAlways)
		Expect(quiet.Rounds).To(BeNumerically(">", lasts.Seconds()))
		// The token's Secret is looked at each 15 minutes, and read again where a connection was lost.
		Expect(quiet.Calls).To(Or(BeEmpty(), HaveExactElements(HavePrefix("get secrets "))))
	}, SpecTimeout(limit+10*time.Minute))
})

// long are the specs of a cluster of zero to three workers that loses its API server, and its
// head.
func long(cluster func() *env) {
	It("keeps what works while the API server is away, and catches up when it is back", Label(live.AwayLabel), func(ctx SpecContext) {
		team := cluster()
		server := "/localkube/" + os.Getenv("LOCALKUBE_NAME") + "."
		team.keeps(ctx, live.AwayEntry, 3, func(_ []types.UID, more func()) {
			more()
			signal(syscall.SIGSTOP, "kube-apiserver", server)
			DeferCleanup(signal, syscall.SIGCONT, "kube-apiserver", server)
			Consistently(ctx, func(ctx context.Context) error {
				limited, stop := context.WithTimeout(ctx, time.Second)
				defer stop()
				_, err := kubernetes.Find(limited, team.NamespacedName)
				return err
			}, time.Minute, time.Second).Should(HaveOccurred())
			signal(syscall.SIGCONT, "kube-apiserver", server)
		})
	}, SpecTimeout(2*limit))

	It("serves what waits after its head's control service died, and after its head did", Label(live.AnewLabel), func(ctx SpecContext) {
		team := cluster()
		head := team.head(ctx)
		for i, fail := range []func(){func() { end(ctx, &head, "gcs_server") }, func() { kill(ctx, &head) }} {
			epoch := int64(i + 2)
			held := team.begin(ctx, rendered("programs/holding.py", nil))
			held.reaches(ctx, &head, "/tmp/holds")
			team.joined(ctx) // else it is not known that a worker had joined what ends
			begin := time.Now()
			fail()
			eventually(ctx, "another epoch", func(ctx context.Context) error { return team.inEpoch(ctx, epoch) })
			gone(ctx, &head)
			team.ready(ctx)
			team.serves(ctx)
			AddReportEntry(live.AnewEntry, fmt.Sprintf("%.1f s", time.Since(begin).Seconds()), ReportEntryVisibilityAlways)
			team.workers(ctx, 0)
			head = team.head(ctx)
		}
	}, SpecTimeout(2*limit))
}

// keeps lets something happen while an actor is on a worker and a task comes that needs
// another: so many seconds after more is called. The actor stays, and the task is served; the
// report says under a name how soon after what happened there was the worker.
func (e *env) keeps(ctx context.Context, entry string, seconds int, happens func(holder []types.UID, more func())) {
	GinkgoHelper()
	head := e.head(ctx)
	work := e.detached(ctx, rendered("programs/keeping.py", values{"Seconds": seconds}))
	exec(ctx, &head, "sh", "-c", "until rm /tmp/holds 2>/dev/null; do sleep 0.1; done")
	holder := uids(e.workers(ctx, 1))
	happens(holder, func() { exec(ctx, &head, "touch", "/tmp/more") })
	begin := time.Now()
	Expect(uids(e.workers(ctx, 2))).To(ContainElements(holder))
	told(entry, begin)
	var seen struct {
		Before, After string
		Done          int
	}
	work(ctx, &seen)
	Expect(seen.Done).To(Equal(1))
	Expect(seen.After).To(Equal(seen.Before))
	e.workers(ctx, 0)
}

// detached starts a program in the head that needs no connection of ours, and gives what
// waits for its end and decodes its result.
func (e *env) detached(ctx context.Context, program string) func(ctx context.Context, into any) {
	GinkgoHelper()
	head := e.head(ctx)
	exec(ctx, &head, "sh", "-c", `rm -f /tmp/out /tmp/ended; (setsid python3 -c "$1" >/tmp/out 2>&1 </dev/null; touch /tmp/ended) >/dev/null 2>&1 </dev/null &`, "sh", driver(program))
	return func(ctx context.Context, into any) {
		GinkgoHelper()
		decode(exec(ctx, &head, "sh", "-c", "until [ -e /tmp/ended ]; do sleep 0.1; done; cat /tmp/out"), into)
	}
}

// serves has a task run on a worker.
func (e *env) serves(ctx context.Context) {
	GinkgoHelper()
	var one int
	e.program(ctx, "result = ray.get(ray.remote(num_cpus=1)(lambda: 1).remote())", &one)
	Expect(one).To(Equal(1))
}

// joined waits until a worker is ready.
func (e *env) joined(ctx context.Context) {
	GinkgoHelper()
	eventually(ctx, "a ready worker", func(ctx context.Context) error {
		if workers := e.pods(ctx, v1beta1.RoleWorker); len(workers) == 0 || !isReady(&workers[0]) {
			return fmt.Errorf("there are %d", len(workers))
		}
		return nil
	})
}

// signal sends a signal to the process of a program in a control group.
func signal(signal syscall.Signal, program, part string) {
	GinkgoHelper()
	process, err := live.Process(program, part)
	Expect(err).NotTo(HaveOccurred())
	Expect(syscall.Kill(process, signal)).To(Succeed())
}

// quiet measures what the autoscaler of a cluster costs for so long, and which calls the
// operator makes about the cluster meanwhile.
func (e *env) quiet(ctx context.Context, lasts time.Duration) live.Quiet {
	GinkgoHelper()
	log := auditLog(ctx)
	eventually(ctx, "the last that is made for a cluster", func(ctx context.Context) error {
		return kubernetes.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: e.Name + "-head"}, &policyv1.PodDisruptionBudget{})
	})
	head := e.head(ctx)
	metrics := "http://" + forward(ctx, &head, scaleMetrics) + "/metrics"
	mark, err := log.Now()
	Expect(err).NotTo(HaveOccurred())
	before, first := e.used(ctx, &head, time.Now()), roundsMade(ctx, metrics)
	after := e.used(ctx, &head, before.At.Add(lasts))
	quiet := live.Quiet{Seconds: after.At.Sub(before.At).Seconds(), Rounds: roundsMade(ctx, metrics) - first, Bytes: after.Bytes}
	quiet.CPUMs = (after.CPU - before.CPU).Seconds() * 1000 / float64(max(1, quiet.Rounds))
	Expect(log.Since(mark, func(line []byte) error {
		var call struct {
			UserAgent, Verb string
			ObjectRef       struct{ Resource, Namespace, Name string }
		}
		err := json.Unmarshal(line, &call)
		about := call.ObjectRef.Namespace == e.Namespace && (call.ObjectRef.Name == "" || strings.HasPrefix(call.ObjectRef.Name, e.Name))
		if call.UserAgent == "heliostat-operator" && about {
			quiet.Calls = append(quiet.Calls, call.Verb+" "+call.ObjectRef.Resource+" "+call.ObjectRef.Name)
		}
		return err
	})).To(Succeed())
	return quiet
}

// auditLog is where the API server of the local Kubernetes notes each request.
func auditLog(ctx context.Context) live.AuditLog {
	GinkgoHelper()
	program, name := os.Getenv("LOCALKUBE"), os.Getenv("LOCALKUBE_NAME")
	Expect(program).NotTo(BeEmpty(), noLocalkube)
	out, err := osexec.CommandContext(ctx, program, "status", "--name", name, "-o", "json").Output()
	Expect(err).NotTo(HaveOccurred())
	var status struct{ AuditLog string }
	Expect(json.Unmarshal(out, &status)).To(Succeed())
	return live.AuditLog(status.AuditLog)
}

// used waits until the kubelet tells what the autoscaler used at a time or later.
func (e *env) used(ctx context.Context, head *corev1.Pod, at time.Time) (usage live.Usage) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (err error) {
		if usage, err = kubernetes.Usage(ctx, head, v1beta1.ContainerAutoscaler); err == nil && usage.At.Before(at) {
			err = errors.New("that was before")
		}
		return err
	}, time.Until(at)+time.Minute, time.Second).Should(Succeed())
	return usage
}

// scaleMetrics is the port of the autoscaler's metrics.
const scaleMetrics = 44217

var roundsCount = regexp.MustCompile(`(?m)^heliostat_autoscaler_round_seconds_count (\d+)$`)

// roundsMade is how many rounds an autoscaler made.
func roundsMade(ctx context.Context, metrics string) int {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, metrics, nil)
	Expect(err).NotTo(HaveOccurred())
	answer, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	found := roundsCount.FindSubmatch(text)
	Expect(found).NotTo(BeNil(), string(text))
	count, err := strconv.Atoi(string(found[1]))
	Expect(err).NotTo(HaveOccurred())
	return count
}
