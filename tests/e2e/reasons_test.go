package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// cause is one thing that keeps a pod from running, made to happen on purpose.
type cause struct {
	name string
	// reason is what the status must give, with these words in its message.
	reason reason.Reason
	words  string
	// prepare makes what has to be in the namespace first.
	prepare func(ctx context.Context, namespace string)
	// spoil makes it happen to a head or to the workers of a group.
	spoil func(*v1beta1.NodeSpec)
	// shown reports whether a pod or an event shows the cause. Without it the API server
	// refuses the pod, which nothing shows, and the time counts from the cluster on.
	shown func(client.Object) bool
}

// The two clusters that a cause is given to: in one its head, in the other its workers,
// whose head is kept off all nodes. So hardly any of them runs a Ray.
const (
	spoiltHead    = "solo"
	spoiltWorkers = "staff"
	group         = "cpu"
	release       = "2.60.0"
	rayImage      = "rayproject/ray:" + release
	// patience is for a cause to show and to be told of; what is promised is far less.
	patience = time.Minute
)

// inspection is a cause at work in a cluster: what is waited for.
type inspection struct {
	cause     *cause
	namespace string
	of        string
	begin     time.Time
	visible   func(context.Context, time.Duration, string) (live.Sighting, error)
	told      func(context.Context, time.Duration, string) (live.Sighting, error)
}

// inspect makes a namespace, and in it the clusters that a cause is given to.
func (c *cause) inspect(ctx context.Context) []inspection {
	GinkgoHelper()
	namespace := fresh(ctx)
	if c.prepare != nil {
		c.prepare(ctx, namespace)
	}
	watching, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	var all []inspection
	for _, of := range []string{v1beta1.RoleHead, v1beta1.RoleWorker} {
		cluster := c.cluster(namespace, of)
		i := inspection{cause: c, namespace: namespace, of: of, told: watch(watching, namespace, &v1beta1.ComputeClusterList{}, c.names(of))}
		if c.shown != nil {
			i.visible = c.visible(watching, namespace, podPrefix(of))
		}
		i.begin = time.Now()
		Expect(kubernetes.Create(ctx, cluster)).To(Succeed())
		all = append(all, i)
	}
	return all
}

// cluster is one whose head or workers have the cause.
func (c *cause) cluster(namespace, of string) *v1beta1.ComputeCluster {
	cluster := &v1beta1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: spoiltHead},
		Spec:       v1beta1.ComputeClusterSpec{RayVersion: release, ImagePullPolicy: corev1.PullIfNotPresent},
	}
	cluster.Spec.Head.Size = size("10m", "1536Mi")
	if of == v1beta1.RoleHead {
		c.spoil(&cluster.Spec.Head.NodeSpec)
		return cluster
	}
	cluster.Name = spoiltWorkers
	keepOff(&cluster.Spec.Head.NodeSpec)
	cluster.Spec.WorkerGroups = []v1beta1.WorkerGroup{{Name: group, NodeSpec: v1beta1.NodeSpec{Size: size("10m", "512Mi")}}}
	c.spoil(&cluster.Spec.WorkerGroups[0].NodeSpec)
	return cluster
}

func podPrefix(of string) string {
	if of == v1beta1.RoleHead {
		return spoiltHead + "-head-"
	}
	return spoiltWorkers + "-" + group + "-"
}

// names reports whether a cluster's status names the cause, everywhere it has to.
func (c *cause) names(of string) func(client.Object) bool {
	return func(object client.Object) bool {
		cluster := object.(*v1beta1.ComputeCluster)
		if of == v1beta1.RoleHead {
			return cluster.Name == spoiltHead && c.in(cluster, v1beta1.ConditionReady) && c.in(cluster, v1beta1.ConditionHeadReady)
		}
		return cluster.Name == spoiltWorkers && c.in(cluster, v1beta1.ConditionWorkersReady) &&
			len(cluster.Status.Groups) == 1 && cluster.Status.Groups[0].Reason == c.reason.Code
	}
}

func (c *cause) in(cluster *v1beta1.ComputeCluster, kind string) bool {
	condition := meta.FindStatusCondition(cluster.Status.Conditions, kind)
	return condition != nil && condition.Status == metav1.ConditionFalse && condition.Reason == c.reason.Code &&
		strings.Contains(condition.Message, c.words)
}

