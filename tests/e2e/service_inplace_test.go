package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// whereTheyAre has pods replaced on the one cluster that there is. Of the two replicas each has room
// on one worker only, and goes on there until 60 s before the drain ends, so that the other one
// has started again by then.
func whereTheyAre(spec *v1beta1.ClusterServiceSpec) error {
	spec.UpgradeStrategy.Type, spec.UpgradeStrategy.Surge.StepPercent, spec.UpgradeStrategy.Surge.IntervalSeconds = v1beta1.ServiceUpgradeInPlace, nil, nil
	spec.ClusterTemplate.Spec.WorkerGroups[0].DrainSeconds = new(int32(100))
	return nil
}

// othersWork gives the workers alone an environment that Ray does not look at.
func othersWork(value string) func(*v1beta1.ClusterServiceSpec) error {
	return func(spec *v1beta1.ClusterServiceSpec) error {
		for i := range spec.ClusterTemplate.Spec.WorkerGroups {
			containers := spec.ClusterTemplate.Spec.WorkerGroups[i].Template.Spec.Containers
			at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == v1beta1.ContainerRay })
			containers[at].Env = []corev1.EnvVar{{Name: "EDITED", Value: value}}
		}
		return nil
	}
}

// comesTo is becomes for what takes as long as it takes to replace all workers twice.
func (s *service) comesTo(ctx context.Context, what string, look func(*v1beta1.ClusterService) error) {
	GinkgoHelper()
	Expect(live.Until(ctx, 2*servingTime, s.Name+" to come to "+what, func(ctx context.Context) error {
		found, err := kubernetes.FindService(ctx, s.NamespacedName)
		if err == nil {
			err = look(found)
		}
		return err
	})).To(Succeed())
}

// A service without room for a second cluster, under load while its workers are replaced one
// after another, and then without while all pods are.
var _ = Describe("a service upgraded in place", Ordered, Label(serviceLabel, localkubeLabel, live.AcceptLabel), func() {
	var s *service
	var clients *crowd
	var cluster *env

	BeforeAll(func(ctx SpecContext) {
		s = serviced(ctx).applies(ctx, "narrow", "services/own.yaml", quickly)
		s.edit(ctx, whereTheyAre)
		s.serves(ctx)
		cluster = s.alone(ctx)
		clients = s.crowd(ctx, quick...)
	}, NodeTimeout(servingTime))

	It("loses no request while its workers are replaced", func(ctx SpecContext) {
		head, former := cluster.head(ctx), uids(cluster.workers(ctx, 2))
		clients.phase("calm")
		Consistently(ctx, func(ctx context.Context) error { return live.IsServing(s.now(ctx)) }, "5s", "1s").Should(Succeed())
		watching, stop := context.WithCancel(ctx)
		defer stop()
		count := s.census(watching)
		clients.phase("workers")
		begin := time.Now()
		s.edit(ctx, othersWork("once"), tells("2"))
		s.becomes(ctx, "say that workers are replaced", has(v1beta1.ConditionUpgrading, metav1.ConditionTrue, reason.UpgradeInPlace.Code))
		var unready error
		s.comesTo(ctx, "other workers and the new version", func(service *v1beta1.ClusterService) error {
			unready = cmp.Or(unready, has(v1beta1.ConditionReady, metav1.ConditionTrue, "")(service))
			return live.IsServing(service)
		})
		Expect(unready).NotTo(HaveOccurred(), "it is ready all the time")
		told(live.ServeInPlaceEntry, begin)
		clients.phase("after")
		loads := clients.settled(ctx, "calm", "workers")
		sent, failed, said := counted(loads)
		GinkgoWriter.Printf("%d of %d requests failed\n", failed, sent)
		Expect(sent).To(BeNumerically(">", 0))
		Expect(failed).To(BeZero(), "%+v", said)
		Expect(count().most).To(BeNumerically("<=", 1), "there is no second cluster")

		Expect(cluster.head(ctx).UID).To(Equal(head.UID), "the head stays")
		for _, uid := range uids(cluster.workers(ctx, 2)) {
			Expect(former).NotTo(ContainElement(uid), "the workers are others")
		}
		for _, process := range s.processes(ctx, "/") {
			Expect(process).To(HaveSuffix(" 2"))
		}
		Expect(s.now(ctx).Status.Active.ReadyEndpoints).To(BeEquivalentTo(2), "the head takes no requests any more")
	}, Label(live.ServeInPlaceLabel), SpecTimeout(2*servingTime))

	It("comes back ready when its head was replaced, and says that it does not answer meanwhile", func(ctx SpecContext) {
		_, err := clients.end()
		Expect(err).NotTo(HaveOccurred())
		head := cluster.head(ctx)
		s.edit(ctx, moved("all"), tells("3"))
		s.becomes(ctx, "say that it does not answer", func(service *v1beta1.ClusterService) error {
			return errors.Join(
				has(v1beta1.ConditionReady, metav1.ConditionFalse, "")(service),
				has(v1beta1.ConditionUpgrading, metav1.ConditionTrue, reason.UpgradeRecreating.Code)(service),
			)
		})
		after := s.serves(ctx)
		Expect(after.Status.Active.ClusterName).To(Equal(cluster.Name))
		Expect(s.alone(ctx).Name).To(Equal(cluster.Name))
		Expect(cluster.head(ctx).UID).NotTo(Equal(head.UID), "the head is another")
		for _, process := range s.processes(ctx, "/") {
			Expect(process).To(HaveSuffix(" 3"))
		}
	}, Label(live.ServeInPlaceLabel), SpecTimeout(2*servingTime))

	It("takes a version back that fails, with its pods", func(ctx SpecContext) {
		former := s.serves(ctx).Status.Active.Revision
		intents := intentsOf(cluster.workers(ctx, 2))
		s.edit(ctx, othersWork("bad"), codeOf("/code/a", "nowhere"))
		s.comesTo(ctx, "the former version", func(service *v1beta1.ClusterService) error {
			if service.Status.Active.Revision != former {
				return fmt.Errorf("version %d is asked for", service.Status.Active.Revision)
			}
			return errors.Join(
				has(v1beta1.ConditionRolledBack, metav1.ConditionTrue, "")(service),
				has(v1beta1.ConditionUpgrading, metav1.ConditionFalse, "")(service),
				has(v1beta1.ConditionReady, metav1.ConditionTrue, "")(service),
			)
		})
		Expect(intentsOf(cluster.workers(ctx, 2))).To(Equal(intents), "the pods are those of the former version")
		for _, process := range s.processes(ctx, "/") {
			Expect(process).To(HaveSuffix(" 3"))
		}
	}, Label(live.ServeInPlaceLabel), SpecTimeout(3*servingTime))
})

// intentsOf names what some pods were built from.
func intentsOf(pods []corev1.Pod) string {
	var all []string
	for i := range pods {
		all = append(all, pods[i].Annotations[v1beta1.AnnotationIntent])
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
