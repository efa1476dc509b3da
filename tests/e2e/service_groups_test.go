package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// replicated has so many replicas of the echo run, two on a node at most.
func replicated(count int) func(*v1beta1.ClusterServiceSpec) error {
	return application(func(app map[string]any) {
		app["deployments"] = []any{map[string]any{
			"name": "Echo", "num_replicas": count, "max_replicas_per_node": 2, "user_config": map[string]any{"version": "1"},
		}}
	})
}

// grouped gives a service's cluster a second group of one worker, like its first, or takes it away.
func grouped(has bool) func(*v1beta1.ClusterServiceSpec) error {
	return func(spec *v1beta1.ClusterServiceSpec) error {
		groups := &spec.ClusterTemplate.Spec.WorkerGroups
		*groups = (*groups)[:1]
		if has {
			more := *(*groups)[0].DeepCopy()
			more.Name, more.Replicas = "more", ptr.To[int32](1)
			*groups = append(*groups, more)
		}
		return nil
	}
}

// leadsTo is that so many workers take the requests of a service that is ready and has done all that its spec says.
func leadsTo(workers int32) func(*v1beta1.ClusterService) error {
	return func(service *v1beta1.ClusterService) error {
		if service.Status.ObservedGeneration != service.Generation || service.Status.Active.ReadyEndpoints != workers {
			return fmt.Errorf("%d take requests", service.Status.Active.ReadyEndpoints)
		}
		return has(v1beta1.ConditionReady, metav1.ConditionTrue, "")(service)
	}
}

// A group of workers is no version: the cluster that serves gets it, and gives it up while its worker takes requests.
var _ = Describe("a service whose cluster gets a group of workers", Label(serviceLabel, localkubeLabel, live.AcceptLabel), func() {
	It("goes on with its cluster and its pods, and loses no request when the group goes", func(ctx SpecContext) {
		s := serviced(ctx).begins(ctx, "echo", "services/own.yaml", values{"Replicas": 4, "PerNode": 2})
		before := s.becomes(ctx, "lead to both workers", leadsTo(2))
		cluster := s.alone(ctx)
		first := uids(append(cluster.workers(ctx, 2), cluster.head(ctx)))
		clients := s.crowd(ctx, quick...)

		clients.phase("more")
		s.edit(ctx, grouped(true))
		cluster.workers(ctx, 3)
		same := s.becomes(ctx, "go on as it was", leadsTo(2))
		Expect(same.Status.Active.Revision).To(Equal(before.Status.Active.Revision))
		s.edit(ctx, replicated(5))
		during := s.becomes(ctx, "lead to the worker of the other group, too", leadsTo(3))
		Expect(during.Status.Active.ClusterName).To(Equal(before.Status.Active.ClusterName))
		clients.phase("fewer")
		s.edit(ctx, grouped(false), replicated(4))
		after := s.becomes(ctx, "lead to the first two workers alone", leadsTo(2))
		Expect(uids(append(cluster.workers(ctx, 2), cluster.head(ctx)))).To(ConsistOf(first))
		Expect(after.Status.Active.ClusterName).To(Equal(before.Status.Active.ClusterName))
		clients.phase("after")
		sent, failed, failures := counted(clients.settled(ctx, "more", "fewer"))
		GinkgoWriter.Printf("%d of %d requests failed\n", failed, sent)
		Expect(failed).To(BeZero(), "%v", failures)
		Expect(sent).To(BeNumerically(">", 0))
	}, Label(live.ServeGroupsLabel), SpecTimeout(3*servingTime))
})
