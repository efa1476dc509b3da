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

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

var _ = Describe("an idle policy that only tells", func() {
	It("tells when the cluster has been idle, and leaves it as it is", func(ctx SpecContext) {
		team := made(ctx, "watched", smallHead+fmt.Sprintf("idlePolicy: {afterSeconds: %d, action: None}\n", idleSeconds))
		before := team.head(ctx).UID
		begin := time.Now()
		team.suspendedFor(ctx, metav1.ConditionFalse, "IdleTold")
		told("Ready to told that it is idle", begin)
		Expect(time.Since(begin)).To(BeNumerically(">", (idleSeconds-5)*time.Second), "the head was ready a moment before")
		driver := team.begin(ctx, "import time; time.sleep(10); result = 1")
		eventually(ctx, "the driver to be noticed", func(ctx context.Context) error {
			cluster, err := kubernetes.Find(ctx, team.NamespacedName)
			if err == nil && meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionSuspended) != nil {
				err = errors.New("the cluster still says that it is idle")
			}
			return err
		})
		var one int
		driver.end(ctx, &one)
		team.suspendedFor(ctx, metav1.ConditionFalse, "IdleTold")
		Expect(team.head(ctx).UID).To(Equal(before))
		Expect(team.ready(ctx).Status.Epoch).To(BeEquivalentTo(1))
	}, SpecTimeout(limit))
})
