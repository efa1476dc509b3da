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
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// A service behind a gateway: in full counts one that others wrote, else a small one of these
// tests.
var _ = Describe("a service behind a gateway", Label(serviceLabel, localkubeLabel), func() {
	It("has requests divided in exact percentages, and loses none", func(ctx SpecContext) {
		Expect(kubernetes.InstallGatewayAPI(ctx, root, limit)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(kubernetes.RemoveGatewayAPI(ctx, root, limit)).To(Succeed()) }, NodeTimeout(limit))
		t := serviced(ctx)
		door := opens(ctx, t.namespace, "echo")
		step, terms, sorts := 40, "intervalSeconds: 10, drainSeconds: 12, retireAfterSeconds: 5", quick
		if *full {
			step, terms, sorts = 10, "intervalSeconds: 15, drainSeconds: 30, retireAfterSeconds: 20", allSorts
		}
		s := t.begins(ctx, "echo", echoing("echo", "/")+ownCluster+fmt.Sprintf(
			"upgrade: {stepPercent: %d, %s, gateway: {parentRef: {name: public}}}\n", step, terms))
		programmed := has(v1alpha1.ConditionGatewayProgrammed, metav1.ConditionTrue, "GatewayProgrammed")
		s.becomes(ctx, "be behind its gateway", programmed)
		through := &service{s.NamespacedName, door.url}
		eventually(ctx, "an answer by way of the gateway", func(ctx context.Context) error {
			_, err := through.ask(ctx, "/")
			return err
		})
		client := asksHere(ctx, door.url, sorts...)
		begin := time.Now()
		Expect(client.Phase("upgrade")).To(Succeed())
		s.edit(ctx, tells("2"), shaped)
		divided := s.measures(ctx, through, client, step)
		s.serves(ctx)
		s.becomes(ctx, "be behind its gateway", programmed)
		report, err := client.End()
		Expect(err).NotTo(HaveOccurred())
		divided.Sent, _, divided.Failed = report.Total()
		divided.Gateway, divided.Seconds = door.name, time.Since(begin).Seconds()
		GinkgoWriter.Println(divided)
		AddReportEntry(live.ServeGatewayEntry, divided, ReportEntryVisibilityAlways)
		Expect(divided.Broken()).To(BeEmpty(), "%+v", report)
		Expect(through.processes(ctx, "/")).To(HaveEach(HaveSuffix(" 2")))
	}, Label(live.ServeGatewayLabel), SpecTimeout(3*servingTime))
})

// entrance is where a gateway answers, and what it is called.
type entrance struct{ name, url string }

// opens starts a gateway for a service's route, and makes the Gateway that stands for it.
func opens(ctx context.Context, namespace, service string) entrance {
	GinkgoHelper()
	door, controller, port := entrance{name: "the tests' own"}, "heliostat.dev/tests", 80
	if *full {
		traefik, err := live.StartTraefik(ctx, root)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() {
			said, err := traefik.Stop()
			GinkgoWriter.Println(said)
			Expect(err).NotTo(HaveOccurred())
		})
		door, controller, port = entrance{"Traefik", traefik.URL}, traefik.Controller, traefik.Port
	} else {
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		DeferCleanup(stop)
		divider, err := kubernetes.Divide(running, types.NamespacedName{Namespace: namespace, Name: service})
		Expect(err).NotTo(HaveOccurred())
		door.url = divider.URL
	}
	class := fmt.Appendf(nil, "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: tests}\nspec: {controllerName: %s}\n", controller)
	Expect(kubernetes.Apply(ctx, "", class)).To(Succeed())
	gateway := fmt.Appendf(nil, "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: public}\n"+
		"spec: {gatewayClassName: tests, listeners: [{name: http, protocol: HTTP, port: %d}]}\n", port)
	Expect(kubernetes.Apply(ctx, namespace, gateway)).To(Succeed())
	return door
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
	share := func(service *v1alpha1.ClusterService) (int, error) {
		if candidate := service.Status.Candidate; candidate != nil && candidate.TrafficPercent > 0 {
			return int(candidate.TrafficPercent), has(v1alpha1.ConditionGatewayProgrammed, metav1.ConditionTrue, "")(service)
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
