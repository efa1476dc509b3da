package kube

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestEveryWriteIsMeasured makes each write that a client can make; each takes a second
// and fails.
func TestEveryWriteIsMeasured(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	refused := errors.New("refused")
	refuse := func() error { clock.Step(time.Second); return refused }
	below := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(refusing(refuse)).Build()

	var told []string
	metered := Metered(below, clock, func(kind, verb string, err error, seconds float64) {
		if told = append(told, verb+" "+kind); seconds != 1 || !errors.Is(err, refused) {
			t.Errorf("%s %s took %v s and gave %v", verb, kind, seconds, err)
		}
	})
	ctx, pod := context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
	same, config := client.MergeFrom(pod), applycore.Pod("p", "n")
	status := metered.Status()
	for _, err := range []error{
		metered.Create(ctx, pod), metered.Delete(ctx, pod), metered.Update(ctx, pod), metered.Patch(ctx, pod, same), metered.Apply(ctx, config),
		metered.DeleteAllOf(ctx, pod), metered.SubResource("eviction").Create(ctx, pod, pod), status.Update(ctx, pod), status.Patch(ctx, pod, same),
		status.Apply(ctx, config),
	} {
		if !errors.Is(err, refused) {
			t.Errorf("the caller is told %v", err)
		}
	}
	want := []string{
		"create Pod", "delete Pod", "update Pod", "patch Pod", "patch Pod", "deletecollection Pod", "create Pod/eviction", "update Pod/status",
		"patch Pod/status", "patch Pod/status",
	}
	if !slices.Equal(told, want) {
		t.Errorf("measured were %v,\nwant %v", told, want)
	}
	if err := metered.Get(ctx, client.ObjectKeyFromObject(pod), pod); err == nil || len(told) != len(want) {
		t.Errorf("a read gave %v and measured %v", err, told)
	}
}

// refusing fails each write by one function.
func refusing(refuse func() error) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refuse() },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return refuse() },
		DeleteAllOf: func(context.Context, client.WithWatch, client.Object, ...client.DeleteAllOfOption) error {
			return refuse()
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return refuse() },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refuse()
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return refuse()
		},
		SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object, ...client.SubResourceCreateOption) error {
			return refuse()
		},
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return refuse()
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return refuse()
		},
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			return refuse()
		},
	}
}
