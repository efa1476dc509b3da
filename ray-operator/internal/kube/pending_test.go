package kube_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
)

// late is a cache that shows what a test lets it see.
type late struct {
	client.Client
	blind bool
	seen  map[string]client.Object
}

func (l *late) Get(ctx context.Context, name client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if held, is := l.seen[name.Name].(*corev1.Pod); is && l.blind {
		held.DeepCopyInto(into.(*corev1.Pod))
		return nil
	}
	if l.blind {
		return apierrors.NewNotFound(schema.GroupResource{}, name.Name)
	}
	return l.Client.Get(ctx, name, into, opts...)
}

// bench is a controller whose passes write what a test says, and the cache that it reads.
type bench struct {
	t      *testing.T
	cache  *late
	clock  *clocktesting.FakeClock
	own    *kube.Pending
	client client.Client
	act    func(context.Context)
	passes map[string]int
}

func newBench(t *testing.T, there ...client.Object) *bench {
	t.Helper()
	api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(there...).WithStatusSubresource(&corev1.Pod{}).Build()
	b := &bench{
		t: t, cache: &late{Client: api, seen: map[string]client.Object{}}, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)),
		passes: map[string]int{},
	}
	for _, obj := range there {
		held := &corev1.Pod{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(obj), held); err != nil {
			t.Fatal(err)
		}
		b.cache.seen[held.Name] = held
	}
	own, err := kube.NewPending(b.cache, clientgoscheme.Scheme, b.clock, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	b.own, b.client = own, own.Client(api)
	return b
}

// pass does a pass over an object, or finds that it rests.
func (b *bench) pass(name string) reconcile.Result {
	b.t.Helper()
	result, err := b.own.Rest(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		b.passes[request.Name]++
		if b.act != nil {
			b.act(ctx)
			b.act = nil
		}
		return reconcile.Result{}, nil
	})).Reconcile(b.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: name}})
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

func podNamed(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
}

// TestPending_HoldsBackOneObject: for its own writes until the cache shows them, and no other object.
func TestPending_HoldsBackOneObject(t *testing.T) {
	for name, write := range map[string]func(context.Context, client.Client) error{
		"create": func(ctx context.Context, c client.Client) error { return c.Create(ctx, podNamed("new")) },
		"patch": func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, podNamed("there"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
		},
		"status": func(ctx context.Context, c client.Client) error {
			return c.Status().Patch(ctx, podNamed("there"), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`)))
		},
		"delete": func(ctx context.Context, c client.Client) error { return c.Delete(ctx, podNamed("there")) },
		"apply": func(ctx context.Context, c client.Client) error {
			config := &unstructured.Unstructured{}
			config.SetAPIVersion("v1")
			config.SetKind("Pod")
			config.SetNamespace("n")
			config.SetName("there")
			config.SetLabels(map[string]string{"a": "b"})
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), client.FieldOwner("us"))
		},
	} {
		b := newBench(t, podNamed("there"))
		b.cache.blind = true
		b.act = func(ctx context.Context) {
			if err := write(ctx, b.client); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		b.pass("writes")
		if rests := b.pass("writes"); b.passes["writes"] != 1 || rests.RequeueAfter != 50*time.Millisecond {
			t.Errorf("%s: %d passes though the cache is late, the next after %s", name, b.passes["writes"], rests.RequeueAfter)
		}
		if b.pass("other"); b.passes["other"] != 1 {
			t.Errorf("%s: another object rests too", name)
		}
		b.cache.blind = false
		if b.pass("writes"); b.passes["writes"] != 2 {
			t.Errorf("%s: it rests though the cache shows what it wrote", name)
		}
	}
}

// TestPending_EndsAfterAWhile: what the cache never shows, such as a pod that is gone at once, holds nothing up for long.
func TestPending_EndsAfterAWhile(t *testing.T) {
	b := newBench(t)
	b.cache.blind = true
	b.act = func(ctx context.Context) {
		if err := b.client.Create(ctx, podNamed("gone")); err != nil {
			t.Fatal(err)
		}
	}
	b.pass("writes")
	b.clock.Step(5*time.Second - time.Millisecond)
	if b.pass("writes"); b.passes["writes"] != 1 {
		t.Error("it went on before the limit")
	}
	b.clock.Step(time.Millisecond)
	if b.pass("writes"); b.passes["writes"] != 2 {
		t.Error("it rests beyond the limit")
	}
}

// TestPending_KnowsItsOwnVersion: once, and no version that somebody else wrote.
func TestPending_KnowsItsOwnVersion(t *testing.T) {
	b := newBench(t, podNamed("there"))
	before, after := podNamed("there"), podNamed("there")
	if err := b.cache.Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil {
		t.Fatal(err)
	}
	b.act = func(ctx context.Context) {
		change := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`))
		if err := b.client.Status().Patch(ctx, after, change); err != nil {
			t.Fatal(err)
		}
	}
	b.pass("there")
	for _, event := range []struct {
		of   *corev1.Pod
		want bool
	}{{before, false}, {after, true}, {after, false}} {
		if got := b.own.Took(event.of); got != event.want {
			t.Errorf("version %s is the pass's own: %t, want %t", event.of.ResourceVersion, got, event.want)
		}
	}
}
