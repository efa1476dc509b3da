package e2e

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// A worker whose node is cut off from the network. The head and the operator are on the
// other one.
var _ = Describe("a node that is cut off", Ordered, Label(localkubeLabel), func() {
	It("gives up its worker, whose successor takes another slot, and comes back empty", func(ctx SpecContext) {
		lost := nodes(ctx)[1].Name
		aside(ctx, lost)
		team := made(ctx, "cutoff", "clusters/cut-off.yaml", values{"Keep": nodes(ctx)[0].Name, "Lost": lost, "Impatient": !*full})
		worker, head := team.workers(ctx, 1)[0], team.head(ctx)
		Expect(worker.Spec.NodeName).To(Equal(lost))

		begin := time.Now()
		localkube(ctx, "partition", lost)
		DeferCleanup(func(ctx SpecContext) { localkube(ctx, "heal", lost) }, NodeTimeout(limit))
		successor := worker
		eventually(ctx, "a successor at work", func(ctx context.Context) error {
			pods, err := kubernetes.PodsOf(ctx, team.NamespacedName, v1beta1.RoleWorker)
			for _, pod := range pods {
				if pod.UID != worker.UID && isReady(&pod) {
					successor = pod
					return nil
				}
			}
			return fmt.Errorf("there are %d workers, %w", len(pods), err)
		})
		told(live.CutOffEntry, begin)
		Expect(successor.Labels[v1beta1.LabelSlot]).NotTo(Equal(worker.Labels[v1beta1.LabelSlot]))
		Expect(team.ready(ctx).Status.Epoch).To(BeEquivalentTo(1))
		Expect(uids(team.workers(ctx, 2))).To(ContainElement(worker.UID), "nobody knows what runs there, so it is not struck off")

		localkube(ctx, "heal", lost)
		gone(ctx, &worker)
		Expect(uids(team.pods(ctx, ""))).To(ConsistOf(head.UID, successor.UID))
		team.listed(ctx, 2)
	}, Label(live.CutOffLabel, live.AcceptLabel), SpecTimeout(3*limit))
})

// nodes in the order of their names.
func nodes(ctx context.Context) []corev1.Node {
	GinkgoHelper()
	var list corev1.NodeList
	Expect(kubernetes.List(ctx, &list)).To(Succeed())
	Expect(len(list.Items)).To(BeNumerically(">", 1), "these tests need two nodes: localkube up --nodes 2")
	return list.Items
}

// aside moves the operator away from a node.
func aside(ctx context.Context, name string) {
	GinkgoHelper()
	cordon(ctx, name, true)
	defer cordon(ctx, name, false)
	pods, err := operatorPods(ctx)
	Expect(err).NotTo(HaveOccurred())
	for i := range pods {
		if pods[i].Spec.NodeName == name {
			Expect(kubernetes.Delete(ctx, &pods[i])).To(Succeed())
		}
	}
	eventually(ctx, "the operator to run elsewhere", func(ctx context.Context) error {
		pods, err := operatorPods(ctx)
		for i := range pods {
			if pods[i].Spec.NodeName == name || !isReady(&pods[i]) {
				return fmt.Errorf("%s on %s is %s", pods[i].Name, pods[i].Spec.NodeName, pods[i].Status.Phase)
			}
		}
		return err
	})
}

// cordon keeps new pods from a node, or no more.
func cordon(ctx context.Context, name string, on bool) {
	GinkgoHelper()
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, on)
	node := &corev1.Node{}
	node.Name = name
	Expect(kubernetes.Patch(ctx, node, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
}

// localkube does something to a node of the local Kubernetes that these tests run on.
func localkube(ctx context.Context, verb, node string) {
	GinkgoHelper()
	program, name := os.Getenv("LOCALKUBE"), os.Getenv("LOCALKUBE_NAME")
	Expect(program).NotTo(BeEmpty(), noLocalkube)
	out, err := osexec.CommandContext(ctx, program, "node", verb, node, "--name", name).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}
