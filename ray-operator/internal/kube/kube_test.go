package kube_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// started is a world with a cluster, not reconciled, and a writer on it.
func started(t *testing.T) (*testkit.World, *kube.Writer, *v1beta1.ComputeCluster) {
	t.Helper()
	w := testkit.NewWorld(t)
	w.Create(testkit.Cluster("demo"))
	return w, &kube.Writer{Client: w.Client, Live: w.Client}, w.Cluster("demo")
}

func TestCreateTwice(t *testing.T) {
	w, writer, of := started(t)
	first, second := pod.Head(of, 1), pod.Head(of, 1)
	if made, err := writer.Create(w.Ctx, first); err != nil || !made || first.UID == "" {
		t.Fatalf("made %v, UID %q, %v", made, first.UID, err)
	}
	if made, err := writer.Create(w.Ctx, second); err != nil || made {
		t.Fatalf("made %v, %v", made, err)
	}
	if second.UID != first.UID || second.CreationTimestamp != first.CreationTimestamp {
		t.Errorf("UID %q, want that of the one that is there, %q", second.UID, first.UID)
	}
}

func TestCreateUnderATakenName(t *testing.T) {
	for name, test := range map[string]struct {
		taken          func(*corev1.Pod)
		leaving        bool
		wait, conflict bool
	}{
		"someone's":            {taken: func(p *corev1.Pod) { p.OwnerReferences = nil }, conflict: true},
		"another cluster's":    {taken: func(p *corev1.Pod) { p.OwnerReferences[0].UID, p.OwnerReferences[0].Name = "x", "x" }, conflict: true},
		"another kind's":       {taken: func(p *corev1.Pod) { p.OwnerReferences[0].UID, p.OwnerReferences[0].Kind = "x", "Job" }, conflict: true},
		"a former namesake's":  {taken: func(p *corev1.Pod) { p.OwnerReferences[0].UID = "former" }, wait: true},
		"ours, on its way out": {taken: func(*corev1.Pod) {}, leaving: true, wait: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, writer, of := started(t)
			there := pod.Head(of, 1)
			test.taken(there)
			w.Create(there)
			if test.leaving {
				w.Delete(there)
			}
			made, err := writer.Create(w.Ctx, pod.Head(of, 1))
			finding, conflict := fault.Finding(err)
			if made || fault.IsWait(err) != test.wait || conflict != test.conflict || conflict && finding.Code != "NameConflict" {
				t.Errorf("made %v, %v", made, err)
			}
		})
	}
}

// TestDeleteIsOfTheOneJudged: a successor under the name stays.
func TestDeleteIsOfTheOneJudged(t *testing.T) {
	w, writer, of := started(t)
	judged, successor := pod.Head(of, 1), pod.Head(of, 1)
	w.Create(judged)
	w.Force(judged)
	if err := writer.Delete(w.Ctx, judged, nil); err != nil {
		t.Fatalf("that it is gone already is success: %v", err)
	}
	w.Create(successor)
	if err := writer.Delete(w.Ctx, judged, nil); err != nil {
		t.Fatalf("that another has its name is success: %v", err)
	}
	if head := w.Head("demo"); head.UID != successor.UID {
		t.Errorf("the successor is gone")
	}
	grace := int64(7)
	if err := writer.Delete(w.Ctx, successor, &grace); err != nil {
		t.Fatal(err)
	}
	if left := w.Pods("demo"); *left[0].DeletionGracePeriodSeconds != 7 {
		t.Errorf("grace %d", *left[0].DeletionGracePeriodSeconds)
	}
}

