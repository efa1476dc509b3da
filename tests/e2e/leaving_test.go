package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Workers that leave with a task on them that may not run twice. At last the cluster is deleted while at work.
// Stories of internal/cluster show the other causes, in TestDrain and TestNodes.
var _ = Describe("workers that leave", Ordered, func() {
	var team *env

	BeforeAll(func(ctx SpecContext) {
		team = made(ctx, "leaving", "clusters/leaving.yaml", nil)
	}, NodeTimeout(limit))

	It("finish what they are at when asked to retire, with a successor at work", func(ctx SpecContext) {
		before := team.staying(ctx, 2)
		old := before[0]
		busy := team.occupy(ctx, &old)
		begin := time.Now()
		annotate(ctx, &old, v1beta1.AnnotationRetire)
		team.becomes(ctx, team.dial(ctx), &old, headclient.Draining)
		successor := newcomer(before, team.staying(ctx, 2))
		told("asked to retire to successor Ready", begin)
		Expect(successor.Labels[v1beta1.LabelSlot]).NotTo(Equal(old.Labels[v1beta1.LabelSlot]))
		Expect(team.ready(ctx).Status.Groups[0].Draining).To(BeEquivalentTo(1))
		begin = time.Now()
		Expect(busy.release(ctx)).To(Equal(old.Name))
		gone(ctx, &old)
		told("its task done to pod gone", begin)
	}, SpecTimeout(limit))

	It("finish what they are at when they are evicted", func(ctx SpecContext) {
		before := team.staying(ctx, 2)
		old := before[0]
		busy := team.occupy(ctx, &old)
		Expect(evict(ctx, &old)).To(Succeed())
		newcomer(before, team.staying(ctx, 2))
		Expect(busy.release(ctx)).To(Equal(old.Name))
		gone(ctx, &old)
	}, SpecTimeout(limit))

	leftBehind(func() *env { return team })
	rolled(func() *env { return team })
})

// staying waits until as many workers as given are ready and not on their way out, and
// gives them in the order of their slots.
func (e *env) staying(ctx context.Context, n int) []corev1.Pod {
	GinkgoHelper()
	var pods []corev1.Pod
	eventually(ctx, fmt.Sprintf("%d workers that stay", n), func(ctx context.Context) (err error) {
		pods, err = kubernetes.PodsOf(ctx, e.NamespacedName, v1beta1.RoleWorker)
		pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool {
			return pod.DeletionTimestamp != nil || pod.Annotations[v1beta1.AnnotationDrain] != "" || !isReady(&pod)
		})
		if err == nil && len(pods) != n {
			err = fmt.Errorf("there are %d", len(pods))
		}
		return err
	})
	return inOrder(pods)
}

// inOrder sorts workers by their slots, of which there are fewer than ten.
func inOrder(pods []corev1.Pod) []corev1.Pod {
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return strings.Compare(a.Labels[v1beta1.LabelSlot], b.Labels[v1beta1.LabelSlot])
	})
	return pods
}

func isReady(pod *corev1.Pod) bool { return !readySince(pod).IsZero() }

// readySince returns since when a pod is Ready, the zero time where it is not.
func readySince(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// newcomer is the one pod that was not there before.
func newcomer(before, now []corev1.Pod) corev1.Pod {
	GinkgoHelper()
	fresh := slices.DeleteFunc(slices.Clone(now), func(pod corev1.Pod) bool { return slices.Contains(uids(before), pod.UID) })
	Expect(fresh).To(HaveLen(1))
	return fresh[0]
}

// drainFor sets drainSeconds, and waits until the operator knows.
func (e *env) drainFor(ctx context.Context, seconds int32) {
	GinkgoHelper()
	e.edit(ctx, func(spec *v1beta1.ComputeClusterSpec) { spec.WorkerGroups[0].DrainSeconds = &seconds })
	e.ready(ctx)
}

// toldToEnd waits until a pod is deleted and has its grace period.
func toldToEnd(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	eventually(ctx, pod.Name+" to be told to end", func(ctx context.Context) error {
		var now corev1.Pod
		err := kubernetes.Get(ctx, client.ObjectKeyFromObject(pod), &now)
		if err == nil && now.DeletionTimestamp == nil {
			err = errors.New("it is not")
		}
		return err
	})
}

// annotate sets an annotation, as kubectl annotate does.
func annotate(ctx context.Context, obj client.Object, name string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"by a test"}}}`, name)
	Expect(kubernetes.Patch(ctx, obj.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// evict asks for a pod's end, as kubectl drain does.
func evict(ctx context.Context, pod *corev1.Pod) error {
	return kubernetes.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}})
}
