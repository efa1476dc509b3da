package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient/headtest"
)

// A cluster on which Serve was never started: what the fake head does for the tests of services
// is true of it as well.
var _ = Describe("a cluster without Serve", Ordered, Label(serviceLabel, contractLabel), func() {
	var lab *env
	var workers []corev1.Pod

	BeforeAll(func(ctx SpecContext) {
		lab = made(ctx, "contract", "clusters/contract.yaml", nil)
		workers = lab.group(ctx, "cpu")
		Expect(workers).To(HaveLen(2))
		head := lab.head(ctx)
		for _, pod := range append([]corev1.Pod{head}, workers...) {
			exec(ctx, &pod, "sh", "-c", `mkdir -p "$(dirname "$1")" && printf %s "$2" >"$1"`, "sh", headtest.ServeFile, headtest.ServeModule)
		}
	}, NodeTimeout(limit))

	// Each of them begins with what those before have left.
	for _, c := range headtest.ServeCases() {
		It("has a Serve of which is true: "+c.Name, func(ctx SpecContext) {
			head := lab.subject(ctx, workers)
			head.Within = servingTime / 3 // a replica that dies is tried several times
			c.Run(GinkgoTB(), head)
		}, SpecTimeout(servingTime))
	}
})
