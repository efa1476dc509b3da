package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// node is what Ray says of one of its nodes.
type node struct {
	Group     string
	Resources map[string]float64
	Labels    map[string]string
}

// describe asks Ray for its nodes, and by whose environment a task in each group runs.
const describe = `
nodes = [n for n in ray.nodes() if n["Alive"]]
result = [{"Group": n["Labels"].get("ray.io/node-group", ""), "Resources": n["Resources"], "Labels": n["Labels"]} for n in nodes]
`

// The cluster of the second sample: sizes, a GPU, options, labels and a template.
var _ = Describe("a cluster with sizes, options and a template", Ordered, Label(localkubeLabel), func() {
	var team *env
	var head corev1.Pod
	workers := map[string]corev1.Pod{}

	BeforeAll(func(ctx SpecContext) {
		team = given(ctx, "cluster-sized.yaml", "team")
		head = team.head(ctx)
		for _, worker := range team.workers(ctx, 2) {
			workers[worker.Labels[v1beta1.LabelGroup]] = worker
		}
		Expect(workers).To(HaveKey("cpu"))
		Expect(workers).To(HaveKey("gpu"))
	}, NodeTimeout(limit))

	It("tells Ray what its pods have", func(ctx SpecContext) {
		var all []node
		ray(ctx, &head, describe, &all)
		Expect(all).To(HaveLen(3))
		const memory = 1536 << 20
		for _, n := range all {
			switch n.Group {
			case "cpu":
				Expect(n.Resources).To(And(HaveKeyWithValue("CPU", 1.0), HaveKeyWithValue("reader", 4.0), Not(HaveKey("GPU"))))
				Expect(n.Labels).To(HaveKeyWithValue("market", "spot"))
				Expect(n.Resources["memory"]).To(BeNumerically("~", memory*0.7, 1000))
				Expect(n.Resources["object_store_memory"]).To(BeNumerically("~", memory*0.3, 1000))
			case "gpu":
				Expect(n.Resources).To(And(HaveKeyWithValue("CPU", 1.0), HaveKeyWithValue("GPU", 1.0)))
			default:
				Expect(n.Resources).NotTo(HaveKey("CPU"), "the head takes no tasks")
				Expect(n.Labels).To(HaveKeyWithValue("tier", "system"))
			}
		}
	}, SpecTimeout(limit))

	It("gives a task the device, and the template its effect", func(ctx SpecContext) {
		var seen struct{ Pod, Devices, Threads string }
		ray(ctx, &head, `
@ray.remote(num_gpus=1)
def look():
    return {"Pod": socket.gethostname(), "Devices": os.environ.get("NVIDIA_VISIBLE_DEVICES", ""), "Threads": os.environ["OMP_NUM_THREADS"]}
result = ray.get(look.remote())`, &seen)
		Expect(seen.Pod).To(Equal(workers["gpu"].Name))
		Expect(seen.Devices).NotTo(BeEmpty())
		Expect(seen.Threads).To(Equal("1"))
		Expect(workers["gpu"].Annotations).To(HaveKeyWithValue("example.com/owner", "ana"))
	}, SpecTimeout(limit))

	It("keeps objects in memory, not on disk, and hands options to Ray", func(ctx SpecContext) {
		for group, options := range map[string][]string{
			"cpu": {"--plasma_directory=/dev/shm", "--min_worker_port=11000", "--max_worker_port=11999"},
			"gpu": {"--plasma_directory=/dev/shm"},
		} {
			worker := workers[group]
			raylet := exec(ctx, &worker, "python3", "-c", `import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
    if words[0].endswith(b"/raylet"):
        print(*(w.decode() for w in words))`)
			for _, option := range options {
				Expect(raylet).To(ContainSubstring(option))
			}
			log, err := kubernetes.Kubernetes.CoreV1().Pods(team.Namespace).GetLogs(worker.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(log)).NotTo(ContainSubstring("instead of /dev/shm"))
		}
	}, SpecTimeout(limit))
})
