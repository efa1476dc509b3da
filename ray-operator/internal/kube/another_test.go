package kube_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
)

// TestNoteOfAnother: what a real API server says when a patch names a UID that is not that
// of the object: of a ConfigMap of Kubernetes 1.36 "metadata.uid: Invalid value: "x": field
// is immutable", of server-side apply a conflict.
func TestNoteOfAnother(t *testing.T) {
	pods, kind := schema.GroupResource{Resource: "pods"}, schema.GroupKind{Kind: "Pod"}
	for name, test := range map[string]struct {
		said error
		fine bool
	}{
		"gone":                     {apierrors.NewNotFound(pods, "p"), true},
		"a conflict":               {apierrors.NewConflict(pods, "p", nil), true},
		"another UID":              {apierrors.NewInvalid(kind, "p", field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "x", "field is immutable")}), true},
		"an annotation that is no": {apierrors.NewInvalid(kind, "p", field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations"), "x", "too long")}), false},
		"a right that is missing":  {apierrors.NewForbidden(pods, "p", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, of := started(t)
			there := pod.Head(of, 1)
			w.Create(there)
			below, ok := w.Client.(client.WithWatch)
			if !ok {
				t.Fatal("the world's client cannot watch")
			}
			through := interceptor.NewClient(below, interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return test.said
				},
			})
			writer := &kube.Writer{Client: through, Live: w.Client}
			if err := writer.Note(w.Ctx, there, v1beta1.AnnotationDrain, "x"); (err == nil) != test.fine {
				t.Errorf("noted: %v", err)
			}
		})
	}
}

func TestStatusOfOneThatChanged(t *testing.T) {
	w, writer, of := started(t)
	w.Annotate(w.Cluster("demo"), "a", "b")
	wanted := of.DeepCopy()
	wanted.Status.Phase = v1beta1.PhaseReady
	if err := writer.Status(w.Ctx, of, wanted); !apierrors.IsConflict(err) {
		t.Errorf("the status of an object that was changed since: %v", err)
	}
	if there := w.Cluster("demo"); there.Status.Phase != "" {
		t.Errorf("it was written: %q", there.Status.Phase)
	}
}

// TestStatus_IsReplaced: what is wanted no more goes, and nothing is written for an object that nobody has read.
func TestStatus_IsReplaced(t *testing.T) {
	w, writer, of := started(t)
	for _, phase := range []string{v1beta1.PhaseReady, ""} {
		wanted := of.DeepCopy()
		wanted.Status.Phase = phase
		if err := writer.Status(w.Ctx, of, wanted); err != nil || w.Cluster("demo").Status.Phase != phase {
			t.Errorf("phase %q: %v, %q", phase, err, w.Cluster("demo").Status.Phase)
		}
		of = w.Cluster("demo")
	}
	unread, wanted := of.DeepCopy(), of.DeepCopy()
	unread.ResourceVersion, wanted.Status.Phase = "", v1beta1.PhaseReady
	if err := writer.Status(w.Ctx, unread, wanted); err == nil || w.Cluster("demo").Status.Phase != "" {
		t.Errorf("an object that was not read: %v", err)
	}
}

// TestStatus_AnswersMetadata: the whole object is not decoded again, and the version is that of what was written.
func TestStatus_AnswersMetadata(t *testing.T) {
	w, _, of := started(t)
	below, is := w.Client.(client.WithWatch)
	if !is {
		t.Fatal("the world's client cannot watch")
	}
	var answer client.Object
	through := interceptor.NewClient(below, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, o ...client.SubResourcePatchOption) error {
			answer = obj
			return c.SubResource(sub).Patch(ctx, obj, patch, o...)
		},
	})
	wanted := of.DeepCopy()
	wanted.Status.Phase = v1beta1.PhaseReady
	if err := (&kube.Writer{Client: through, Live: w.Client}).Status(w.Ctx, of, wanted); err != nil {
		t.Fatal(err)
	}
	metadata, is := answer.(*metav1.PartialObjectMetadata)
	there := w.Cluster("demo")
	if !is || metadata.GroupVersionKind() != v1beta1.GroupVersion.WithKind("ComputeCluster") || metadata.ResourceVersion != there.ResourceVersion {
		t.Errorf("the answer is %T %+v, want metadata of version %s", answer, answer, there.ResourceVersion)
	}
}

// TestStatus_IsShortenedWhenRefused: who reads it is told something, and the next pass does not hang on it.
func TestStatus_IsShortenedWhenRefused(t *testing.T) {
	w, _, of := started(t)
	below, is := w.Client.(client.WithWatch)
	if !is {
		t.Fatal("the world's client cannot watch")
	}
	refusals := 0
	strict := interceptor.NewClient(below, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, o ...client.SubResourcePatchOption) error {
			written, err := patch.Data(obj)
			if err == nil && len(written) > 20_000 {
				refusals++
				err = apierrors.NewInvalid(schema.GroupKind{Kind: "ComputeCluster"}, obj.GetName(), nil)
			}
			if err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, o...)
		},
	})
	writer := &kube.Writer{Client: strict, Live: w.Client}
	wanted := of.DeepCopy()
	wanted.Status.Phase = v1beta1.PhaseReady
	long := strings.Repeat("ü", 20_000)
	for i := range 100 {
		wanted.Status.Conditions = append(wanted.Status.Conditions, metav1.Condition{Type: fmt.Sprint("C", i), Status: metav1.ConditionTrue, Reason: "R", Message: long})
	}
	if err := writer.Status(w.Ctx, of, wanted); err != nil || refusals != 1 {
		t.Fatalf("%v after %d refusals", err, refusals)
	}
	there := w.Cluster("demo").Status
	if there.Phase != v1beta1.PhaseReady || len(there.Conditions) != 32 || there.Conditions[1].Message != strings.Repeat("ü", 128) {
		t.Errorf("written was %q with %d conditions, one %.300q", there.Phase, len(there.Conditions), there.Conditions[1].Message)
	}
	refuse := interceptor.NewClient(below, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "ComputeCluster"}, "demo", nil)
		},
	})
	if err := (&kube.Writer{Client: refuse, Live: w.Client}).Status(w.Ctx, of, wanted); !apierrors.IsInvalid(err) {
		t.Errorf("refused twice: %v", err)
	}
}

func TestEditOfOneThatChanged(t *testing.T) {
	w, writer, of := started(t)
	there := pod.Head(of, 1)
	w.Create(there)
	seen := there.DeepCopy()
	w.Annotate(there, "a", "b")
	wanted := seen.DeepCopy()
	wanted.Labels["c"] = "d"
	if err := writer.Edit(w.Ctx, seen, wanted); !apierrors.IsConflict(err) {
		t.Errorf("edit a stale object: %v", err)
	}
	var now corev1.Pod
	w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(there), &now))
	wanted = now.DeepCopy()
	wanted.Labels["c"] = "d"
	if err := writer.Edit(w.Ctx, &now, wanted); err != nil || wanted.Labels["c"] != "d" || wanted.Annotations["a"] != "b" {
		t.Errorf("edited to %v, %v: %v", wanted.Labels, wanted.Annotations, err)
	}
}
