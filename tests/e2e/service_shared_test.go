package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// remove deletes the service and waits until it is gone.
func (s *service) remove(ctx context.Context) {
	GinkgoHelper()
	Expect(kubernetes.Delete(ctx, s.now(ctx))).To(Succeed())
	eventually(ctx, s.Name+" to be gone", func(ctx context.Context) error {
		found, err := kubernetes.FindService(ctx, s.NamespacedName)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil:
			err = fmt.Errorf("it is %s", found.Status.Phase)
		}
		return err
	})
}

// Services on a cluster that was there before them.
var _ = Describe("services on a shared cluster", Ordered, Label(serviceLabel, localkubeLabel), func() {
	var t *team
	var shelf *env
	var left, right *service
	var theirs []string

	BeforeAll(func(ctx SpecContext) {
		t = serviced(ctx)
		shelf = &env{types.NamespacedName{Namespace: t.namespace, Name: "shelf"}}
		shelf.apply(ctx, "clusters/shelf.yaml", values{"SecurityContext": assigned})
		shelf.ready(ctx)
		left = t.applies(ctx, "left", "services/shared.yaml", nil)
		left.serves(ctx)
		right = t.applies(ctx, "right", "services/shared.yaml", nil)
		right.serves(ctx)
		theirs = right.processes(ctx, "/right/")
	}, NodeTimeout(servingTime))

	It("have processes of their own, which a change of another service and its end leave alone", func(ctx SpecContext) {
		epoch, before := shelf.ready(ctx).Status.Epoch, left.processes(ctx, "/left/")
		Expect(before).NotTo(ContainElements(theirs))
		left.edit(ctx, tells("2"))
		left.serves(ctx)
		for i := range before {
			before[i] = strings.TrimSuffix(before[i], " 1") + " 2"
		}
		Expect(left.processes(ctx, "/left/")).To(Equal(before), "another configuration keeps the processes")
		Expect(right.processes(ctx, "/right/")).To(Equal(theirs))
		left.edit(ctx, codeOf("/code/b", "echo"))
		left.serves(ctx)
		for _, process := range left.processes(ctx, "/left/") {
			Expect(process).To(HaveSuffix(" 2"))
			Expect(before).NotTo(ContainElement(process))
		}
		Expect(right.processes(ctx, "/right/")).To(Equal(theirs))

		left.remove(ctx)
		Expect(right.serves(ctx).Status.Active.Applications).To(HaveLen(1))
		Expect(right.processes(ctx, "/right/")).To(Equal(theirs))
		Expect(shelf.ready(ctx).Status.Epoch).To(Equal(epoch), "the cluster stays")
	}, SpecTimeout(servingTime))
})
