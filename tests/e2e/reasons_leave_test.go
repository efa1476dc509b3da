package e2e

import (
	"context"
	"errors"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Causes that make a worker leave, or nodes that turn it away. The workers' head is kept
// off, so that they run and never become ready.
var _ = Describe("why a worker has to leave", Label("reasons", live.AcceptLabel), func() {
	It("is told where a pod of higher priority takes its place", func(ctx SpecContext) {
		c := cause{
			name: "a pod of higher priority takes its place", reason: reason.Preempted, words: "was preempted on node ",
			shown: disruptedBy(corev1.PodReasonPreemptionByScheduler),
		}
		node := nodes(ctx)[0].Name
		low, high := priorities(ctx)
		devices := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
		c.spoil = func(of *v1beta1.NodeSpec) {
			pod, ray := template(of)
			of.Size = nil
			ray.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": devices["nvidia.com/gpu"], corev1.ResourceMemory: resource.MustParse("512Mi")}}
			pod.Spec.PriorityClassName, pod.Spec.NodeSelector = low, map[string]string{corev1.LabelHostname: node}
		}
		c.strike(ctx, func(worker *corev1.Pod) {
			zero := int64(0)
			Expect(kubernetes.Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: worker.Namespace, Name: "important"},
				Spec: corev1.PodSpec{
					PriorityClassName: high, NodeSelector: map[string]string{corev1.LabelHostname: node}, TerminationGracePeriodSeconds: &zero,
					Containers: []corev1.Container{{
						Name: "a", Image: rayImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "600"},
						Resources: corev1.ResourceRequirements{Limits: devices},
					}},
				},
			})).To(Succeed())
		})
	}, Label(localkubeLabel), SpecTimeout(limit))

	It("is told where the eviction API sends it away", func(ctx SpecContext) {
		c := cause{
			name: "the eviction API sends it away", reason: reason.Evicted, words: "by the eviction API, as kubectl drain and autoscalers do",
			shown: disruptedBy("EvictionByEvictionAPI"), spoil: func(*v1beta1.NodeSpec) {},
		}
		c.strike(ctx, func(worker *corev1.Pod) {
			Expect(kubernetes.Kubernetes.PolicyV1().Evictions(worker.Namespace).Evict(ctx, &policyv1.Eviction{
				ObjectMeta: metav1.ObjectMeta{Namespace: worker.Namespace, Name: worker.Name},
			})).To(Succeed())
		})
	}, SpecTimeout(limit))

	It("is told by an event where it writes more to disk than it may", func(ctx SpecContext) {
		overDisk(ctx)
	}, SpecTimeout(limit))
})

var _ = Describe("nodes with a taint", Serial, Label("reasons", live.AcceptLabel, localkubeLabel), func() {
	It("are told of with the toleration that helps", func(ctx SpecContext) {
		c := cause{
			name:   "all nodes have a taint",
			reason: reason.Unschedulable, words: "2 have a taint that it does not tolerate. Add a toleration for the nodes' taints",
			shown: placeless, spoil: func(*v1beta1.NodeSpec) {},
		}
		reserve(ctx)
		for _, inspection := range c.inspect(ctx) {
			inspection.await(ctx)
		}
	}, SpecTimeout(limit))
})

// strike lets a worker run, does something to it, and waits until its group's status
// names the cause.
func (c *cause) strike(ctx context.Context, blow func(worker *corev1.Pod)) {
	GinkgoHelper()
	namespace := fresh(ctx)
	i, stop := c.watch(namespace)
	defer stop()
	cluster := c.cluster(namespace, v1beta1.RoleWorker)
	// A worker that waits for its head sits out its grace period.
	grace := int64(5)
	pod, _ := template(&cluster.Spec.WorkerGroups[0].NodeSpec)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	blow(runningWorker(ctx, cluster))
	i.await(ctx)
}

// runningWorker makes a cluster and waits until the containers of its worker run.
func runningWorker(ctx context.Context, cluster *v1beta1.ComputeCluster) *corev1.Pod {
	GinkgoHelper()
	Expect(kubernetes.Create(ctx, cluster)).To(Succeed())
	var worker corev1.Pod
	eventually(ctx, "a worker to run", func(ctx context.Context) error {
		pods, err := kubernetes.PodsOf(ctx, client.ObjectKeyFromObject(cluster), v1beta1.RoleWorker)
		if err == nil && (len(pods) != 1 || pods[0].Status.Phase != corev1.PodRunning) {
			err = errors.New("it does not yet")
		}
		if err == nil {
			worker = pods[0]
		}
		return err
	})
	return &worker
}

