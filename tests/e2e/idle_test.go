package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// idleSeconds is as short as lets a spec see a driver in between.
const idleSeconds = 15

// idles is the last spec of a cluster that nobody uses.
func idles(cluster func() *env) {
	It("is left alone while a driver is connected, says when it will go for being idle, and is deleted then", func(ctx SpecContext) {
		team := cluster()
		epoch := team.ready(ctx).Status.Epoch
		policy := func(action v1beta1.IdleAction) {
			team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
				spec.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: idleSeconds, Action: action}
			})
		}
		policy(v1beta1.IdleNone)
		team.saysIdle(ctx, "IdleLimitReached")
		driver := team.begin(ctx, fmt.Sprintf("import time; time.sleep(%d); result = 1", idleSeconds+10))
		team.noticed(ctx)
		policy(v1beta1.IdleDelete)
		var one int
		driver.end(ctx, &one)
		Expect(team.ready(ctx).Status.Epoch).To(Equal(epoch))
		begin := time.Now()
		team.saysIdle(ctx, "IdleSoon")
		told("driver gone to said in advance", begin)
		Expect(kubernetes.UntilGone(ctx, team.NamespacedName, limit)).To(Succeed())
		told("driver gone to gone for being idle", begin)
		Expect(time.Since(begin)).To(BeNumerically(">", (idleSeconds-2)*time.Second))
	}, SpecTimeout(limit))
}

// noticed waits until the status does not say any more that the cluster is idle, as a driver is connected.
func (e *env) noticed(ctx context.Context) {
	GinkgoHelper()
	eventually(ctx, "the driver to be noticed", func(ctx context.Context) error {
		cluster, err := kubernetes.Find(ctx, e.NamespacedName)
		if err == nil && meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionSuspended) != nil {
			err = errors.New("the cluster still says that it is idle")
		}
		return err
	})
}

// saysIdle waits until the condition Suspended is False for a reason.
func (e *env) saysIdle(ctx context.Context, why string) {
	GinkgoHelper()
	eventually(ctx, fmt.Sprintf("Suspended=False of %s for %s", e.Name, why), func(ctx context.Context) error {
		cluster, err := kubernetes.Find(ctx, e.NamespacedName)
		if err != nil {
			return err
		}
		found := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionSuspended)
		if found == nil || found.Status != metav1.ConditionFalse || found.Reason != why {
			return fmt.Errorf("it is %+v", found)
		}
		return nil
	})
}
