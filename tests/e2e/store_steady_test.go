package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// steady is a cluster on whose two workers work goes on all the time: a driver that submits
// tasks, a detached actor that counts on each, and an application of Serve with a replica
// on each, which is sent requests.
type steady struct {
	*env
	store    string
	workers  []corev1.Pod // as they were when the work began
	requests *requests
	counts   map[string][2]int // process and count of each actor, by its worker
	asked    int
	// encryption is what its heads are asked with, nil in clear text.
	encryption *tls.Config
	heads      []string // Ray's IDs of the heads that were alive when the actors were last asked
}

// Control stores that need nothing of the user's.
const (
	managedRedis = "{managedRedis: {storage: 100Mi}}"
	embedded     = "{embedded: {storage: 100Mi}}"
)

// steadily makes a cluster with a control store, and has it work.
func steadily(ctx context.Context, e *env, store string, v values) *steady {
	GinkgoHelper()
	begin := time.Now()
	e.apply(ctx, "clusters/steady.yaml", v)
	e.ready(ctx)
	told("apply to Ready", begin)
	s := &steady{env: e, store: store, workers: e.staying(ctx, 2)}
	s.work(ctx)
	return s
}

// work begins the work, and gives when all of it goes on.
func (s *steady) work(ctx context.Context) {
	GinkgoHelper()
	names, err := json.Marshal([]string{s.workers[0].Name, s.workers[1].Name})
	Expect(err).NotTo(HaveOccurred())
	exec(ctx, &s.workers[0], "sh", "-c", `rm -f /tmp/ended /tmp/steady; (setsid python3 -c "$1" >/tmp/out 2>&1 </dev/null; touch /tmp/ended) >/dev/null 2>&1 </dev/null &
until [ -e /tmp/steady ]; do [ ! -e /tmp/ended ] || { cat /tmp/out >&2; exit 1; }; sleep 0.1; done`, "sh", driver(rendered("programs/steady.py", values{"Pods": string(names), "Pause": steadyPause().Seconds()})))
	s.counts = map[string][2]int{}
	s.ask(ctx)
	s.requests = sent(ctx, s.workers)
}

// steadyPause returns the time between two tasks, and between two requests to a worker. make accept has more of both.
func steadyPause() time.Duration {
	if *full {
		return 100 * time.Millisecond
	}
	return 400 * time.Millisecond
}

// answered is what the actors said, and when.
type answered struct {
	at      time.Time
	changed int
}

// ask has a new driver on the second worker ask all actors, which may take until there is a
// head, and compares what they say with what they said before.
func (s *steady) ask(ctx context.Context) answered {
	GinkgoHelper()
	said, err := s.question(ctx, "none")
	Expect(err).NotTo(HaveOccurred())
	return said
}

// question is ask for another goroutine, of another head than the former ones, which Ray knows by
// these IDs. It is never called twice at a time.
func (s *steady) question(ctx context.Context, former string) (answered, error) {
	s.asked++
	out, err := kubernetes.Exec(ctx, client.ObjectKeyFromObject(&s.workers[1]), v1beta1.ContainerRay,
		"python3", "-c", rendered("programs/asking.py", nil), fmt.Sprint("question ", s.asked), former, s.workers[0].Name, s.workers[1].Name)
	if err != nil {
		return answered{}, err
	}
	var reply struct {
		At     float64
		Counts map[string][2]int
		Heads  []string
	}
	if err := decoded(out, &reply); err != nil {
		return answered{}, err
	}
	said := answered{at: time.UnixMicro(int64(reply.At * 1e6))}
	s.heads = reply.Heads
	for _, worker := range s.workers {
		now, before := reply.Counts[worker.Name], s.counts[worker.Name]
		if before != [2]int{} && (now[0] != before[0] || now[1] != before[1]+1) {
			said.changed++
			GinkgoWriter.Printf("the actor on %s was process %d at count %d, and is process %d at %d\n", worker.Name, before[0], before[1], now[0], now[1])
		}
		s.counts[worker.Name] = now
	}
	return said, nil
}

