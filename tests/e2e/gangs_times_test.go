package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/bench/beside"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// timed is how many processes a gang has whose times are measured.
	timed = 4
	// longRound is how many seconds a round lasts until it fails. A round that fails sooner pauses before the next one.
	longRound = 11
)

var fourWorkers = fmt.Sprintf(`[{name: worker, replicas: %d, resources: {CPU: "1"}}]`, timed)

// How soon gangs start and start again. make accept alone plays it, as it takes minutes.
var _ = Describe("gangs", Label(live.AcceptLabel, live.GangTimesLabel, localkubeLabel), func() {
	It("start all again soon after a process has failed, and start as soon as by a driver made by hand", func(ctx SpecContext) {
		g := withGangs(ctx, nil)
		var measured live.GangTimes
		job := g.timed(ctx, "again")
		_, measured.Restarts = g.times(ctx, "again", live.GangRestartsMeasured)
		job.stop(ctx)
		job.is(ctx, v1beta1.PhaseStopped)
		for i := range live.GangStartsMeasured {
			gang, byHand := fmt.Sprintf("gang-%d", i), fmt.Sprintf("hand-%d", i)
			begin := time.Now()
			job := g.submit(ctx, gang, "jobs/gang.yaml", values{"Placement": "Spread", "Command": commandOf(toTimes(gang)), "Roles": fourWorkers})
			started, _ := g.times(ctx, gang, 0)
			measured.Starts = append(measured.Starts, started.Sub(begin).Seconds())
			job.is(ctx, v1beta1.PhaseSucceeded)
			begin = time.Now()
			job = g.submit(ctx, byHand, "jobs/shared.yaml", values{"Cluster": "gangs",
				"Entrypoint": "python /programs/handmade.py " + strings.Join(toTimes(byHand), " ")})
			started, _ = g.times(ctx, byHand, 0)
			measured.ByHand = append(measured.ByHand, started.Sub(begin).Seconds())
			job.is(ctx, v1beta1.PhaseSucceeded)
		}
		AddReportEntry(live.GangTimesEntry, measured, ReportEntryVisibilityAlways)
	}, SpecTimeout(6*limit))
})

// Gangs beside pods: those of JobSet, whose source JOBSET names, else pods that are applied and deleted without a controller.
var _ = Describe("gangs beside pods", Label(live.AcceptLabel, live.GangPodsLabel, localkubeLabel), func() {
	It("start and start again sooner on a cluster that is there", func(ctx SpecContext) {
		g := withGangs(ctx, nil)
		other, measured := g.pods(ctx), live.GangPods{}
		measured.Of = other.name
		for i := range live.GangStartsMeasured {
			gang, pods := fmt.Sprintf("gang-%d", i), fmt.Sprintf("pods-%d", i)
			begin := time.Now()
			job := g.timed(ctx, gang)
			started, again := g.times(ctx, gang, 1)
			measured.Gangs = append(measured.Gangs, live.GangStart{Start: started.Sub(begin).Seconds(), Restart: again[0]})
			job.stop(ctx)
			job.is(ctx, v1beta1.PhaseStopped)
			begin = time.Now()
			end := other.start(ctx, pods)
			started, again = g.times(ctx, pods, 1)
			measured.Pods = append(measured.Pods, live.GangStart{Start: started.Sub(begin).Seconds(), Restart: again[0]})
			end()
		}
		AddReportEntry(live.GangPodsEntry, measured, ReportEntryVisibilityAlways)
	}, SpecTimeout(6*limit))
})

// timed submits a gang that notes its times, and whose process 0 fails again and again.
func (g *gangs) timed(ctx context.Context, name string) task {
	GinkgoHelper()
	return g.submit(ctx, name, "jobs/gang.yaml", values{"MaxRestarts": 100, "Placement": "Spread", "Roles": fourWorkers,
		"Command": commandOf(toTimes(name, "$(index)", strconv.Itoa(longRound)))})
}

// toTimes is a command that notes when a process of a name begins.
func toTimes(name string, more ...string) []string {
	return append([]string{"sh", "/programs/times.sh", fileOfTimes(name)}, more...)
}

func fileOfTimes(name string) string { return "/ledger/times-" + name }

// times waits until all processes have begun, and begun again as often after a failure. It gives when the last one began first, and
// how many seconds after each failure it did.
func (g *gangs) times(ctx context.Context, name string, restarts int) (first time.Time, again []float64) {
	GinkgoHelper()
	patience := time.Duration(restarts)*(longRound*time.Second+limit/10) + limit
	Expect(live.Until(ctx, patience, name+" to start", func(ctx context.Context) error {
		text, err := kubernetes.Exec(ctx, g.named("clerk"), v1beta1.ContainerRay, "sh", "-c", "cat "+fileOfTimes(name)+" 2>/dev/null || true")
		if err == nil {
			first, again, err = readTimes(text)
		}
		if err == nil && (first.IsZero() || len(again) < restarts) {
			err = fmt.Errorf("it has started again %d times: %q", len(again), text)
		}
		return err
	})).To(Succeed())
	return first, again[:restarts]
}

