package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var _ = Describe("a volume of a worker", Ordered, func() {
	var team *env

	BeforeAll(func(ctx SpecContext) {
		team = made(ctx, "cached", "clusters/volumes.yaml", nil)
	}, NodeTimeout(limit))

	It("has for its successor what it wrote", func(ctx SpecContext) {
		before := team.staying(ctx, 2)
		claims := team.claims(ctx, 2)
		for i := range before {
			exec(ctx, &before[i], "sh", "-c", "echo "+before[i].Name+" > /cache/from; hostname >> /pool/from")
		}
		begin := time.Now()
		Expect(kubernetes.Delete(ctx, &before[0])).To(Succeed())
		gone(ctx, &before[0])
		after := team.staying(ctx, 2)
		told("worker deleted to successor ready on its volume", begin)
		fresh := newcomer(before, after)
		Expect(fresh.Labels[v1beta1.LabelSlot]).To(Equal(before[0].Labels[v1beta1.LabelSlot]))
		Expect(strings.TrimSpace(exec(ctx, &fresh, "cat", "/cache/from"))).To(Equal(before[0].Name))
		Expect(strings.TrimSpace(exec(ctx, &after[1], "cat", "/cache/from"))).To(Equal(before[1].Name), "each has its own")
		Expect(team.claims(ctx, 2)).To(Equal(claims))
		team.listed(ctx, 3)
		head := team.head(ctx)
		for _, pod := range []corev1.Pod{head, fresh} {
			Expect(strings.Fields(exec(ctx, &pod, "cat", "/pool/from"))).To(ConsistOf(before[0].Name, before[1].Name), "all pods share one")
		}
	}, SpecTimeout(limit))

	It("goes with its slot, and no other goes with it", func(ctx SpecContext) {
		before := team.claims(ctx, 2)
		team.scale(ctx, 1)
		left := team.claims(ctx, 1)
		worker := team.workers(ctx, 1)[0]
		for name, volume := range before {
			if _, stays := left[name]; stays {
				Expect(left[name]).To(Equal(volume))
				continue
			}
			eventually(ctx, "volume "+volume+" to be gone", func(ctx context.Context) error {
				err := kubernetes.Get(ctx, types.NamespacedName{Name: volume}, &corev1.PersistentVolume{})
				if err == nil {
					err = errors.New("it is there")
				}
				return client.IgnoreNotFound(err)
			})
		}
		Expect(exec(ctx, &worker, "cat", "/cache/from")).NotTo(BeEmpty())
	}, SpecTimeout(limit))
})

// claims waits until the cluster's workers have as many claims, and gives the volume of
// each by its name.
func (e *env) claims(ctx context.Context, n int) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	eventually(ctx, fmt.Sprintf("%d claims", n), func(ctx context.Context) error {
		var list corev1.PersistentVolumeClaimList
		err := kubernetes.List(ctx, &list, client.InNamespace(e.Namespace), client.MatchingLabels{v1beta1.LabelCluster: e.Name})
		clear(found)
		for i := range list.Items {
			if list.Items[i].Labels[v1beta1.LabelVolume] == "" { // no pod has that one alone
				found[list.Items[i].Name] = list.Items[i].Spec.VolumeName
			}
		}
		if err == nil && len(found) != n {
			err = fmt.Errorf("there are %v", found)
		}
		return err
	})
	return found
}
