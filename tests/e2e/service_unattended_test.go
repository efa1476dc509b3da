package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Serve ends the proxy of a worker that its last replica has left: after usualDrain, or after longDrain where they keep their proxies longer.
const (
	usualDrain = 30 * time.Second
	longDrain  = 100 * time.Second
)

// onePerNode keeps replicas apart.
var onePerNode = application(func(app map[string]any) {
	app["deployments"].([]any)[0].(map[string]any)["max_replicas_per_node"] = 1
})

// hears waits until the proxy of one of some workers says certain words.
func hears(ctx context.Context, words string, workers ...corev1.Pod) {
	GinkgoHelper()
	eventually(ctx, "a proxy to say "+words, func(ctx context.Context) error {
		said := make([]string, 0, len(workers))
		for _, worker := range workers {
			text, err := kubernetes.Exec(ctx, client.ObjectKeyFromObject(&worker), v1beta1.ContainerRay, "python3", "-c", rendered("programs/ask-proxy.py", nil))
			if err != nil {
				return err
			}
			if strings.Contains(text, words) {
				return nil
			}
			said = append(said, strings.TrimSpace(text))
		}
		return fmt.Errorf("they say %q", said)
	})
}

// Nobody takes a worker out of the service's address for its proxy while no operator runs.
var _ = Describe("a service whose operator is away", Label(serviceLabel, localkubeLabel, live.AcceptLabel), func() {
	It("loses no request where Serve scales down meanwhile and proxies stay for longer", func(ctx SpecContext) {
		s := serviced(ctx).begins(ctx, "echo", "services/own.yaml", values{"Apart": true, "ProxyDrainSeconds": longDrain.Seconds()})
		busy, clients := s.crowd(ctx, "-long", "1.5"), s.crowd(ctx, "-fresh", "2", "-kept", "1")
		s.edit(ctx, scaledBetween(1, 2, "1"), onePerNode)
		before := s.serves(ctx)
		workers := s.alone(ctx).workers(ctx, 2)
		hears(ctx, "success", workers[0])
		hears(ctx, "success", workers[1])

		clients.phase("calm")
		scaleOperator(ctx, 0)
		DeferCleanup(func(ctx SpecContext) { scaleOperator(ctx, 1) }, NodeTimeout(limit))
		clients.phase("away")
		_, err := busy.end()
		Expect(err).NotTo(HaveOccurred())
		hears(ctx, "drained", workers...)
		Consistently(ctx, func(ctx context.Context) error {
			_, err := s.ask(ctx, "/")
			return err
		}, usualDrain*3/2, "1s").Should(Succeed())
		hears(ctx, "drained", workers...)
		scaleOperator(ctx, 1)
		after := s.becomes(ctx, "lead to the other worker alone", func(service *v1beta1.ClusterService) error {
			if ready := service.Status.Active.ReadyEndpoints; ready != 1 {
				return fmt.Errorf("%d take requests", ready)
			}
			return has(v1beta1.ConditionReady, metav1.ConditionTrue, "")(service)
		})
		clients.phase("after")
		sent, failed, failures := counted(clients.settled(ctx, "calm", "away"))
		GinkgoWriter.Printf("%d of %d requests failed\n", failed, sent)
		Expect(failed).To(BeZero(), "%v", failures)
		Expect(sent).To(BeNumerically(">", 0))
		Expect(after.Status.Active.Revision).To(Equal(before.Status.Active.Revision))
		Expect(after.Status.Active.ClusterName).To(Equal(before.Status.Active.ClusterName))
	}, Label(live.ServeUnattendedLabel), SpecTimeout(3*servingTime))
})
