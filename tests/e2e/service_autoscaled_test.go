package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// scaledBetween has Serve scale the echo by its load, soon, and has it tell a version.
func scaledBetween(least, most int, version string) func(*v1beta1.ClusterServiceSpec) error {
	return application(func(app map[string]any) {
		app["deployments"] = []any{map[string]any{
			"name": "Echo", "num_replicas": "auto", "max_replicas_per_node": most, "user_config": map[string]any{"version": version},
			"graceful_shutdown_timeout_s": 10, "autoscaling_config": map[string]any{
				"min_replicas": least, "max_replicas": most, "target_ongoing_requests": 1, "look_back_period_s": 11,
				"upscale_delay_s": 3, "downscale_delay_s": 10,
			},
		}}
	})
}

// replicasOf is how many replicas of a version's only application run.
func replicasOf(version *v1beta1.ServiceVersion) int {
	if version == nil || len(version.Applications) == 0 {
		return 0
	}
	return int(version.Applications[0].RunningReplicas)
}

// changesOfScaled are made in turn: of the code, the image and the shape. The code changes on the same cluster.
var changesOfScaled = []func(*v1beta1.ClusterServiceSpec) error{toOtherCode, toOtherImage, shaped}

// scaledUpgrade goes to another version of a service that Serve scales, once three replicas run under its load.
func scaledUpgrade(ctx context.Context, s *service, clients *crowd, round int) {
	GinkgoHelper()
	had := 0
	s.becomes(ctx, "run three replicas", func(service *v1beta1.ClusterService) error {
		if had = replicasOf(service.Status.Active); had < 3 {
			return fmt.Errorf("%d run", had)
		}
		return nil
	})
	number := round % len(changesOfScaled)
	u := upgrade{service: s, clients: clients, round: round, change: change{
		name: live.ChangeScaled, surges: number > 0, make: func(ctx context.Context, s *service, _, next string) string {
			s.edit(ctx, scaledBetween(1, 4, next), changesOfScaled[number])
			return next
		},
	}}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	turned := watch(watching, s.Namespace, &v1beta1.ClusterServiceList{}, func(object client.Object) bool {
		service, ok := object.(*v1beta1.ClusterService)
		return ok && service.Name == s.Name && service.Status.Candidate != nil && service.Status.Candidate.TrafficPercent > 0
	})
	u.losesNone(ctx, fmt.Sprint(2+round))
	Expect(s.now(ctx).Status.LastUpgrade.Result).To(Equal(v1beta1.UpgradeSucceeded))
	if u.change.surges {
		first, err := turned(ctx, servingTime, "the new version to have requests")
		Expect(err).NotTo(HaveOccurred())
		status := first.Object.(*v1beta1.ClusterService).Status
		Expect(replicasOf(status.Candidate)).To(BeNumerically(">=", min(had, replicasOf(status.Active))), "as many as the former version runs")
	}
}

// sleepAndWake waits until no replica runs, and for the answer to the request that changes that.
func (s *service) sleepAndWake(ctx context.Context) {
	GinkgoHelper()
	s.becomes(ctx, "sleep", func(service *v1beta1.ClusterService) error {
		active := service.Status.Active
		if active.Applications[0].RunningReplicas != 0 || service.Status.ObservedGeneration != service.Generation || active.ReadyEndpoints != 1 {
			return errors.New("replicas run, or workers take requests")
		}
		return has(v1beta1.ConditionReady, metav1.ConditionTrue, "")(service)
	})
	begin := time.Now()
	Expect(s.ask(ctx, "/?said=wake")).To(HaveField("Said", "wake"))
	told("request to a service without a replica to its answer", begin)
	s.becomes(ctx, "have its workers take requests again", func(service *v1beta1.ClusterService) error {
		if replicasOf(service.Status.Active) == 0 {
			return errors.New("no replica runs")
		}
		return has(v1beta1.ConditionReady, metav1.ConditionTrue, "")(service)
	})
}

// Growth is the answer of Serve to requests, and moving requests is what an upgrade does.
var _ = Describe("a service that autoscales", Label(serviceLabel, localkubeLabel, live.AcceptLabel), func() {
	It("is upgraded under load by a version that is as warm, and sleeps and wakes", func(ctx SpecContext) {
		s := serviced(ctx).begins(ctx, "echo", "services/own.yaml", nil)
		s.edit(ctx, scaledBetween(1, 4, "1"))
		s.serves(ctx)
		clients := s.crowd(ctx, "-fresh", "3", "-kept", "3", "-long", "1.5")
		for round := range *rounds {
			scaledUpgrade(ctx, s, clients, round)
		}
		_, err := clients.end()
		Expect(err).NotTo(HaveOccurred())

		s.edit(ctx, scaledBetween(0, 4, "asleep"))
		for range (*rounds + 1) / 2 {
			s.sleepAndWake(ctx)
		}
	}, Label(live.ServeAutoscaledLabel), SpecTimeout(time.Duration(1+*rounds)*3*servingTime))
})
