package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/headtest"
)

// A cluster with every sort of fake device. It serves the contract of heads as well, which
// takes its workers away in the end.
var _ = Describe("a cluster with devices", Ordered, Label(localkubeLabel), func() {
	var lab *env
	var head corev1.Pod

	BeforeAll(func(ctx SpecContext) {
		lab = made(ctx, "devices", "clusters/devices.yaml", nil)
		head = lab.head(ctx)
	}, NodeTimeout(limit))

	It("has them all in Ray, by Ray's name and by their own", func(ctx SpecContext) {
		var all map[string]float64
		ray(ctx, &head, "result = ray.cluster_resources()", &all)
		Expect(all).To(And(
			HaveKeyWithValue("CPU", 3.0), HaveKeyWithValue("GPU", 5.0), HaveKeyWithValue("nvidia.com/gpu", 2.0),
			HaveKeyWithValue("nvidia.com/mig-1g.5gb", 2.0), HaveKeyWithValue("nvidia.com/gpu.shared", 1.0),
			HaveKeyWithValue("accelerator_type:A100", 2.0), HaveKeyWithValue("lens", 6.0)))
		parts := lab.group(ctx, "parts")[0]
		var places struct{ Whole, Slice string }
		ray(ctx, &head, `
where = ray.remote(lambda: socket.gethostname())
result = {"Whole": ray.get(where.options(num_gpus=1, label_selector={"market": "spot"}).remote()),
          "Slice": ray.get(where.options(resources={"nvidia.com/mig-1g.5gb": 1}).remote())}`, &places)
		Expect(places.Slice).To(Equal(parts.Name))
		Expect(places.Whole).NotTo(Equal(parts.Name), "its label is another")
	}, SpecTimeout(limit))

	It("labels Ray's nodes with the zones of Kubernetes' nodes", func(ctx SpecContext) {
		gcs := lab.dial(ctx)
		for _, pod := range lab.pods(ctx, "") {
			var on corev1.Node
			Expect(kubernetes.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &on)).To(Succeed())
			zone := on.Labels[corev1.LabelTopologyZone]
			Expect(zone).NotTo(BeEmpty())
			Expect(lab.node(ctx, gcs, pod.UID).Labels).To(HaveKeyWithValue("ray.io/availability-zone", zone))
		}
	}, SpecTimeout(limit))

	// The last of them take the workers away, so nothing comes after them.
	for _, c := range headtest.Cases() {
		It("has a head of which is true: "+c.Name, func(ctx SpecContext) {
			c.Run(GinkgoTB(), lab.subject(ctx, lab.group(ctx, "gpu")))
		}, Label(contractLabel), SpecTimeout(limit))
	}
})

// group is the workers of a group in the order of their slots.
func (e *env) group(ctx context.Context, name string) []corev1.Pod {
	GinkgoHelper()
	return slices.DeleteFunc(inOrder(e.pods(ctx, v1beta1.RoleWorker)), func(pod corev1.Pod) bool { return pod.Labels[v1beta1.LabelGroup] != name })
}

// subject is the cluster's head as the contract of heads wants it.
func (e *env) subject(ctx context.Context, workers []corev1.Pod) headtest.Head {
	GinkgoHelper()
	head := e.head(ctx)
	output := func(job string) string { return "/tmp/ray/session_latest/logs/job-driver-" + job + ".log" }
	run := func(program string) {
		GinkgoHelper()
		exec(ctx, &head, "python3", "-c", driver("result = None\n"+program))
	}
	return headtest.Head{
		Address: forward(ctx, &head, gcs), Jobs: forward(ctx, &head, dashboard), Token: e.token(ctx), Version: release,
		First: string(workers[0].UID), Second: string(workers[1].UID), Type: workers[0].Labels[v1beta1.LabelGroup],
		Within: limit / 3,
		Processes: func(text string) (int, error) {
			// The first character in brackets, so that what looks is not found.
			look := fmt.Sprintf("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o '[%s]%s' | wc -l", text[:1], text[1:])
			return strconv.Atoi(strings.TrimSpace(exec(ctx, &head, "sh", "-c", look)))
		},
		Output: func(job string) ([]byte, error) {
			return []byte(exec(ctx, &head, "cat", output(job))), nil
		},
		Empty: func(job string) error {
			exec(ctx, &head, "truncate", "--size=0", output(job))
			return nil
		},
		Remove: func(job string) error {
			exec(ctx, &head, "rm", output(job))
			return nil
		},
		Occupy: func() (func(), error) {
			task := e.occupy(ctx, &workers[1])
			return func() { Expect(task.release(ctx)).To(Equal(workers[1].Name)) }, nil
		},
		Connect: func() (func(), error) { return e.connected(ctx, ""), nil },
		Want: func(wish headtest.Wish) (func(), error) {
			program, err := wish.Python()
			return e.connected(ctx, program), err
		},
		Now: time.Now,
		Detach: func() (func(), error) {
			run("ray.get(ray.remote(type('A', (), {'f': lambda s: 0})).options(name='a', namespace='user', lifetime='detached', num_cpus=0).remote().f.remote())")
			return func() { run("ray.kill(ray.get_actor('a', namespace='user'))") }, nil
		},
		Submit: func() (func(), error) {
			exec(ctx, &head, "ray", "job", "submit", "--no-wait", "--submission-id", "long", "--", "sleep", "600")
			return func() { exec(ctx, &head, "ray", "job", "stop", "long") }, nil
		},
	}
}

// connected runs a program whose driver stays connected until it is told to end.
func (e *env) connected(ctx context.Context, program string) (end func()) {
	GinkgoHelper()
	head, leave := e.head(ctx), "/tmp/leave-"+string(uuid.NewUUID())
	work := e.begin(ctx, fmt.Sprintf("%s\nimport time\nwhile not os.path.exists('%s'):\n    time.sleep(0.05)\nresult = 0", program, leave))
	return func() {
		GinkgoHelper()
		exec(ctx, &head, "touch", leave)
		work.end(ctx, new(int))
	}
}
