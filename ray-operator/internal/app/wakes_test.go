package app

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

// cachedNamespace is a cache of one namespace in which every job and service refers to one cluster.
type cachedNamespace struct {
	client.Reader
	cluster  *v1beta1.ComputeCluster
	jobs     []v1beta1.ClusterJob
	services []v1beta1.ClusterService
	pods     []corev1.Pod
}

func (s cachedNamespace) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found, ok := into.(*v1beta1.ComputeCluster)
	if !ok || s.cluster == nil || s.cluster.Name != key.Name {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	s.cluster.DeepCopyInto(found)
	return nil
}

func (s cachedNamespace) List(_ context.Context, into client.ObjectList, by ...client.ListOption) error {
	switch list := into.(type) {
	case *v1beta1.ComputeClusterList:
		list.Items = []v1beta1.ComputeCluster{*s.cluster}
	case *v1beta1.ClusterJobList:
		for i := range s.jobs {
			if isFoundBy(&s.jobs[i], by...) {
				list.Items = append(list.Items, s.jobs[i])
			}
		}
	case *v1beta1.ClusterServiceList:
		list.Items = s.services
	case *corev1.PodList:
		list.Items = s.pods
	}
	return nil
}

// isFoundBy reports whether a job is among those that an index of the cache finds.
func isFoundBy(one *v1beta1.ClusterJob, by ...client.ListOption) bool {
	var options client.ListOptions
	options.ApplyOptions(by)
	for _, field := range index.Fields() {
		if _, is := field.Kind.(*v1beta1.ClusterJob); !is {
			continue
		}
		if value, asked := options.FieldSelector.RequiresExactMatch(field.Name); asked && !slices.Contains(field.Value(one), value) {
			return false
		}
	}
	return true
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// woken returns the names that a handler puts into a queue, sorted.
func woken(t *testing.T, tell func(context.Context, queue)) []string {
	t.Helper()
	filled := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer filled.ShutDown()
	tell(t.Context(), filled)
	var names []string
	for filled.Len() > 0 {
		request, _ := filled.Get()
		names = append(names, request.Name)
		filled.Done(request)
	}
	slices.Sort(names)
	return names
}

func jobOn(name string, head types.UID) v1beta1.ClusterJob {
	one := v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
	one.Spec.ClusterRef, one.Spec.Entrypoint = &v1beta1.ClusterReference{Name: "demo"}, "python x.py"
	if head != "" {
		one.Status.Attempts = []v1beta1.JobAttempt{{Number: 1, ClusterName: "demo", HeadUID: head}}
	}
	return one
}

func serviceOn(name string) v1beta1.ClusterService {
	one := v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
	one.Spec.ClusterRef = &v1beta1.ClusterReference{Name: "demo"}
	return one
}

func clusterNamed(name string, owners ...metav1.OwnerReference) *v1beta1.ComputeCluster {
	one := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, OwnerReferences: owners}}
	one.Spec.MaxConcurrentJobs = new(int32(1))
	return one
}

// TestPodsWake_ByWhatIsKeptOfThem: what a kubelet writes of a pod beside that costs no pass, and no look for its users.
func TestPodsWake_ByWhatIsKeptOfThem(t *testing.T) {
	base := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w", ResourceVersion: "1", Labels: map[string]string{}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "ray"}}},
	}
	kept := func(pod *corev1.Pod) *corev1.Pod {
		trimmed, err := newTrimmer().trim(pod)
		if err != nil {
			t.Fatal(err)
		}
		return trimmed.(*corev1.Pod)
	}
	now := metav1.Now()
	for _, c := range []struct {
		what   string
		change func(*corev1.Pod)
		want   bool
	}{
		{"its node", func(p *corev1.Pod) { p.Spec.NodeName = "a" }, true},
		{"its address", func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }, true},
		{"that it is ready", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}, true},
		{"why it waits", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}
		}, true},
		{"a label of ours", func(p *corev1.Pod) { p.Labels[v1beta1.LabelRole] = "x" }, true},
		{"a label of somebody's", func(p *corev1.Pod) { p.Labels["more"] = "x" }, false},
		{"that it goes", func(p *corev1.Pod) { p.DeletionTimestamp = &now }, true},
		{"its other addresses", func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: "fd00::1"}} }, false},
		{"the digest of its image", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "sha256:1" }, false},
		{"who wrote it", func(p *corev1.Pod) { p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}} }, false},
	} {
		changed := base.DeepCopy()
		changed.ResourceVersion = "2"
		c.change(changed)
		if got := wake.ChangesPod(wake.Change{Old: kept(base.DeepCopy()), New: kept(changed)}); got != c.want {
			t.Errorf("%s wakes: %t, want %t", c.what, got, c.want)
		}
	}
}

// TestNotItsStatus_LetsOthersThrough: what a pass over the object did not write itself, and what it wrote beside a status.
func TestNotItsStatus_LetsOthersThrough(t *testing.T) {
	known, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(known).WithStatusSubresource(&v1beta1.ComputeCluster{}).Build()
	own, err := kube.NewPending(api, known, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), &v1beta1.ComputeCluster{})
	if err != nil {
		t.Fatal(err)
	}
	before := clusterNamed("demo")
	if err := api.Create(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	told := before.DeepCopy()
	told.Status.Phase = "Ready"
	reconciler := own.Rest(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, own.Client(api).Status().Update(ctx, told)
	}))
	passes := notItsStatus(own)
	for _, c := range []struct {
		what string
		edit func(*v1beta1.ComputeCluster)
		want bool
	}{
		{"its own status", func(*v1beta1.ComputeCluster) {}, false},
		{"its own status after an edit", func(c *v1beta1.ComputeCluster) { c.Generation++ }, true},
		{"a label beside its own status", func(c *v1beta1.ComputeCluster) { c.Labels = map[string]string{"a": "b"} }, true},
		{"another's status", func(c *v1beta1.ComputeCluster) { c.ResourceVersion = "other" }, true},
	} {
		if _, err := reconciler.Reconcile(t.Context(), request("n", "demo")); err != nil {
			t.Fatal(err)
		}
		now := told.DeepCopy()
		c.edit(now)
		if got := passes.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: now}); got != c.want {
			t.Errorf("%s wakes: %t, want %t", c.what, got, c.want)
		}
	}
}

// TestCensus_ForgetsThoseThatGo: a namespace counts until the last of it is gone.
func TestCensus_ForgetsThoseThatGo(t *testing.T) {
	known, first, second := newCensus(), jobOn("first", ""), jobOn("second", "")
	counts := known.counts()
	for _, one := range []*v1beta1.ClusterJob{&first, &second} {
		if !counts.Create(event.CreateEvent{Object: one}) {
			t.Error("a job that comes is kept from its controller")
		}
	}
	if !counts.Delete(event.DeleteEvent{Object: &first}) {
		t.Error("a job that goes is kept from its controller")
	}
	if !known.has("n") || known.has("other") {
		t.Errorf("n has one: %t, another namespace: %t", known.has("n"), known.has("other"))
	}
	if counts.Delete(event.DeleteEvent{Object: &second}); known.has("n") {
		t.Error("the namespace counts though all are gone")
	}
}
