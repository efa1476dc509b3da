package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// suspended is the spec of a cluster with a group of two workers and one of one. It leaves one worker.
func suspended(cluster func() *env) {
	It("suspends and resumes, with the edits that were made meanwhile", func(ctx SpecContext) {
		team := cluster()
		before, token := team.lasting(ctx), team.token(ctx)
		worker := team.group(ctx, "cpu")[0]
		team.occupy(ctx, &worker)
		hastens := team.hastens(ctx, team.workers(ctx, 3))
		begin := time.Now()
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) { spec.Suspend = new(true) })
		team.is(ctx, v1beta1.ConditionSuspended)
		told("suspended while busy to no pod left", begin)
		takes(begin, hastened, "a suspension hastens its pods")
		hastens()
		Expect(team.pods(ctx, "")).To(BeEmpty())

		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
			spec.WorkerGroups = spec.WorkerGroups[1:]
			spec.WorkerGroups[0].Labels = map[string]string{"edited": "yes"}
		})
		team.is(ctx, v1beta1.ConditionSuspended)
		Expect(team.pods(ctx, "")).To(BeEmpty(), "an edit does not wake it")

		begin = time.Now()
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) { spec.Suspend = new(false) })
		team.upToDate(ctx)
		told("resumed to Ready", begin)
		Expect(team.ready(ctx).Status.Epoch).To(BeEquivalentTo(2))
		team.listed(ctx, 2)
		Expect(team.lasting(ctx)).To(Equal(before))
		Expect(team.token(ctx)).To(Equal(token))
		head := team.head(ctx)
		var place string
		ray(ctx, &head, `result = ray.get(ray.remote(lambda: socket.gethostname()).options(label_selector={"edited": "yes"}).remote())`, &place)
		Expect(place).To(Equal(team.workers(ctx, 1)[0].Name))
	}, SpecTimeout(2*limit))
}

// lasting are the UIDs of what a suspension leaves there.
func (e *env) lasting(ctx context.Context) []types.UID {
	GinkgoHelper()
	var service corev1.Service
	var secret corev1.Secret
	Expect(kubernetes.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: e.Name + "-head"}, &service)).To(Succeed())
	Expect(kubernetes.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: e.Name + "-token"}, &secret)).To(Succeed())
	return []types.UID{service.UID, secret.UID}
}

// is waits until a condition is True for the spec that the cluster has.
func (e *env) is(ctx context.Context, condition string) {
	GinkgoHelper()
	eventually(ctx, e.Name+" to be "+condition, func(ctx context.Context) error {
		cluster, err := kubernetes.Find(ctx, e.NamespacedName)
		if err != nil {
			return err
		}
		found := meta.FindStatusCondition(cluster.Status.Conditions, condition)
		if found == nil || found.Status != metav1.ConditionTrue || found.ObservedGeneration != cluster.Generation {
			return fmt.Errorf("generation %d: %+v", cluster.Generation, found)
		}
		return nil
	})
}
