package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// A name that someone else has taken keeps the whole cluster, or a group, from being made.
var _ = Describe("a name that is taken", Label("reasons"), func() {
	It("is told of and left alone where a cluster cannot do without it", func(ctx SpecContext) {
		for kind, foreign := range foreigners() {
			namespace := fresh(ctx)
			foreign.SetNamespace(namespace)
			Expect(kubernetes.Create(ctx, foreign)).To(Succeed())
			conflict(ctx, namespace, kind, foreign.GetName())
			again := foreign.DeepCopyObject().(client.Object)
			Expect(kubernetes.Get(ctx, client.ObjectKeyFromObject(foreign), again)).To(Succeed())
			Expect(again.GetUID()).To(Equal(foreign.GetUID()))
			Expect(again.GetLabels()).To(BeEmpty())
			Expect(again.GetOwnerReferences()).To(BeEmpty())
		}
	}, SpecTimeout(limit))

	It("is told of where it is that of a worker pod", func(ctx SpecContext) {
		workersName(ctx)
	}, SpecTimeout(limit))
})

// foreigners are objects of others under names that the cluster needs.
func foreigners() map[string]client.Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: spoiltHead + name} }
	return map[string]client.Object{
		"Service":       &corev1.Service{ObjectMeta: named("-head"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		"Secret":        &corev1.Secret{ObjectMeta: named("-token"), StringData: map[string]string{"a": "b"}},
		"NetworkPolicy": &networkingv1.NetworkPolicy{ObjectMeta: named("-network")},
	}
}

// conflict makes a cluster beside a foreign object and waits until its status names it.
func conflict(ctx context.Context, namespace, kind, name string) {
	GinkgoHelper()
	told := untilConflict(ctx, namespace, name)
	c := cause{spoil: keepOff}
	begin := time.Now()
	Expect(kubernetes.Create(ctx, c.cluster(namespace, v1alpha1.RoleHead))).To(Succeed())
	told("the name of its "+kind+" is taken", "cluster", begin)
}

// untilConflict watches for a status that names a foreign object, and gives a function
// that waits for it and reports the time.
func untilConflict(ctx context.Context, namespace, name string) func(cause, of string, begin time.Time) {
	GinkgoHelper()
	named := func(object client.Object) *metav1.Condition {
		conditions := object.(*v1alpha1.ComputeCluster).Status.Conditions
		if !meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled) {
			return nil
		}
		return meta.FindStatusCondition(conditions, v1alpha1.ConditionNameConflict)
	}
	watching, stop := context.WithCancel(ctx)
	DeferCleanup(stop)
	wait := watch(watching, namespace, &v1alpha1.ComputeClusterList{}, func(object client.Object) bool {
		condition := named(object)
		return condition != nil && condition.Reason == reason.NameConflict.Code && strings.Contains(condition.Message, name)
	})
	return func(cause, of string, begin time.Time) {
		GinkgoHelper()
		seen, err := wait(ctx, patience, "the status to name "+name)
		Expect(err).NotTo(HaveOccurred())
		condition := named(seen.Object)
		reportTold(live.Told{Cause: cause, Of: of, Reason: condition.Reason, Message: condition.Message, Seconds: seen.At.Sub(begin).Seconds()})
	}
}

// workersName takes the name of a worker pod while its group is suspended.
func workersName(ctx context.Context) {
	GinkgoHelper()
	namespace := fresh(ctx)
	c := cause{spoil: keepOff}
	cluster := c.cluster(namespace, v1alpha1.RoleWorker)
	Expect(kubernetes.Create(ctx, cluster)).To(Succeed())
	staff := &env{client.ObjectKeyFromObject(cluster)}
	worker := staff.workers(ctx, 1)[0]
	suspend := func(yes bool) {
		GinkgoHelper()
		Expect(kubernetes.Edit(ctx, staff.NamespacedName, func(spec *v1alpha1.ComputeClusterSpec) { spec.WorkerGroups[0].Suspend = yes })).To(Succeed())
	}
	suspend(true)
	staff.workers(ctx, 0)
	foreign := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: worker.Name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"example.com/disk": "none"}, Containers: []corev1.Container{{Name: "a", Image: rayImage}},
		},
	}
	Expect(kubernetes.Create(ctx, foreign)).To(Succeed())
	told := untilConflict(ctx, namespace, worker.Name)
	begin := time.Now()
	suspend(false)
	told("the name of a pod is taken", v1alpha1.RoleWorker, begin)
	// Once it is free, the worker is made.
	kill(ctx, foreign)
	Expect(staff.workers(ctx, 1)[0].Name).To(Equal(worker.Name))
}
