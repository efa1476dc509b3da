package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

var _ = Describe("a cluster that scales by itself", Ordered, func() {
	var team *env

	BeforeAll(func(ctx SpecContext) { team = made(ctx, "elastic", "clusters/elastic.yaml", nil) }, NodeTimeout(limit))

	It("begins with its head alone, and says who decides", func(ctx SpecContext) {
		Expect(team.workers(ctx, 0)).To(BeEmpty())
		team.scales(ctx, "Autoscaled")
	}, SpecTimeout(limit))

	It("has workers while tasks wait, and none when they are done", func(ctx SpecContext) {
		team.bursts(ctx)
	}, Label(live.IPv6Label), SpecTimeout(limit))

	It("takes the group whose labels a task selects, from zero", Label(localkubeLabel, live.SelectedLabel), func(ctx SpecContext) {
		for range *rounds {
			begin := time.Now()
			var where []string
			team.program(ctx, `
def task():
    return os.environ["RAY_NODE_TYPE_NAME"]
selects = ray.remote(num_cpus=1, label_selector={"ray.io/accelerator-type": "in(H100,A100)", "ray.io/market-type": "spot"})(task)
typed = ray.remote(num_cpus=0, num_gpus=1, accelerator_type="A100")(task)
result = ray.get([selects.remote(), typed.remote()])`, &where)
			told(live.SelectedEntry, begin)
			Expect(where).To(Equal([]string{"gpu", "gpu"}))
			Expect(team.of(ctx, "cpu")).To(BeEmpty())
			team.workers(ctx, 0)
		}
	}, SpecTimeout(limit*time.Duration(*rounds)))

	It("spreads a placement group, and packs one", func(ctx SpecContext) {
		var nodes []int
		team.program(ctx, rendered("programs/placement.py", nil), &nodes)
		Expect(nodes).To(Equal([]int{2, 1}))
	}, SpecTimeout(limit))

	It("keeps a worker as long as an object lives there alone", func(ctx SpecContext) {
		sum := 0
		team.program(ctx, rendered("programs/kept.py", nil), &sum)
		Expect(sum).To(Equal(1 << 20))
		team.workers(ctx, 0)
	}, SpecTimeout(limit))
})

// bursts has four tasks wait for as many workers of the group cpu, and the workers go when they are done.
func (e *env) bursts(ctx context.Context) {
	GinkgoHelper()
	begin := time.Now()
	burst := e.begin(ctx, rendered("programs/burst.py", nil))
	e.workers(ctx, 4)
	told("demand to four pods", begin)
	var done []int
	burst.end(ctx, &done)
	Expect(done).To(Equal([]int{0, 1, 2, 3}))
	told("demand to done", begin)
	begin = time.Now()
	e.workers(ctx, 0)
	told("done to no worker", begin)
	Expect(e.events(ctx)).To(ContainElement(ContainSubstring("scaled group cpu 0 → 4: 4 × {CPU: 1}")))
	Expect(e.ready(ctx).Status.Autoscaling.Groups).To(ContainElement(HaveField("Target", BeEquivalentTo(0))))
}

// program runs a program in the head to its end.
func (e *env) program(ctx context.Context, program string, into any) {
	GinkgoHelper()
	e.begin(ctx, program).end(ctx, into)
}

// scales waits until the condition Autoscaling has a reason.
func (e *env) scales(ctx context.Context, reason string) {
	GinkgoHelper()
	eventually(ctx, "Autoscaling to say "+reason, func(ctx context.Context) error {
		cluster, err := kubernetes.Find(ctx, e.NamespacedName)
		if err != nil {
			return err
		}
		for _, condition := range cluster.Status.Conditions {
			if condition.Type == v1beta1.ConditionAutoscaling {
				if condition.Reason == reason {
					return nil
				}
				return fmt.Errorf("it says %s: %s", condition.Reason, condition.Message)
			}
		}
		return fmt.Errorf("there is no such condition")
	})
}

// of are the workers of a group.
func (e *env) of(ctx context.Context, group string) []corev1.Pod {
	GinkgoHelper()
	return slices.DeleteFunc(e.pods(ctx, v1beta1.RoleWorker), func(pod corev1.Pod) bool { return pod.Labels[v1beta1.LabelGroup] != group })
}

// events are the messages of what was told of the cluster.
func (e *env) events(ctx context.Context) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(kubernetes.List(ctx, &list)).To(Succeed())
	var all []string
	for _, event := range list.Items {
		if event.Namespace == e.Namespace && strings.HasPrefix(event.InvolvedObject.Name, e.Name) {
			all = append(all, event.Message)
		}
	}
	return all
}
