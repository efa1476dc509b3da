package e2e

import (
	"context"
	"flag"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// What make accept sees more of.
var (
	rounds   = flag.Int("rounds", 1, "how often to do what may come out one way or another")
	full     = flag.Bool("full", false, "wait for what takes minutes")
	neverFor = flag.Duration("failing", 30*time.Minute, "for how long workers that never start are counted")
	update   = flag.Bool("update", false, "write the golden file")
	judge    = flag.Bool("judge", false, "fail where something takes longer than it should, on a machine that has nothing else to do")
)

// takes fails where something took longer than it should, if durations are judged.
func takes(begin time.Time, most time.Duration, what string) {
	GinkgoHelper()
	if *judge {
		Expect(time.Since(begin)).To(BeNumerically("<", most), what)
	}
}

// learned is after how long nodes should know what changed, and more where durations are not judged.
func learned(should time.Duration) time.Duration {
	if *judge {
		return should
	}
	return 3 * should
}

// Labels of specs. Each lane of make test has a local Kubernetes of its own, and specs with one of the
// first two run in the second lane.
const (
	serviceLabel, storeLabel = "service", "store"
	// localkubeLabel is of what needs a local Kubernetes on this machine: nodes that can be cut off, fake
	// devices, processes that take signals, addresses of pods and Services, shared volumes, an audit log.
	localkubeLabel = "localkube"
	// noLocalkube is what to do without one.
	noLocalkube = "LOCALKUBE and LOCALKUBE_NAME name no local Kubernetes: run make e2e, or leave out what has the label " + localkubeLabel
	// contractLabel is of what holds the fake head against a real one.
	contractLabel = "contract"
)

// made makes a fresh namespace with the cluster of a file of testdata, and waits until it is Ready.
func made(ctx context.Context, name, file string, v values) *env {
	GinkgoHelper()
	e := &env{types.NamespacedName{Namespace: fresh(ctx), Name: name}}
	begin := time.Now()
	e.apply(ctx, file, v)
	e.ready(ctx)
	told("apply to Ready", begin)
	return e
}

// apply applies the cluster of a file of testdata.
func (e *env) apply(ctx context.Context, file string, v values) {
	GinkgoHelper()
	Expect(kubernetes.Apply(ctx, e.Namespace, []byte(rendered(file, v.and(values{"Name": e.Name}))))).To(Succeed())
}

// edit changes the spec.
func (e *env) edit(ctx context.Context, change func(*v1beta1.ComputeClusterSpec)) {
	GinkgoHelper()
	Expect(kubernetes.Edit(ctx, e.NamespacedName, change)).To(Succeed())
}

// dial prepares to ask the head as the operator does.
func (e *env) dial(ctx context.Context) *headclient.Client {
	GinkgoHelper()
	head := e.head(ctx)
	return dial(forward(ctx, &head, gcs), e.token(ctx))
}

// gcs is the port of the head's control service, and dashboard that of its job API.
const gcs, dashboard = 6379, 8265

func dial(address, token string) *headclient.Client {
	GinkgoHelper()
	client, err := headclient.Dial(address, headclient.Options{Token: func(context.Context) (string, error) { return token, nil }})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(client.Close)
	return client
}

// forward leads to a port of a pod past the NetworkPolicy around it.
func forward(ctx context.Context, pod *corev1.Pod, port int) string {
	GinkgoHelper()
	address, stop, err := kubernetes.Forward(ctx, client.ObjectKeyFromObject(pod), port)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(stop)
	return address
}

// work is a Ray program that runs in the head meanwhile.
type work struct {
	done chan struct{}
	out  string
	err  error
	pod  corev1.Pod
}

// begin starts a program in the head.
func (e *env) begin(ctx context.Context, program string) *work {
	GinkgoHelper()
	head := e.head(ctx)
	w := &work{done: make(chan struct{}), pod: head}
	go func() {
		defer close(w.done)
		w.out, w.err = kubernetes.Exec(ctx, types.NamespacedName{Namespace: head.Namespace, Name: head.Name}, v1beta1.ContainerRay, "python3", "-c", driver(program))
	}()
	return w
}

// end waits for the program's end and decodes its result.
func (w *work) end(ctx context.Context, into any) {
	GinkgoHelper()
	Eventually(ctx, w.done, limit).Should(BeClosed())
	Expect(w.err).NotTo(HaveOccurred(), w.out)
	decode(w.out, into)
}

// reaches waits until the program, or a task of it, makes a file in a pod, and removes it.
// It fails at once when the program ends before.
func (w *work) reaches(ctx context.Context, pod *corev1.Pod, file string) {
	GinkgoHelper()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-w.done:
			stop()
		case <-waiting.Done():
		}
	}()
	_, err := kubernetes.Exec(waiting, client.ObjectKeyFromObject(pod), v1beta1.ContainerRay, "sh", "-c", "until rm "+file+" 2>/dev/null; do sleep 0.1; done")
	if err != nil && ctx.Err() == nil {
		<-w.done
		Fail(fmt.Sprintf("the program ended before it made %s: %v: %s", file, w.err, w.out))
	}
	Expect(err).NotTo(HaveOccurred())
}

// busy is a worker with a task that nothing may run twice.
type busy struct {
	*work
	worker corev1.Pod
}

// occupy runs a task on a worker until it is released. It waits until the task itself
// runs and Ray says so: Ray calls a node busy before that, while it starts a process for
// the task, and a drain then takes the task away; and what it says may be a second old.
func (e *env) occupy(ctx context.Context, worker *corev1.Pod) *busy {
	GinkgoHelper()
	head := e.dial(ctx)
	id := e.node(ctx, head, worker.UID).ID
	b := &busy{worker: *worker, work: e.begin(ctx, rendered("programs/hold.py", values{"Node": id}))}
	b.reaches(ctx, worker, "/tmp/held")
	e.becomes(ctx, head, worker, headclient.Running)
	return b
}

// release lets the task end, and gives what the program got of it.
func (b *busy) release(ctx context.Context) string {
	GinkgoHelper()
	exec(ctx, &b.worker, "touch", "/tmp/release")
	var result string
	b.end(ctx, &result)
	return result
}

// node is what Ray says of the node in a pod.
func (e *env) node(ctx context.Context, client *headclient.Client, pod types.UID) headclient.Node {
	GinkgoHelper()
	nodes, err := client.Nodes(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, node := range nodes {
		if node.Instance == string(pod) {
			return node
		}
	}
	Fail(fmt.Sprintf("Ray does not list the node of pod %s", pod))
	return headclient.Node{}
}

// becomes waits until Ray says that the node in a pod is in a state.
func (e *env) becomes(ctx context.Context, head *headclient.Client, pod *corev1.Pod, state headclient.NodeState) {
	GinkgoHelper()
	eventually(ctx, fmt.Sprintf("the node of %s to be %s", pod.Name, state), func(context.Context) error {
		if now := e.node(ctx, head, pod.UID).State; now != state {
			return fmt.Errorf("it is %s", now)
		}
		return nil
	})
}

// gone waits until a pod is gone, however it goes.
func gone(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	eventually(ctx, pod.Name+" to be gone", func(ctx context.Context) error {
		var found corev1.Pod
		err := kubernetes.Get(ctx, client.ObjectKeyFromObject(pod), &found)
		if err == nil && found.UID == pod.UID {
			return fmt.Errorf("it is there, deleted %v", found.DeletionTimestamp)
		}
		return client.IgnoreNotFound(err)
	})
}