// readTimes reads what times.sh wrote: lines such as "began 1760000000.123456789". The round that is starting is left out.
func readTimes(text string) (first time.Time, again []float64, err error) {
	var failed time.Time
	begun := 0
	for line := range strings.Lines(text) {
		what, when, _ := strings.Cut(strings.TrimSpace(line), " ")
		seconds, nanoseconds, _ := strings.Cut(when, ".")
		s, err := strconv.ParseInt(seconds, 10, 64)
		ns, nsErr := strconv.ParseInt(nanoseconds, 10, 64)
		if err := errors.Join(err, nsErr); err != nil {
			return first, nil, fmt.Errorf("read %q: %w", line, err)
		}
		at := time.Unix(s, ns)
		if what == "failed" {
			failed, begun = at, 0
			continue
		}
		if begun++; begun != timed {
			continue
		}
		if failed.IsZero() {
			first = at
		} else {
			again = append(again, at.Sub(failed).Seconds())
		}
	}
	return first, again, nil
}

// pods are what starts four pods that note their times, and again once the first one has failed.
type pods struct {
	name  string
	start func(ctx context.Context, name string) (end func())
}

// pods are those of JobSet, where there is its source.
func (g *gangs) pods(ctx context.Context) pods {
	GinkgoHelper()
	source := os.Getenv("JOBSET")
	if source == "" {
		return pods{"pods applied without a controller", g.applyPods}
	}
	commit, err := osexec.CommandContext(ctx, "git", "-C", source, "describe", "--always", "--tags").Output()
	Expect(err).NotTo(HaveOccurred())
	g.startJobSet(ctx, source)
	return pods{"JobSet " + strings.TrimSpace(string(commit)), func(ctx context.Context, name string) func() {
		GinkgoHelper()
		text := rendered("jobs/timed-jobset.yaml", timedPod(name, "$(JOB_COMPLETION_INDEX)"))
		Expect(kubernetes.Apply(ctx, g.namespace, []byte(text))).To(Succeed())
		return func() {
			objects, err := live.Decode([]byte(text))
			Expect(err).NotTo(HaveOccurred())
			objects[0].SetNamespace(g.namespace)
			Expect(kubernetes.Delete(ctx, objects[0], client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
			g.noPods(ctx, name)
		}
	}}
}

// timedPod are the values of a pod that notes its times under a name.
func timedPod(name, index string) values {
	return values{"Name": name, "File": fileOfTimes(name), "Index": index, "Seconds": longRound}
}

// applyPods applies pods, and applies them again once one has failed and all are gone.
func (g *gangs) applyPods(ctx context.Context, name string) func() {
	GinkgoHelper()
	var texts []string
	for index := range timed {
		texts = append(texts, rendered("jobs/timed-pod.yaml", timedPod(name, strconv.Itoa(index))))
	}
	all := []byte(strings.Join(texts, "\n---\n"))
	remove := func() {
		GinkgoHelper()
		Expect(kubernetes.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(g.namespace), client.MatchingLabels{"timed": name})).To(Succeed())
		g.noPods(ctx, name)
	}
	Expect(kubernetes.Apply(ctx, g.namespace, all)).To(Succeed())
	exec(ctx, &g.clerk, "sh", "-c", "until grep -q failed "+fileOfTimes(name)+" 2>/dev/null; do sleep 0.05; done")
	remove()
	Expect(kubernetes.Apply(ctx, g.namespace, all)).To(Succeed())
	return remove
}

// noPods waits until no pod is left that notes its times under a name.
func (g *gangs) noPods(ctx context.Context, name string) {
	GinkgoHelper()
	eventually(ctx, "the pods of "+name+" to be gone", func(ctx context.Context) error {
		var pods corev1.PodList
		err := kubernetes.List(ctx, &pods, client.InNamespace(g.namespace), client.MatchingLabels{"timed": name})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d are there", len(pods.Items))
		}
		return err
	})
}

// startJobSet builds JobSet's controller, and runs it beside the local Kubernetes.
func (g *gangs) startJobSet(ctx context.Context, source string) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	build := osexec.CommandContext(ctx, "go", "build", "-C", source, "-o", filepath.Join(dir, "jobset"), ".")
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	definition, err := os.ReadFile(filepath.Join(source, "config", "components", "crd", "bases", "jobset.x-k8s.io_jobsets.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(kubernetes.Apply(ctx, "", definition)).To(Succeed())
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	Expect(err).NotTo(HaveOccurred())
	health, err := beside.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	webhook, err := beside.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	_, port, err := net.SplitHostPort(webhook)
	Expect(err).NotTo(HaveOccurred())
	config, err := json.Marshal(map[string]any{"apiVersion": "config.jobset.x-k8s.io/v1alpha1", "kind": "Configuration",
		"leaderElection": map[string]any{"leaderElect": false}, "internalCertManagement": map[string]any{"enable": false},
		"webhook": map[string]any{"port": json.Number(port), "host": "127.0.0.1", "certDir": dir},
		"metrics": map[string]any{"bindAddress": "0"}, "health": map[string]any{"healthProbeBindAddress": health}})
	Expect(err).NotTo(HaveOccurred())
	for name, text := range map[string][]byte{"config.json": config, "tls.crt": certificate, "tls.key": key} {
		Expect(os.WriteFile(filepath.Join(dir, name), text, 0o600)).To(Succeed())
	}
	controller := osexec.Command(filepath.Join(dir, "jobset"), "--config", filepath.Join(dir, "config.json"))
	controller.Stdout, controller.Stderr = GinkgoWriter, GinkgoWriter
	Expect(controller.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = controller.Process.Kill() // it may have ended
		_ = controller.Wait()
	})
	eventually(ctx, "JobSet to be ready", func(ctx context.Context) error {
		return beside.Answers(ctx, http.DefaultClient, "http://"+health+"/readyz", "")
	})
}