// settle waits until all tasks so far have ended, and adds them and all requests so far to a
// count, with what became of the workers' pods.
func (s *steady) settle(ctx context.Context, memory *live.Memory) {
	GinkgoHelper()
	out := exec(ctx, &s.workers[0], "sh", "-c", `rm -f /tmp/counts; touch /tmp/drain
until [ -e /tmp/counts ]; do [ ! -e /tmp/ended ] || { cat /tmp/out >&2; exit 1; }; sleep 0.1; done; cat /tmp/counts; rm /tmp/drain`)
	var tasks struct {
		Sent, Lost int
		Said       []string
	}
	Expect(json.Unmarshal([]byte(out), &tasks)).To(Succeed(), out)
	memory.Tasks, memory.TasksLost = tasks.Sent, tasks.Lost
	var said []string
	memory.Requests, memory.Failed, said = s.requests.count()
	memory.Said = slices.Concat(tasks.Said, said)
	memory.Touched = s.touched(ctx)
}

// touched counts the worker pods that are not what they were when the work began.
func (s *steady) touched(ctx context.Context) int {
	GinkgoHelper()
	now := map[types.UID]corev1.Pod{}
	pods := s.pods(ctx, v1beta1.RoleWorker)
	for i := range pods {
		now[pods[i].UID] = pods[i]
	}
	touched := max(0, len(pods)-len(s.workers))
	for i := range s.workers {
		pod, there := now[s.workers[i].UID]
		if !there || pod.DeletionTimestamp != nil || restarts(&pod) != restarts(&s.workers[i]) {
			touched++
		}
	}
	return touched
}

// restarts of all containers of a pod.
func restarts(pod *corev1.Pod) (sum int32) {
	for i := range pod.Status.ContainerStatuses {
		sum += pod.Status.ContainerStatuses[i].RestartCount
	}
	return sum
}

// requests are sent one after the other, to all workers at the same time.
type requests struct {
	mutex        sync.Mutex
	sent, failed int
	said         []string
}

// sent waits until all workers answer, and sends requests to them from then on until the
// specs of the container have run.
func sent(ctx context.Context, workers []corev1.Pod) *requests {
	GinkgoHelper()
	r := &requests{}
	for i := range workers {
		eventually(ctx, "Serve on "+workers[i].Name, func(ctx context.Context) error { return hello(ctx, &workers[i]) })
	}
	sending, stop := context.WithCancel(context.Background())
	var senders sync.WaitGroup
	for i := range workers {
		senders.Go(func() { r.send(sending, &workers[i]) })
	}
	DeferCleanup(func() {
		stop()
		senders.Wait()
	})
	return r
}

func (r *requests) send(ctx context.Context, worker *corev1.Pod) {
	every := time.NewTicker(steadyPause())
	defer every.Stop()
	for {
		err := hello(ctx, worker)
		if ctx.Err() != nil {
			return
		}
		r.mutex.Lock()
		r.sent++
		if err != nil {
			r.failed++
			r.said = append(r.said, fmt.Sprintf("%s: %s: %v", time.Now().UTC().Format(time.TimeOnly), worker.Name, err))
		}
		r.mutex.Unlock()
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

// count gives how many requests there were, how many failed, and what the first ones said.
func (r *requests) count() (sent, failed int, said []string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.sent, r.failed, r.said[:min(len(r.said), 5)]
}

// hello sends a request to Serve's proxy on a worker, over a connection of its own.
func hello(ctx context.Context, worker *corev1.Pod) error {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(worker.Status.PodIP, "8000")+"/", nil)
	if err != nil {
		return err
	}
	request.Close = true
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err == nil && (reply.StatusCode != http.StatusOK || string(text) != "hello") {
		err = fmt.Errorf("the answer is %d: %q", reply.StatusCode, text[:min(len(text), 200)])
	}
	return err
}
