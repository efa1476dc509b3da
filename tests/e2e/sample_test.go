package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// The cluster of the ten-line sample through what a user does with it, what happens to
// it, and its end. One cluster serves all specs, as a start takes a quarter of a minute.
var _ = Describe("the sample", Ordered, func() {
	var demo *env

	BeforeAll(func(ctx SpecContext) {
		demo = given(ctx, "cluster.yaml", "demo")
	}, NodeTimeout(limit))

	// Ready never comes before Ray lists the nodes, so this looks once and does not wait.
	It("is Ready only when Ray lists all of its nodes", func(ctx SpecContext) {
		state, err := demo.dial(ctx).State(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(aliveNodes(state.Nodes)).To(HaveLen(3))
	}, SpecTimeout(limit))

	It("runs a program that goes in through ray job submit", func(ctx SpecContext) {
		program, err := os.ReadFile(root + "/hack/demo/program.py")
		Expect(err).NotTo(HaveOccurred())
		head := demo.head(ctx)
		exec(ctx, &head, "python3", "-c", "import sys; open('/tmp/program.py', 'w').write(sys.argv[1])", string(program))
		begin := time.Now()
		out := exec(ctx, &head, "ray", "job", "submit", "--address", "http://localhost:8265", "--", "python3", "/tmp/program.py")
		told("ray job submit", begin)
		for _, worker := range demo.workers(ctx, 2) {
			Expect(out).To(ContainSubstring(worker.Name))
		}
		Expect(out).To(ContainSubstring("499999500000"))
		Expect(out).To(MatchRegexp(`(?i)job .* succeeded`))
	}, SpecTimeout(limit))

	It("answers only to its token", func(ctx SpecContext) {
		head := demo.head(ctx)
		address := "http://" + forward(ctx, &head, dashboard)
		Expect(get(ctx, address+"/api/jobs/", "")).To(Equal(http.StatusUnauthorized))
		Expect(get(ctx, address+"/api/jobs/", "wrong")).To(Equal(http.StatusForbidden))
		Expect(get(ctx, address+"/api/jobs/", demo.token(ctx))).To(Equal(http.StatusOK))
		Expect(get(ctx, address+"/api/gcs_healthz", "")).To(Equal(http.StatusOK), "the kubelet has no token")

		address = forward(ctx, &head, gcs)
		for token, kind := range map[string]headclient.Kind{"": headclient.Unauthenticated, "wrong": headclient.Unauthenticated, demo.token(ctx): ""} {
			_, err := dial(address, token).State(ctx)
			Expect(headclient.KindOf(err)).To(Equal(kind))
		}
	}, SpecTimeout(limit))

	It("begins anew when the head's container dies in its pod", func(ctx SpecContext) {
		head, former := demo.head(ctx), demo.pods(ctx, "")
		// The control service: Ray's start command, which is process 1, ends with it.
		end(ctx, &head, "gcs_server")
		begin := time.Now()
		demo.recovered(ctx, former)
		told("head's container killed to Ready again", begin)
	}, SpecTimeout(limit))

	It("leaves nothing when it is deleted", func(ctx SpecContext) {
		begin := time.Now()
		Expect(kubernetes.Delete(ctx, demo.ready(ctx))).To(Succeed())
		Expect(kubernetes.UntilGone(ctx, demo.NamespacedName, limit)).To(Succeed())
		told("delete to nothing left", begin)
	}, SpecTimeout(limit))
})

// squares is a program whose result is 285.
const squares = "f = ray.remote(lambda x: x * x)\nresult = sum(ray.get([f.remote(i) for i in range(10)]))"

// recovered waits until the cluster is Ready in its second epoch, with none of its former pods.
func (e *env) recovered(ctx context.Context, former []corev1.Pod) {
	GinkgoHelper()
	eventually(ctx, "the second epoch to be Ready", func(ctx context.Context) error {
		cluster, err := kubernetes.Find(ctx, e.NamespacedName)
		if err == nil && cluster.Status.Epoch != 2 {
			err = fmt.Errorf("it is epoch %d", cluster.Status.Epoch)
		}
		if err != nil {
			return err
		}
		return live.IsReady(cluster)
	})
	e.workers(ctx, 2)
	e.listed(ctx, 3)
	for _, uid := range uids(former) {
		Expect(uids(e.pods(ctx, ""))).NotTo(ContainElement(uid))
	}
}

// end kills a process of Ray's in a pod.
func end(ctx context.Context, pod *corev1.Pod, program string) {
	GinkgoHelper()
	exec(ctx, pod, "python3", "-c", `import os, signal, sys
for pid in filter(str.isdigit, os.listdir("/proc")):
    if os.path.basename(open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")[0]) == sys.argv[1].encode():
        os.kill(int(pid), signal.SIGKILL)`, program)
}

// get asks for a page and gives the answer's code.
func get(ctx context.Context, url, token string) int {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.Body.Close()).To(Succeed())
	return answer.StatusCode
}