func TestAnnotateIsOfWhatWasSeen(t *testing.T) {
	w, writer, of := started(t)
	stale := of.DeepCopy()
	if err := writer.Annotate(w.Ctx, of, "a", "1"); err != nil {
		t.Fatal(err)
	}
	if err := writer.Annotate(w.Ctx, of, "a", "2"); err != nil {
		t.Fatalf("the object was not brought up to date: %v", err)
	}
	if err := writer.Annotate(w.Ctx, stale, "a", "3"); !apierrors.IsConflict(err) {
		t.Errorf("a stale object was annotated: %v", err)
	}
	if have := w.Cluster("demo").Annotations["a"]; have != "2" {
		t.Errorf("the annotation is %q", have)
	}
}

func TestMendIsOfTheOneSeen(t *testing.T) {
	w, writer, of := started(t)
	made := desired.HeadService(of, 1)
	made.Annotations = map[string]string{"ours": "1"}
	if _, err := writer.Create(w.Ctx, made); err != nil {
		t.Fatal(err)
	}
	theirs := made.DeepCopy()
	theirs.Labels["theirs"], theirs.Spec.PublishNotReadyAddresses = "1", false
	w.Must(w.Client.Update(w.Ctx, theirs))
	if err := writer.Mend(w.Ctx, made, desired.HeadService(of, 2)); err != nil {
		t.Fatal(err)
	}
	have := service(w)
	if have.Labels["theirs"] != "1" || have.Annotations["ours"] != "" || !have.Spec.PublishNotReadyAddresses ||
		have.Spec.Selector[v1beta1.LabelEpoch] != "2" {
		t.Errorf("labels %v, annotations %v, spec %+v", have.Labels, have.Annotations, have.Spec)
	}
	former := made.DeepCopy()
	former.UID = "another"
	if err := writer.Mend(w.Ctx, former, desired.HeadService(of, 3)); err != nil {
		t.Errorf("that another has the name is success: %v", err)
	}
	if have := service(w); have.Spec.Selector[v1beta1.LabelEpoch] != "2" {
		t.Errorf("a successor was changed: %v", have.Spec.Selector)
	}
}

func service(w *testkit.World) *corev1.Service {
	w.Helper()
	var found corev1.Service
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: testkit.Namespace, Name: "demo-head"}, &found))
	return &found
}

func TestNoteIsOfTheOneSeen(t *testing.T) {
	w, writer, of := started(t)
	made := pod.Head(of, 1)
	if _, err := writer.Create(w.Ctx, made); err != nil {
		t.Fatal(err)
	}
	seen := made.DeepCopy()
	made.Labels["later"] = "1"
	w.Must(w.Client.Update(w.Ctx, made))
	if err := writer.Note(w.Ctx, seen, "a", "1"); err != nil {
		t.Fatalf("a change of something else kept it from being noted: %v", err)
	}
	if have := w.Head("demo"); have.Annotations["a"] != "1" || have.Labels["later"] != "1" {
		t.Errorf("annotations %v, labels %v", have.Annotations, have.Labels)
	}
	seen.UID = "another"
	if err := writer.Note(w.Ctx, seen, "a", "2"); err != nil || w.Head("demo").Annotations["a"] != "1" {
		t.Errorf("a successor was noted on: %v, %v", err, w.Head("demo").Annotations)
	}
}

func TestDeleteSeenIsOfWhatWasSeen(t *testing.T) {
	w, writer, of := started(t)
	stale := of.DeepCopy()
	if err := writer.Annotate(w.Ctx, of, "a", "1"); err != nil {
		t.Fatal(err)
	}
	if err := writer.DeleteSeen(w.Ctx, stale); !apierrors.IsConflict(err) {
		t.Errorf("a stale object was deleted: %v", err)
	}
	for _, what := range []string{"the object", "one that is gone"} {
		if err := writer.DeleteSeen(w.Ctx, of); err != nil {
			t.Errorf("delete %s: %v", what, err)
		}
	}
}

