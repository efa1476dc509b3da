package service

import (
	"context"
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestTraffic_OpensBeforeItCloses: otherwise nobody would serve in between.
func TestTraffic_OpensBeforeItCloses(t *testing.T) {
	label := naming.ServeLabel("text")
	former := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "former", UID: "former", Labels: map[string]string{label: v1beta1.ServeOn},
	}}
	next := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "next", UID: "next"}}
	var written []string
	api := fake.NewClientBuilder().WithObjects(former, next).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, pod client.Object, patch client.Patch, with ...client.PatchOption) error {
			written = append(written, pod.GetName())
			return c.Patch(ctx, pod, patch, with...)
		},
	}).Build()
	r := &Reconciler{Writer: &kube.Writer{Client: api, Live: api}, Clock: clocktesting.NewFakePassiveClock(at())}
	if err := r.labelTraffic(t.Context(), text(), Plan{Open: []*corev1.Pod{next}, Close: []*corev1.Pod{former}}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"next", "former"}; !slices.Equal(written, want) {
		t.Errorf("written: %v, want %v", written, want)
	}
}

// TestApply_KeepsTheRevisionBeforeTheRecord: an operator that dies in between must find the version that the record names.
func TestApply_KeepsTheRevisionBeforeTheRecord(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1beta1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	var written []string
	service, failed := text(), errors.New("the API server is away")
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(service).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return failed },
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
			written = append(written, obj.GetName())
			return nil
		},
	}).Build()
	r := &Reconciler{Writer: &kube.Writer{Client: api, Live: api}, Live: api, Clock: clocktesting.NewFakePassiveClock(at())}
	keep := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "text-1"}}
	if _, err := r.apply(t.Context(), service, &Plan{Keep: keep, Record: &Record{}}); !errors.Is(err, failed) || len(written) > 0 {
		t.Errorf("the revision could not be kept (%v), and written are %v", err, written)
	}
}
