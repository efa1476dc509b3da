package e2e

import (
	"context"
	"errors"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// A service with a worker on each node, one of which is cut off. Who asks is on the other one.
var _ = Describe("a service with a node that is cut off", Ordered, Label(serviceLabel, localkubeLabel), func() {
	It("loses what that node has, and nothing once it is known", func(ctx SpecContext) {
		near, lost := nodes(ctx)[0].Name, nodes(ctx)[1].Name
		aside(ctx, lost)
		t := serviced(ctx)
		s := t.begins(ctx, "split", "services/split.yaml", values{"Near": near, "Far": lost})
		cluster := s.now(ctx).Status.Active.ClusterName
		pids := s.processes(ctx, "/")
		networks, err := live.Networks(ctx)
		Expect(err).NotTo(HaveOccurred())
		clients := s.crowdOn(ctx, map[string]string{near: networks[near]}, quick...)
		clients.phase("calm")
		Consistently(ctx, func(ctx context.Context) error { return live.IsServing(s.now(ctx)) }, "5s", "1s").Should(Succeed())

		clients.phase("cut")
		begin := time.Now()
		localkube(ctx, "partition", lost)
		healed := false
		DeferCleanup(func(ctx SpecContext) {
			if !healed {
				localkube(ctx, "heal", lost)
			}
		}, NodeTimeout(limit))
		s.becomes(ctx, "have one endpoint", endpoints(1))
		told(live.ServeCutEntry, begin)
		// Kube-proxies learn it.
		Consistently(ctx, func(ctx context.Context) error { return endpoints(1)(s.now(ctx)) }, learned(2*time.Second), "1s").Should(Succeed())
		clients.phase("without")
		Consistently(ctx, func(ctx context.Context) error { return endpoints(1)(s.now(ctx)) }, "12s", "1s").Should(Succeed())
		clients.phase("healing")
		localkube(ctx, "heal", lost)
		healed = true
		s.becomes(ctx, "have two endpoints again", endpoints(2))
		s.serves(ctx)
		clients.phase("after")

		sent, failed, _ := counted(clients.settled(ctx, "calm", "cut"))
		GinkgoWriter.Printf("%d of %d requests failed that were sent before nodes knew it\n", failed, sent)
		Expect(failed).To(BeNumerically(">", 0), "the node was cut off")
		for _, phase := range []string{"without", "healing"} {
			sent, failed, said := counted(clients.settled(ctx, "calm", phase))
			Expect(sent).To(BeNumerically(">", 0))
			Expect(failed).To(BeZero(), "%s: %+v", phase, said)
		}
		Expect(s.now(ctx).Status.Active.ClusterName).To(Equal(cluster))
		Expect(slices.ContainsFunc(s.processes(ctx, "/"), func(p string) bool { return slices.Contains(pids, p) })).To(BeTrue(), "the other worker went on")
	}, Label(live.ServeCutLabel, live.AcceptLabel), SpecTimeout(2*servingTime))
})

// endpoints looks for so many pods that take requests.
func endpoints(n int) func(*v1beta1.ClusterService) error {
	return func(service *v1beta1.ClusterService) error {
		if active := service.Status.Active; active == nil || int(active.ReadyEndpoints) != n {
			return errors.New("it has not")
		}
		return nil
	}
}
