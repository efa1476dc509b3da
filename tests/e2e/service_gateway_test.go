package e2e

import (
	"context"
	"errors"
	"fmt"
	osexec "os/exec"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Traefik divides the requests of a service. The World and the API server's tests show the operator's part of that.
var _ = Describe("a service behind a gateway", Label(serviceLabel, localkubeLabel, live.AcceptLabel), func() {
	It("has requests divided in exact percentages, and loses none", func(ctx SpecContext) {
		Expect(kubernetes.InstallGatewayAPI(ctx, root, limit)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(kubernetes.RemoveGatewayAPI(ctx, root, limit)).To(Succeed()) }, NodeTimeout(limit))
		t := serviced(ctx)
		url := startGateway(ctx, t.namespace)
		const step = 10
		s := t.begins(ctx, "echo", "services/own.yaml", values{
			"StepPercent": step, "IntervalSeconds": 15, "DrainSeconds": 30, "RetireAfterSeconds": 20, "Gateway": "public",
		})
		programmed := has(v1beta1.ConditionGatewayProgrammed, metav1.ConditionTrue, "GatewayProgrammed")
		s.becomes(ctx, "be behind its gateway", programmed)
		through := &service{s.NamespacedName, url}
		eventually(ctx, "an answer by way of the gateway", func(ctx context.Context) error {
			_, err := through.ask(ctx, "/")
			return err
		})
		client := asksHere(ctx, url, allSorts...)
		begin := time.Now()
		Expect(client.Phase("upgrade")).To(Succeed())
		s.edit(ctx, tells("2"), shaped)
		divided := s.measures(ctx, through, client, step)
		s.serves(ctx)
		s.becomes(ctx, "be behind its gateway", programmed)
		report, err := client.End()
		Expect(err).NotTo(HaveOccurred())
		divided.Sent, _, divided.Failed = report.Total()
		divided.Gateway, divided.Seconds = "Traefik", time.Since(begin).Seconds()
		GinkgoWriter.Println(divided)
		AddReportEntry(live.ServeGatewayEntry, divided, ReportEntryVisibilityAlways)
		Expect(divided.Broken()).To(BeEmpty(), "%+v", report)
		Expect(through.processes(ctx, "/")).To(HaveEach(HaveSuffix(" 2")))
	}, Label(live.ServeGatewayLabel), SpecTimeout(3*servingTime))
})

// startGateway starts Traefik, makes the Gateway that stands for it, and returns its URL.
func startGateway(ctx context.Context, namespace string) string {
	GinkgoHelper()
	traefik, err := live.StartTraefik(ctx, root)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		said, err := traefik.Stop()
		GinkgoWriter.Println(said)
		Expect(err).NotTo(HaveOccurred())
	})
	class := fmt.Appendf(nil, "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: tests}\nspec: {controllerName: %s}\n", traefik.Controller)
	Expect(kubernetes.Apply(ctx, "", class)).To(Succeed())
	Expect(kubernetes.Apply(ctx, namespace, []byte(rendered("services/gateway.yaml", values{"Port": traefik.Port})))).To(Succeed())
	return traefik.URL
}

// asksHere begins to send requests from this machine, until it is told to end.
func asksHere(ctx context.Context, url string, rates ...string) *live.Client {
	GinkgoHelper()
	program, err := live.BuildClient(ctx, root, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	client, err := live.StartClient("this machine", osexec.Command, program, clientFlags(url, rates)...)
	Expect(err).NotTo(HaveOccurred())
	return client
}

// settledFor is for how long a share has to be told before it is measured: Traefik says what it
// goes by 2 s before it does.
const settledFor = 3 * time.Second

// measures waits until the new version has had a share of the requests for a moment, and counts
// who answers while it has that. It counts those of the load, too: shares of all requests are exact.
func (s *service) measures(ctx context.Context, through *service, client *live.Client, step int) live.Divided {
	GinkgoHelper()
	const asked = 100
	var divided live.Divided
	var since time.Time
	var phase string
	share := func(service *v1beta1.ClusterService) (int, error) {
		if candidate := service.Status.Candidate; candidate != nil && candidate.TrafficPercent > 0 {
			return int(candidate.TrafficPercent), has(v1beta1.ConditionGatewayProgrammed, metav1.ConditionTrue, "")(service)
		}
		return 0, errors.New("the new version has no share yet")
	}
	eventually(ctx, "a share that lasts as long as it is measured", func(ctx context.Context) error {
		before, err := share(s.now(ctx))
		if err != nil {
			return err
		}
		if before != divided.Percent {
			since = time.Now()
		}
		divided = live.Divided{Percent: before, Asked: asked}
		if time.Since(since) < settledFor {
			return fmt.Errorf("it is %d %% since just now", before)
		}
		phase = "share at " + time.Now().Format(time.StampMilli)
		if err := client.Phase(phase); err != nil {
			return err
		}
		for range asked {
			said, err := through.ask(ctx, "/")
			if err != nil {
				return err
			}
			if said.Version == "2" {
				divided.New++
			}
		}
		if err := client.Phase("after " + phase); err != nil {
			return err
		}
		after, err := share(s.now(ctx))
		if err == nil && after != before {
			err = fmt.Errorf("it was %d %%, and is %d %%", before, after)
		}
		return err
	})
	Expect(divided.Percent%step).To(Equal(0), "steps are of %d %%", step)
	report, err := client.Report()
	Expect(err).NotTo(HaveOccurred())
	for _, sort := range []loadgen.Sort{loadgen.Fresh, loadgen.Kept} {
		count := phaseOf(report, phase).Sorts[sort]
		divided.Asked, divided.New = divided.Asked+count.Answered, divided.New+count.Versions["2"]
	}
	return divided
}
