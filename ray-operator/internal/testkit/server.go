package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// graceFinalizer keeps a leaving pod in the fake client, which has no grace period.
const graceFinalizer = "testkit/grace"

// server makes the fake client behave as an API server does where the operator leans on
// it: UIDs, generations, grace periods, UID preconditions, and writes that change
// nothing. One write at a time: every revision is a state that a watcher could see.
type server struct {
	client.WithWatch
	tracker clienttesting.ObjectTracker
	clock   clock.PassiveClock
	mu      sync.Mutex
	// latest is every object as it is now; the fake client's own reads are slow.
	latest *view
	made   int
	former map[string]int
	// tell is told of every revision, in order.
	tell func(Event)
	// admit may refuse a create.
	admit func(client.Object) error
}

// shared is what every server needs and none changes. Its scheme is small, because the
// fake client walks through all of it at each write.
var shared = sync.OnceValue(func() (parts struct {
	scheme *runtime.Scheme
	codecs serializer.CodecFactory
}) {
	parts.scheme = runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(parts.scheme), v1alpha1.AddToScheme(parts.scheme)); err != nil {
		panic(err)
	}
	parts.codecs = serializer.NewCodecFactory(parts.scheme)
	return parts
})

func newServer(now clock.PassiveClock, tell func(Event)) *server {
	parts := shared()
	s := &server{
		// The tracker without field managers: it applies as a strategic merge, which is the
		// same for one field owner that always applies the same fields, and far faster.
		tracker: clienttesting.NewObjectTracker(parts.scheme, parts.codecs.UniversalDecoder()),
		clock:   now, former: map[string]int{}, tell: tell, latest: newView(parts.scheme),
		admit: func(client.Object) error { return nil },
	}
	s.WithWatch = fake.NewClientBuilder().WithScheme(parts.scheme).WithObjectTracker(s.tracker).
		WithStatusSubresource(&v1alpha1.ComputeCluster{}).WithGlobalResourceVersionCounter().
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				return s.latest.Get(ctx, key, obj, opts...)
			},
			List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				return s.latest.List(ctx, list, opts...)
			},
			Create: s.create, Delete: s.delete, Update: s.update, Patch: s.patch, Apply: s.apply,
			SubResourceUpdate: s.updateStatus, SubResourcePatch: s.patchStatus, SubResourceCreate: s.bind,
		}).Build()
	return s
}

func (s *server) publish(kind watch.EventType, obj client.Object) {
	event := Event{kind, obj.DeepCopyObject().(client.Object)}
	s.latest.push(event)
	s.latest.deliver(0)
	s.tell(event)
}

func (s *server) create(ctx context.Context, below client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(obj); err != nil {
		return err
	}
	made := obj.DeepCopyObject().(client.Object)
	made.SetUID(s.uid(made))
	made.SetCreationTimestamp(metav1.NewTime(s.clock.Now().Truncate(time.Second)))
	made.SetGeneration(1)
	switch made := made.(type) {
	case *corev1.Secret:
		fillData(made)
	case *corev1.Pod:
		made.Status = corev1.PodStatus{Phase: corev1.PodPending}
		if made.Spec.TerminationGracePeriodSeconds == nil {
			grace := int64(30)
			made.Spec.TerminationGracePeriodSeconds = &grace
		}
	}
	if err := below.Create(ctx, made, opts...); err != nil {
		return err
	}
	set(obj, made)
	s.publish(watch.Added, made)
	return nil
}

func fillData(secret *corev1.Secret) {
	for name, text := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[name] = []byte(text)
	}
	secret.StringData = nil
}

// uid numbers objects, except that clusters count by name: pods' names follow from the
// cluster's UID and shall not depend on what else was made.
func (s *server) uid(obj client.Object) types.UID {
	if _, ok := obj.(*v1alpha1.ComputeCluster); ok {
		s.former[obj.GetName()]++
		return types.UID(fmt.Sprintf("%s-%d", obj.GetName(), s.former[obj.GetName()]))
	}
	s.made++
	return types.UID(fmt.Sprintf("uid-%d", s.made))
}

// delete removes an object if it is the one meant. A pod gets its grace period first,
// which a second delete can only shorten.
func (s *server) delete(ctx context.Context, below client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := obj.DeepCopyObject().(client.Object)
	if err := s.latest.Get(ctx, client.ObjectKeyFromObject(obj), found); err != nil {
		return err
	}
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	if want := options.Preconditions; want != nil && want.UID != nil && *want.UID != found.GetUID() {
		return conflict(found, "the UID in the precondition does not match")
	}
	if pod, ok := found.(*corev1.Pod); ok {
		grace := *pod.Spec.TerminationGracePeriodSeconds
		if options.GracePeriodSeconds != nil {
			grace = *options.GracePeriodSeconds
		}
		if grace > 0 {
			return s.terminate(pod, grace)
		}
	}
	if err := s.tracker.Delete(gvrOf(found), found.GetNamespace(), found.GetName()); err != nil {
		return fmt.Errorf("testkit: delete %s: %w", found.GetName(), err)
	}
	s.publish(watch.Deleted, found)
	return nil
}

func (s *server) terminate(pod *corev1.Pod, grace int64) error {
	begin := s.clock.Now().Truncate(time.Second)
	if pod.DeletionTimestamp != nil {
		begin = pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
		if grace >= *pod.DeletionGracePeriodSeconds {
			return nil
		}
	}
	end := metav1.NewTime(begin.Add(time.Duration(grace) * time.Second))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, &grace
	pod.Finalizers = []string{graceFinalizer}
	return s.overwrite(pod)
}

