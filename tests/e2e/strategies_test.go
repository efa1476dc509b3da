package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// edited are the specs of a cluster with two workers that replaces pods in all the ways that there are.
func edited(cluster func() *env) {
	labels := Label(live.StrategiesLabel, live.AcceptLabel)
	It("with maxSurge 1 and maxUnavailable 0 never leaves fewer workers than wanted", func(ctx SpecContext) {
		team := cluster()
		head, before := team.head(ctx), uids(team.staying(ctx, 2))
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
			spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRollingWorkers, RollingWorkers: &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1))}}
		})
		team.upToDate(ctx)
		team.workers(ctx, 2) // those of former specs are gone
		count := team.count(ctx)
		begin := time.Now()
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
			spec.WorkerGroups[0].NodeSpec = withEnv(spec.WorkerGroups[0].NodeSpec, "a")
		})
		team.upToDate(ctx)
		told("edited to both workers replaced", begin)
		least, most := count()
		Expect(least).To(Equal(2), "ready workers that stay")
		Expect(most).To(Equal(3), "workers that stay, ready or not")
		after := team.staying(ctx, 2)
		Expect(uids(after)).NotTo(ContainElements(before[0]))
		Expect(uids(after)).NotTo(ContainElements(before[1]))
		team.have(ctx, after, "a")
		Expect(team.head(ctx).UID).To(Equal(head.UID))
		Expect(team.ready(ctx).Status.Epoch).To(BeEquivalentTo(1))
	}, labels, SpecTimeout(limit))

	It("with Recreate makes all pods anew at once, and the choice of it alone makes none", func(ctx SpecContext) {
		team := cluster()
		team.workers(ctx, 2) // those that were replaced are gone
		before := uids(team.pods(ctx, ""))
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
			spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRecreate}
		})
		team.upToDate(ctx)
		Expect(uids(team.pods(ctx, ""))).To(ConsistOf(before))

		begin := time.Now()
		team.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) {
			spec.Head.NodeSpec = withEnv(spec.Head.NodeSpec, "b")
			spec.WorkerGroups[0].NodeSpec = withEnv(spec.WorkerGroups[0].NodeSpec, "b")
		})
		eventually(ctx, "the second epoch", func(ctx context.Context) error { return team.inEpoch(ctx, 2) })
		team.upToDate(ctx)
		told("edited to all pods made anew", begin)
		after := append(team.staying(ctx, 2), team.head(ctx))
		for _, uid := range uids(after) {
			Expect(before).NotTo(ContainElement(uid))
		}
		team.have(ctx, after, "b")
		team.listed(ctx, 3)
		team.workers(ctx, 2) // the former ones are gone
	}, labels, SpecTimeout(limit))
}

// withEnv is a node's template with an environment variable of a value.
func withEnv(node v1beta1.NodeSpec, value string) v1beta1.NodeSpec {
	_, ray := template(&node)
	ray.Env = []corev1.EnvVar{{Name: "EDITED", Value: value}}
	return node
}

// have checks the value of that variable where Ray runs.
func (e *env) have(ctx context.Context, pods []corev1.Pod, value string) {
	GinkgoHelper()
	for i := range pods {
		Expect(strings.TrimSpace(exec(ctx, &pods[i], "printenv", "EDITED"))).To(Equal(value), pods[i].Name)
	}
}

// count begins to watch the workers, all of which are ready, and gives what ends it and
// tells of how many there were at any time: at least that were ready to take work, and at
// most that were to stay.
func (e *env) count(ctx context.Context) func() (least, most int) {
	GinkgoHelper()
	labels := client.MatchingLabels{v1beta1.LabelCluster: e.Name, v1beta1.LabelRole: v1beta1.RoleWorker}
	pods := map[types.UID]*corev1.Pod{}
	var now corev1.PodList
	Expect(kubernetes.List(ctx, &now, client.InNamespace(e.Namespace), labels)).To(Succeed())
	for i := range now.Items {
		pods[now.Items[i].UID] = &now.Items[i]
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: now.ResourceVersion}}
	changes, err := kubernetes.Watch(ctx, &corev1.PodList{}, client.InNamespace(e.Namespace), labels, from)
	Expect(err).NotTo(HaveOccurred())
	least, most, done := len(pods), len(pods), make(chan struct{})
	go func() {
		defer close(done)
		for change := range changes.ResultChan() {
			pod, ok := change.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			pods[pod.UID] = pod
			if change.Type == apiwatch.Deleted {
				delete(pods, pod.UID)
			}
			ready, staying := tally(pods)
			least, most = min(least, ready), max(most, staying)
		}
	}()
	return func() (int, int) {
		changes.Stop()
		<-done
		return least, most
	}
}

// tally counts the pods that are not on their way out, and those of them that are ready.
func tally(pods map[types.UID]*corev1.Pod) (ready, staying int) {
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || pod.Annotations[v1beta1.AnnotationDrain] != "" {
			continue
		}
		staying++
		if isReady(pod) {
			ready++
		}
	}
	return ready, staying
}
