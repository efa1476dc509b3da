package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// resized is the spec of a cluster whose second group has one worker of the small size.
func resized(cluster func() *env) {
	It("makes a worker larger while it runs", func(ctx SpecContext) {
		team := cluster()
		old := team.group(ctx, "cpu")[0]
		begin := time.Now()
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
			spec.WorkerGroups[1].Size = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1100m"), corev1.ResourceMemory: resource.MustParse("2Gi")}
		})
		team.upToDate(ctx)
		told("size edited to up to date", begin)
		now := team.group(ctx, "cpu")[0]
		Expect(now.UID).To(Equal(old.UID))
		Expect(now.Status.ContainerStatuses[0].RestartCount).To(BeZero())
		Expect(now.Status.ContainerStatuses[0].Resources.Limits.Memory().String()).To(Equal("2Gi"))
		total := team.node(ctx, team.dial(ctx), now.UID).Total
		Expect(total).To(HaveKeyWithValue("CPU", 2.0))
		// The object store was laid out when the worker started.
		Expect(total["memory"] + total["object_store_memory"]).To(BeNumerically("~", 2<<30, 1<<20))
		Expect(exec(ctx, &now, "python3", "-c", memoryLimit)).To(Equal("2147483648"))
	}, SpecTimeout(limit))
}

// memoryLimit prints the limit that the kernel keeps the container to, in bytes.
const memoryLimit = `
for path in "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes":
    try:
        print(open(path).read().strip(), end="")
    except FileNotFoundError:
        pass`