// watch looks from now on for the cause to strike the workers of a namespace.
func (c *cause) watch(namespace string) (inspection, context.CancelFunc) {
	GinkgoHelper()
	watching, stop := context.WithCancel(context.Background())
	return inspection{
		cause: c, of: v1beta1.RoleWorker, visible: c.visible(watching, namespace, podPrefix(v1beta1.RoleWorker)),
		told: watch(watching, namespace, &v1beta1.ComputeClusterList{}, c.names(v1beta1.RoleWorker)),
	}, stop
}

func disruptedBy(why string) func(client.Object) bool {
	return func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return false
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue && condition.Reason == why {
				return true
			}
		}
		return false
	}
}

// overDisk has a worker's sidecar write more than its limit, for which the kubelet ends
// the whole pod. By the time that it does, the operator may replace the pod at once, so
// the cause stands in the event about that.
func overDisk(ctx context.Context) {
	GinkgoHelper()
	namespace := fresh(ctx)
	c := cause{shown: func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		return ok && pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "Evicted"
	}}
	c.spoil = func(node *v1beta1.NodeSpec) {
		pod, _ := template(node)
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: "logs", Image: rayImage, ImagePullPolicy: corev1.PullIfNotPresent,
			Command:   []string{"sh", "-c", "head -c 50M /dev/zero >/tmp/log; sleep 600"},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1Mi")}},
		})
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	visible := c.visible(watching, namespace, podPrefix(v1beta1.RoleWorker))
	told := watch(watching, namespace, &corev1.EventList{}, func(object client.Object) bool {
		event := object.(*corev1.Event)
		return event.InvolvedObject.Kind == "ComputeCluster" && event.Reason == reason.WorkerFailed.Code && strings.Contains(event.Message, "was evicted from node ")
	})
	runningWorker(ctx, c.cluster(namespace, v1beta1.RoleWorker))
	shown, err := visible(ctx, limit, "the kubelet to evict the worker")
	Expect(err).NotTo(HaveOccurred())
	seen, err := told(ctx, patience, "an event that tells of it")
	Expect(err).NotTo(HaveOccurred())
	event := seen.Object.(*corev1.Event)
	reportTold(live.Told{
		Cause: "it writes more to disk than it may", Of: v1beta1.RoleWorker, Reason: event.Reason, Message: event.Message,
		Seconds: max(seen.At.Sub(shown.At).Seconds(), 0),
	})
}

// priorities makes two PriorityClasses, of which the second preempts.
func priorities(ctx context.Context) (low, high string) {
	GinkgoHelper()
	var names []string
	for value, preemption := range map[int32]corev1.PreemptionPolicy{100: corev1.PreemptNever, 1000: corev1.PreemptLowerPriority} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, Value: value, PreemptionPolicy: &preemption}
		Expect(kubernetes.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(kubernetes.Delete(ctx, class)).To(Succeed()) }, NodeTimeout(limit))
		if value == 100 {
			names = append([]string{class.Name}, names...)
		} else {
			names = append(names, class.Name)
		}
	}
	return names[0], names[1]
}

// reserve taints all nodes for as long as the spec runs.
func reserve(ctx context.Context) {
	GinkgoHelper()
	taint := corev1.Taint{Key: "example.com/reserved", Value: "team-b", Effect: corev1.TaintEffectNoSchedule}
	for _, node := range nodes(ctx) {
		seen := node.DeepCopy()
		node.Spec.Taints = append(node.Spec.Taints, taint)
		Expect(kubernetes.Patch(ctx, &node, client.MergeFrom(seen))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(kubernetes.Get(ctx, client.ObjectKeyFromObject(&node), &node)).To(Succeed())
			tainted := node.DeepCopy()
			node.Spec.Taints = nil
			for _, other := range tainted.Spec.Taints {
				if other.Key != taint.Key {
					node.Spec.Taints = append(node.Spec.Taints, other)
				}
			}
			Expect(kubernetes.Patch(ctx, &node, client.MergeFrom(tainted))).To(Succeed())
		}, NodeTimeout(limit))
	}
}
