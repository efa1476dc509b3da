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

// memoryOf is a cluster whose workers have room for the work. The measurement asks from
// outside of Kubernetes.
const memoryOf = smallHead + `
network: {allowFrom: [{from: [{ipBlock: {cidr: 0.0.0.0/0}}], ports: [GCS, Serve]}]}
workerGroups:
- name: cpu
  replicas: 2
  size: {cpu: 500m, memory: 2Gi}
`

// steadily makes a cluster with a control store, and has it work.
func steadily(ctx context.Context, e *env, store, spec string) *steady {
	GinkgoHelper()
	begin := time.Now()
	e.apply(ctx, spec)
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
until [ -e /tmp/steady ]; do [ ! -e /tmp/ended ] || { cat /tmp/out >&2; exit 1; }; sleep 0.1; done`, "sh", driver(fmt.Sprintf(working, names, steadyPause().Seconds())))
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

// working is a driver without end. It waits for all tasks when there is a file drain.
const working = `
import time
from ray import serve
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as on
@ray.remote(num_cpus=0.1)
class Counter:
    def __init__(self):
        self.last, self.count = None, 0
    def next(self, asked):
        if asked != self.last:
            self.last, self.count = asked, self.count + 1
        return [os.getpid(), self.count]
ids = {node["NodeManagerHostname"]: node["NodeID"] for node in ray.nodes() if node["Alive"]}
for pod in json.loads('%s'):
    counter = Counter.options(name=pod, namespace="steady", lifetime="detached", scheduling_strategy=on(node_id=ids[pod], soft=False)).remote()
    ray.get(counter.next.remote("first"))
@serve.deployment(num_replicas=2, max_replicas_per_node=1, ray_actor_options={"num_cpus": 0.1})
class Hello:
    def __call__(self, request):
        return "hello"
serve.start(proxy_location="EveryNode", http_options={"host": "0.0.0.0"})
serve.run(Hello.bind(), name="hello")
pause = %g
@ray.remote(num_cpus=0.3, max_retries=0)
def task(number):
    time.sleep(0.05)
    return number
sent, lost, said, waiting = 0, 0, [], {}
while True:
    drain = os.path.exists("/tmp/drain")
    if not drain and len(waiting) < 20:
        waiting[task.remote(sent)] = sent
        sent += 1
        time.sleep(pause)
    for done in ray.wait(list(waiting), num_returns=1, timeout=0.1)[0] if waiting else []:
        number = waiting.pop(done)
        try:
            assert ray.get(done) == number
        except Exception as error:
            lost += 1
            said = (said + [repr(error)[:500]])[:5]
    if sent == 4 and not os.path.exists("/tmp/steady"):
        os.mknod("/tmp/steady")
    if drain and not waiting:
        with open("/tmp/counts.new", "w") as file:
            json.dump({"Sent": sent, "Lost": lost, "Said": said}, file)
        os.rename("/tmp/counts.new", "/tmp/counts")
        while os.path.exists("/tmp/drain"):
            time.sleep(0.05)
result = 0`

// asking is a program that asks the actors a numbered question as soon as there is a head
// that knows them, and tells when the first one had answered. It is a driver of its own. The
// head of a name that it is given does not count: a pod that was deleted by force goes on for
// about a second, and answers.
const asking = `
import json, os, ray, socket, sys, time
host, port = os.environ["RAY_ADDRESS"].rsplit(":", 1)
said, until = None, time.time() + 150
while time.time() < until:
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
        ray.init(log_to_driver=False)
        heads = [node["NodeID"] for node in ray.nodes() if node["Alive"] and "node:__internal_head__" in node["Resources"]]
        if set(heads) <= set(sys.argv[2].split(",")):
            raise RuntimeError("there is no other head")
        actors = {name: ray.get_actor(name, namespace="steady") for name in sys.argv[3:]}
        counts, at = {}, None
        for name, actor in actors.items():
            counts[name] = ray.get(actor.next.remote(sys.argv[1]), timeout=30)
            at = at or time.time()
        print("ANSWER " + json.dumps({"At": at, "Counts": counts, "Heads": heads}))
        break
    except Exception as error:
        said = error
        ray.shutdown()
        time.sleep(0.05)
else:
    sys.exit(repr(said))`

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
		"python3", "-c", asking, fmt.Sprint("question ", s.asked), former, s.workers[0].Name, s.workers[1].Name)
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