// visible watches the pods and the events about them for the cause.
func (c *cause) visible(ctx context.Context, namespace, prefix string) func(context.Context, time.Duration, string) (live.Sighting, error) {
	GinkgoHelper()
	if c.inEvents() {
		return watch(ctx, namespace, &corev1.EventList{}, func(object client.Object) bool {
			return strings.HasPrefix(object.(*corev1.Event).InvolvedObject.Name, prefix) && c.shown(object)
		})
	}
	return watch(ctx, namespace, &corev1.PodList{}, func(object client.Object) bool {
		return strings.HasPrefix(object.GetName(), prefix) && c.shown(object)
	})
}

// inEvents reports whether events show the cause: of volumes nothing else does.
func (c *cause) inEvents() bool { return c.shown(&corev1.Event{Reason: "FailedMount"}) }

// await waits until the status names the cause, and reports how long that took.
func (i inspection) await(ctx context.Context) {
	GinkgoHelper()
	shown := live.Sighting{At: i.begin}
	if i.visible != nil {
		var err error
		shown, err = i.visible(ctx, patience, fmt.Sprintf("Kubernetes to show of the %s: %s", i.of, i.cause.name))
		Expect(err).NotTo(HaveOccurred())
	}
	told, err := i.told(ctx, patience, fmt.Sprintf("the status to say %s with %q, as the %s has: %s", i.cause.reason.Code, i.cause.words, i.of, i.cause.name))
	Expect(err).NotTo(HaveOccurred())
	kind := v1beta1.ConditionHeadReady
	if i.of == v1beta1.RoleWorker {
		kind = v1beta1.ConditionWorkersReady
	}
	condition := meta.FindStatusCondition(told.Object.(*v1beta1.ComputeCluster).Status.Conditions, kind)
	reportTold(live.Told{
		Cause: i.cause.name, Of: i.of, Reason: condition.Reason, Message: condition.Message, Seconds: max(told.At.Sub(shown.At).Seconds(), 0),
	})
}

// reportTold puts a measured time into the report, by which make accept judges it.
func reportTold(told live.Told) {
	AddReportEntry(live.ToldEntry, told, ReportEntryVisibilityAlways)
}

func watch(ctx context.Context, namespace string, list client.ObjectList, match func(client.Object) bool) func(context.Context, time.Duration, string) (live.Sighting, error) {
	GinkgoHelper()
	wait, err := kubernetes.Sight(ctx, namespace, list, match)
	Expect(err).NotTo(HaveOccurred())
	return wait
}

// fresh makes a namespace that goes, with its services, jobs and clusters, when the specs of its container
// have run. It waits until there is room for a cluster in it.
func fresh(ctx context.Context) string {
	GinkgoHelper()
	Expect(leaving.untilTerminating(ctx)).To(Succeed())
	namespace, err := kubernetes.Namespace(ctx, "e2e")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(leaving.drop, namespace)
	return namespace
}

func size(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// template is the node's, with its ray container, made where there is none yet.
func template(node *v1beta1.NodeSpec) (*corev1.PodTemplateSpec, *corev1.Container) {
	if node.Template == nil {
		node.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: v1beta1.ContainerRay}}}}
	}
	return node.Template, &node.Template.Spec.Containers[0]
}

// keepOff keeps a pod off all nodes, so that it costs nothing.
func keepOff(node *v1beta1.NodeSpec) {
	pod, _ := template(node)
	pod.Spec.NodeSelector = map[string]string{"example.com/disk": "none"}
}

// waits reports whether a container waits for one of the reasons of the kubelet.
func waits(reasons ...string) func(client.Object) bool {
	return ofContainers(func(status corev1.ContainerStatus) bool {
		for _, reason := range reasons {
			if status.State.Waiting != nil && status.State.Waiting.Reason == reason {
				return true
			}
		}
		return false
	})
}

// ended reports whether a container ended with an error.
func ended() func(client.Object) bool {
	return ofContainers(func(status corev1.ContainerStatus) bool {
		for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
			if state.Terminated != nil && state.Terminated.ExitCode != 0 {
				return true
			}
		}
		return false
	})
}

func ofContainers(match func(corev1.ContainerStatus) bool) func(client.Object) bool {
	return func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return false
		}
		for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for i := range statuses {
				if match(statuses[i]) {
					return true
				}
			}
		}
		return false
	}
}

// placeless reports whether the scheduler says that a pod has no place.
func placeless(object client.Object) bool {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return true
		}
	}
	return false
}

// eventOf reports whether an event has a reason.
func eventOf(reason string) func(client.Object) bool {
	return func(object client.Object) bool {
		event, ok := object.(*corev1.Event)
		return ok && event.Reason == reason
	}
}
