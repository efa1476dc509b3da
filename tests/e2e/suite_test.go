package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	_ "github.com/heliostat-dev/heliostat/tests/internal/specorder" // orders the specs as make test plans
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	root    = "../.."
	samples = root + "/ray-operator/config/samples/"
	// limit is for anything that has to happen; only hanging is longer. A start that waits for that of
	// another lane is within it.
	limit = 4 * time.Minute
)

var kubernetes *live.Cluster

// canaries are the operator's secrets, and what is said while the specs run.
var canaries *live.Canaries

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "real Ray on a real Kubernetes")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(logr.Discard()) // the command line runs in this process too
	var err error
	kubernetes, err = live.Open(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(live.Install(ctx, root, withServer...)).To(Succeed())
	canaries = kubernetes.Canaries(context.WithoutCancel(ctx))
	cpu.report()
}, NodeTimeout(limit))

// env is a namespace with a cluster in it.
type env struct{ types.NamespacedName }

// given makes a fresh namespace with the cluster of a sample, and waits until it is Ready.
func given(ctx context.Context, sample, name string) *env {
	GinkgoHelper()
	e := &env{types.NamespacedName{Namespace: fresh(ctx), Name: name}}
	text, err := os.ReadFile(samples + sample)
	Expect(err).NotTo(HaveOccurred())
	begin := time.Now()
	Expect(kubernetes.Apply(ctx, e.Namespace, text)).To(Succeed())
	e.ready(ctx)
	told("apply to Ready", begin)
	return e
}

// told adds to the report how long something took.
func told(what string, begin time.Time) {
	GinkgoWriter.Printf("%s: %.1f s\n", what, time.Since(begin).Seconds())
	AddReportEntry(what, fmt.Sprintf("%.1f s", time.Since(begin).Seconds()), ReportEntryVisibilityAlways)
}

// ready waits until the cluster is Ready for the spec it has.
func (e *env) ready(ctx context.Context) *v1beta1.ComputeCluster {
	GinkgoHelper()
	cluster, err := kubernetes.UntilReady(ctx, e.NamespacedName, limit)
	Expect(err).NotTo(HaveOccurred())
	return cluster
}

// eventually waits until a look gives no error.
func eventually(ctx context.Context, what string, look func(context.Context) error) {
	GinkgoHelper()
	Expect(live.Until(ctx, limit, what, look)).To(Succeed())
}

func (e *env) pods(ctx context.Context, role string) []corev1.Pod {
	GinkgoHelper()
	pods, err := kubernetes.PodsOf(ctx, e.NamespacedName, role)
	Expect(err).NotTo(HaveOccurred())
	return pods
}

func (e *env) head(ctx context.Context) corev1.Pod {
	GinkgoHelper()
	heads := e.pods(ctx, v1beta1.RoleHead)
	Expect(heads).To(HaveLen(1))
	return heads[0]
}

// workers waits until there are exactly as many workers and none that is leaving.
func (e *env) workers(ctx context.Context, n int) []corev1.Pod {
	GinkgoHelper()
	var pods []corev1.Pod
	eventually(ctx, fmt.Sprintf("%d workers", n), func(ctx context.Context) (err error) {
		pods, err = kubernetes.PodsOf(ctx, e.NamespacedName, v1beta1.RoleWorker)
		if err == nil && len(pods) != n {
			err = fmt.Errorf("there are %d", len(pods))
		}
		return err
	})
	return pods
}

func (e *env) scale(ctx context.Context, replicas int32) {
	GinkgoHelper()
	Expect(kubernetes.Edit(ctx, e.NamespacedName, func(spec *v1beta1.ComputeClusterSpec) {
		spec.WorkerGroups[0].Replicas = &replicas
	})).To(Succeed())
}