// overwrite stores what the fake client itself refuses to write, as a new revision.
func (s *server) overwrite(obj client.Object) error {
	var version int
	if _, err := fmt.Sscan(obj.GetResourceVersion(), &version); err != nil {
		return fmt.Errorf("testkit: read the resourceVersion of %s: %w", obj.GetName(), err)
	}
	obj.SetResourceVersion(fmt.Sprint(version + 1_000_000)) // clear of the fake client's own counter
	if err := s.store(obj); err != nil {
		return err
	}
	s.publish(watch.Modified, obj)
	return nil
}

// rewrite is the kubelet's and the scheduler's way to change a pod: around the fake
// client, whose merging of objects costs most of a test's time.
func (s *server) rewrite(ctx context.Context, pod *corev1.Pod, edit func(*corev1.Pod)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var there corev1.Pod
	if err := s.latest.Get(ctx, client.ObjectKeyFromObject(pod), &there); err != nil {
		return err
	}
	if there.ResourceVersion != pod.ResourceVersion {
		return conflict(pod, "the pod was changed")
	}
	edit(&there)
	return s.overwrite(&there)
}

func (s *server) store(obj client.Object) error {
	stored := obj.DeepCopyObject()
	if err := s.tracker.Update(gvrOf(obj), stored, obj.GetNamespace()); err != nil {
		return fmt.Errorf("testkit: store %s: %w", obj.GetName(), err)
	}
	return nil
}

func (s *server) update(ctx context.Context, below client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
	return s.change(ctx, obj, func() error { return below.Update(ctx, obj, opts...) })
}

func (s *server) patch(ctx context.Context, below client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return s.change(ctx, obj, func() error { return below.Patch(ctx, obj, patch, opts...) })
}

func (s *server) updateStatus(ctx context.Context, below client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if pod, ok := obj.(*corev1.Pod); ok {
		return s.rewrite(ctx, pod, func(there *corev1.Pod) { there.Status = pod.Status })
	}
	return s.change(ctx, obj, func() error { return below.SubResource(sub).Update(ctx, obj, opts...) })
}

//shape:dictated sigs.k8s.io/controller-runtime/pkg/client/interceptor.Funcs
func (s *server) patchStatus(
	ctx context.Context, below client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	return s.change(ctx, obj, func() error { return below.SubResource(sub).Patch(ctx, obj, patch, opts...) })
}

// bind puts a pod on a node, as the scheduler asks for.
//
//shape:dictated sigs.k8s.io/controller-runtime/pkg/client/interceptor.Funcs
func (s *server) bind(ctx context.Context, _ client.Client, _ string, obj, sub client.Object, _ ...client.SubResourceCreateOption) error {
	pod, isPod := obj.(*corev1.Pod)
	binding, isBinding := sub.(*corev1.Binding)
	if !isPod || !isBinding {
		return fmt.Errorf("testkit: create %T of %T", sub, obj)
	}
	return s.rewrite(ctx, pod, func(there *corev1.Pod) { there.Spec.NodeName = binding.Target.Name })
}

func (s *server) apply(ctx context.Context, below client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	text, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("testkit: apply %T: %w", config, err)
	}
	var obj, there corev1.Service // the one kind that the operator applies
	if err := json.Unmarshal(text, &obj); err != nil {
		return fmt.Errorf("testkit: apply %T: %w", config, err)
	}
	if err := s.latest.Get(ctx, client.ObjectKeyFromObject(&obj), &there); err == nil && obj.UID != "" && obj.UID != there.UID {
		return conflict(&obj, "the UID does not match")
	}
	return s.change(ctx, &obj, func() error { return below.Apply(ctx, config, opts...) })
}

// change makes a write, counts generations as the API server does, and takes back the
// resourceVersion of a write that changed nothing.
func (s *server) change(ctx context.Context, obj client.Object, write func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := client.ObjectKeyFromObject(obj)
	before := obj.DeepCopyObject().(client.Object)
	if err := s.latest.Get(ctx, name, before); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	read, err := s.tracker.Get(gvrOf(before), name.Namespace, name.Name)
	if err != nil {
		return fmt.Errorf("testkit: read back: %w", err)
	}
	after := read.(client.Object)
	after.SetManagedFields(nil)
	defer func() { keepIdentity(obj, after) }()
	unchanged := after.DeepCopyObject().(client.Object)
	unchanged.SetResourceVersion(before.GetResourceVersion())
	if equality.Semantic.DeepEqual(before, unchanged) {
		after = unchanged
		return s.store(after)
	}
	if now, ok := after.(*v1alpha1.ComputeCluster); ok && !equality.Semantic.DeepEqual(before.(*v1alpha1.ComputeCluster).Spec, now.Spec) {
		now.Generation++
		if err := s.store(now); err != nil {
			return err
		}
	}
	s.publish(watch.Modified, after)
	return nil
}

func keepIdentity(obj, from client.Object) {
	obj.SetResourceVersion(from.GetResourceVersion())
	obj.SetGeneration(from.GetGeneration())
}

func conflict(obj client.Object, why string) error {
	return apierrors.NewConflict(gvrOf(obj).GroupResource(), obj.GetName(), errors.New(why))
}

func gvrOf(obj client.Object) schema.GroupVersionResource {
	gvk, err := apiutil.GVKForObject(obj, shared().scheme)
	if err != nil {
		panic(fmt.Errorf("testkit: find the kind of %T: %w", obj, err))
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	return gvr
}