func TestStatusOfOneThatIsGone(t *testing.T) {
	w, writer, of := started(t)
	w.Delete(of)
	wanted := of.DeepCopy()
	wanted.Status.Phase = v1beta1.PhaseReady
	if err := writer.Status(w.Ctx, of, wanted); err != nil {
		t.Errorf("that the object is gone is success: %v", err)
	}
	if err := w.Client.Get(w.Ctx, client.ObjectKeyFromObject(of), of); !apierrors.IsNotFound(err) {
		t.Errorf("the object is back: %v", err)
	}
}

// TestCreate_TakesNothingForged walks what the operator creates, the kinds of owners, and the marks of each object.
func TestCreate_TakesNothingForged(t *testing.T) {
	w, _, of := started(t)
	by := func(kind string, labels, annotations map[string]string) metav1.ObjectMeta {
		owner := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Name: "owner", UID: "owner"}}
		return metav1.ObjectMeta{
			Namespace: testkit.Namespace, Name: "made", Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1beta1.GroupVersion.WithKind(kind))},
		}
	}
	type words = map[string]string
	for name, wanted := range map[string]client.Object{
		"cluster of a job":     &v1beta1.ComputeCluster{ObjectMeta: by("ClusterJob", words{v1beta1.LabelJob: "owner"}, nil)},
		"cluster of a service": &v1beta1.ComputeCluster{ObjectMeta: by("ClusterService", words{v1beta1.LabelService: "owner"}, words{v1beta1.AnnotationRevisionCluster: "1"})},
		"job of a schedule":    &v1beta1.ClusterJob{ObjectMeta: by("ClusterJobSchedule", words{v1beta1.LabelSchedule: "owner"}, nil)},
		"version of a service": &appsv1.ControllerRevision{ObjectMeta: by("ClusterService", words{v1beta1.LabelService: "owner"}, nil)},
		"pod":                  pod.Head(of, 1), "Service": desired.HeadService(of, 1), "Secret": desired.TokenSecret(of, "x"),
		"NetworkPolicy": desired.NetworkPolicy(of, desired.Site{}),
	} {
		check := func(what string, forged client.Object, isOurs bool) {
			t.Helper()
			forged.SetUID("there")
			api := fake.NewClientBuilder().WithScheme(w.Client.Scheme()).WithObjects(forged).Build()
			copied, _ := wanted.DeepCopyObject().(client.Object) // the copy of an object is one
			made, err := (&kube.Writer{Client: api, Live: api}).Create(t.Context(), copied)
			finding, _ := fault.Finding(err)
			if made || isOurs != (err == nil) || !isOurs && finding.Code != "NameConflict" {
				t.Errorf("%s with %s: made %v, %v", name, what, made, err)
			}
		}
		copied := func() client.Object {
			object, _ := wanted.DeepCopyObject().(client.Object)
			return object
		}
		for _, version := range []string{"heliostat.dev/v1beta1", "heliostat.dev/v2", "heliostat.dev.example/v1", "v1"} {
			for _, kind := range []string{"ComputeCluster", "ClusterJob", "ClusterService", "ClusterJobSchedule"} {
				for _, controls := range []bool{true, false} {
					forged := copied()
					owner := wanted.GetOwnerReferences()[0]
					owner.APIVersion, owner.Kind, owner.Controller = version, kind, &controls
					forged.SetOwnerReferences([]metav1.OwnerReference{owner})
					check(fmt.Sprint(version, kind, controls), forged, controls && strings.HasPrefix(version, "heliostat.dev/"))
				}
			}
		}
		for _, key := range []string{v1beta1.LabelJob, v1beta1.LabelService, v1beta1.LabelSchedule, v1beta1.AnnotationRevisionCluster} {
			for _, of := range []func(client.Object) map[string]string{client.Object.GetLabels, client.Object.GetAnnotations} {
				if of(wanted)[key] == "" {
					continue
				}
				without, other := copied(), copied()
				delete(of(without), key)
				of(other)[key] = "other"
				check("no "+key, without, false)
				check("another "+key, other, false)
			}
		}
	}
}