// kill deletes a pod at once, as when its node is lost and given up.
func kill(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	Expect(kubernetes.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
}

// exec runs a command in the Ray container of a pod.
func exec(ctx context.Context, pod *corev1.Pod, command ...string) string {
	GinkgoHelper()
	out, err := kubernetes.Exec(ctx, client.ObjectKeyFromObject(pod), v1beta1.ContainerRay, command...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// answer marks the line that a program given to ray prints its result in.
const answer = "ANSWER "

// ray runs a Python program as a driver in a pod and decodes the JSON value that it
// leaves in the variable result.
func ray(ctx context.Context, pod *corev1.Pod, program string, into any) {
	GinkgoHelper()
	decode(exec(ctx, pod, "python3", "-c", driver(program)), into)
}

// driver is a program with what connects it to Ray, and what prints its result.
//
// It leaves Ray by itself and ends at once then: Ray's thread of metrics may crash while Python takes the process apart.
func driver(program string) string {
	return "import json, os, ray, socket\nray.init(log_to_driver=False)\n" + program +
		"\nprint('" + answer + "' + json.dumps(result), flush=True)\nray.shutdown()\nos._exit(0)"
}

func decode(out string, into any) {
	GinkgoHelper()
	Expect(decoded(out, into)).To(Succeed())
}

// decoded reads the answer in what a program printed.
func decoded(out string, into any) error {
	_, text, found := strings.Cut(out, answer)
	if !found {
		return fmt.Errorf("the program gave no answer: %s", out)
	}
	if err := json.Unmarshal([]byte(strings.SplitN(text, "\n", 2)[0]), into); err != nil {
		return fmt.Errorf("read the program's answer: %w: %s", err, out)
	}
	return nil
}

// token is the cluster's.
func (e *env) token(ctx context.Context) string {
	GinkgoHelper()
	var secret corev1.Secret
	Expect(kubernetes.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: e.Name + "-token"}, &secret)).To(Succeed())
	return string(secret.Data[v1beta1.TokenKey])
}

// listed waits until the head lists exactly as many live nodes.
func (e *env) listed(ctx context.Context, nodes int) {
	GinkgoHelper()
	head := e.dial(ctx)
	eventually(ctx, fmt.Sprintf("Ray to list %d nodes", nodes), func(ctx context.Context) error {
		state, err := head.State(ctx)
		alive := aliveNodes(state.Nodes)
		if err == nil && len(alive) != nodes {
			err = fmt.Errorf("it lists %d", len(alive))
		}
		return err
	})
}

// aliveNodes returns the nodes that Ray does not hold for dead.
func aliveNodes(nodes []headclient.Node) []headclient.Node {
	return slices.DeleteFunc(nodes, func(node headclient.Node) bool { return node.State == headclient.Dead })
}

// uids of pods, to report whether they are the same ones later.
func uids(pods []corev1.Pod) []types.UID {
	all := make([]types.UID, 0, len(pods))
	for i := range pods {
		all = append(all, pods[i].UID)
	}
	return all
}

var _ = JustAfterEach(func(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		report(ctx)
	}
})

// report prints what helps to find the cause of a failure.
func report(ctx context.Context) {
	const lines = 15
	GinkgoWriter.Print(live.ControlPlaneTrouble(lines))
	var clusters v1beta1.ComputeClusterList
	var pods corev1.PodList
	if err := kubernetes.List(ctx, &clusters); err != nil {
		GinkgoWriter.Println(err)
	}
	for i := range clusters.Items {
		text, _ := json.MarshalIndent(clusters.Items[i].Status, "", " ") // what cannot be printed is left out of a report
		GinkgoWriter.Printf("%s: %s\n", clusters.Items[i].Name, text)
	}
	if err := kubernetes.List(ctx, &pods); err != nil {
		GinkgoWriter.Println(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		GinkgoWriter.Printf("pod %s/%s on %s: %s %+v\n", pod.Namespace, pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.ContainerStatuses)
		tail := int64(40)
		log, err := kubernetes.Kubernetes.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: &tail}).DoRaw(ctx)
		GinkgoWriter.Printf("%s\n%v\n", log, err)
		if !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 }) {
			continue
		}
		former := &corev1.PodLogOptions{TailLines: &tail, Previous: true}
		log, err = kubernetes.Kubernetes.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, former).DoRaw(ctx)
		GinkgoWriter.Printf("before it was started again:\n%s\n%v\n", log, err)
	}
}
