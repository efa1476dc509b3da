package testkit_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func service(w *testkit.World) *corev1.Service {
	w.Helper()
	made := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: testkit.Namespace},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "a"}},
	}
	w.Create(made)
	return made
}

// TestApplyTakesBack is what server-side apply owes us: what an apply set and the next one
// leaves out goes; what another set stays, and so does what was set by a create, which is
// another owner than an apply of the same name.
func TestApplyTakesBack(t *testing.T) {
	w := testkit.NewWorld(t)
	made := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: testkit.Namespace, Labels: map[string]string{"made": "1"}}}
	w.Must(w.Client.Create(w.Ctx, made, client.FieldOwner("us")))
	apply := func(labels map[string]string) {
		config := applycore.Service("a", testkit.Namespace).WithUID(made.UID).WithLabels(labels)
		w.Must(w.Client.Apply(w.Ctx, config, client.FieldOwner("us"), client.ForceOwnership))
	}
	apply(map[string]string{"first": "1", "both": "1"})
	w.Read(made)
	made.Labels["theirs"] = "1"
	w.Must(w.Client.Update(w.Ctx, made, client.FieldOwner("them")))
	apply(map[string]string{"both": "2", "second": "1"})
	w.Read(made)
	for label, want := range map[string]string{"first": "", "both": "2", "second": "1", "theirs": "1", "made": "1"} {
		if have := made.Labels[label]; have != want {
			t.Errorf("label %s is %q, want %q", label, have, want)
		}
	}
}

// TestPreconditions: no write reaches another object, or another state of one, than it is for.
func TestPreconditions(t *testing.T) {
	w := testkit.NewWorld(t)
	made := service(w)
	stale := made.DeepCopy()
	made.Spec.Selector["app"] = "b"
	w.Must(w.Client.Update(w.Ctx, made))
	other, uid := types.UID("other"), made.UID
	if uid == other || made.ResourceVersion == stale.ResourceVersion {
		t.Fatal("an update gave no new resourceVersion")
	}
	for name, err := range map[string]error{
		"an update of a stale object": w.Client.Update(w.Ctx, stale),
		"a patch of a stale object": w.Client.Patch(w.Ctx, stale.DeepCopy(), client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"resourceVersion":"`+stale.ResourceVersion+`","labels":{"a":"b"}}}`))),
		"a delete of another":  w.Client.Delete(w.Ctx, made, client.Preconditions{UID: &other}),
		"a delete of a former": w.Client.Delete(w.Ctx, made, client.Preconditions{UID: &uid, ResourceVersion: &stale.ResourceVersion}),
		"an apply to another": w.Client.Apply(w.Ctx, applycore.Service("a", testkit.Namespace).WithUID(other),
			client.FieldOwner("us"), client.ForceOwnership),
		"an apply to one that is gone": w.Client.Apply(w.Ctx, applycore.Service("gone", testkit.Namespace).WithUID(other),
			client.FieldOwner("us"), client.ForceOwnership),
	} {
		if !apierrors.IsConflict(err) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	if err := w.Client.Create(w.Ctx, stale); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second create: %v", err)
	}
	w.Must(w.Client.Delete(w.Ctx, made, client.Preconditions{UID: &uid, ResourceVersion: &made.ResourceVersion}))
	if err := w.Client.Delete(w.Ctx, made); !apierrors.IsNotFound(err) {
		t.Errorf("a second delete: %v", err)
	}
}

// TestLeaving: a pod has its grace, which can only be shortened; finalizers are waited for.
func TestLeaving(t *testing.T) {
	w := testkit.NewWorld(t)
	made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: testkit.Namespace, Finalizers: []string{"example.com/a"}}}
	w.Create(made)
	for _, step := range []struct{ ask, want int64 }{{20, 20}, {60, 20}, {5, 5}, {0, 0}} {
		w.Must(w.Client.Delete(w.Ctx, made, client.GracePeriodSeconds(step.ask)))
		w.Read(made)
		if have := *made.DeletionGracePeriodSeconds; have != step.want || made.DeletionTimestamp.Sub(w.Clock.Now()) != time.Duration(step.want)*time.Second {
			t.Errorf("asked for %d s, it has %d s until %s", step.ask, have, made.DeletionTimestamp)
		}
	}
	made.Finalizers = nil
	w.Must(w.Client.Update(w.Ctx, made))
	if err := w.Client.Get(w.Ctx, client.ObjectKeyFromObject(made), made); !apierrors.IsNotFound(err) {
		t.Errorf("without its finalizer the pod is still there: %v", err)
	}
}

// TestWritesThatChangeNothing give no revision, and the status is apart from the rest.
func TestWritesThatChangeNothing(t *testing.T) {
	w := testkit.NewWorld(t)
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	w.Create(cluster)
	version, generation := cluster.ResourceVersion, cluster.Generation
	w.Must(w.Client.Update(w.Ctx, cluster))
	cluster.Status.Phase = "Ready"
	w.Must(w.Client.Update(w.Ctx, cluster))
	if cluster.ResourceVersion != version || cluster.Status.Phase != "" {
		t.Errorf("an update that changes nothing gave revision %s after %s, phase %q", cluster.ResourceVersion, version, cluster.Status.Phase)
	}
	cluster.Status.Phase, cluster.Spec.Image = "Ready", "other"
	w.Must(w.Client.Status().Update(w.Ctx, cluster))
	w.Read(cluster)
	if cluster.Status.Phase != "Ready" || cluster.Spec.Image != "" || cluster.Generation != generation {
		t.Errorf("a status update: phase %q, image %q, generation %d", cluster.Status.Phase, cluster.Spec.Image, cluster.Generation)
	}
	w.Scale("demo", 3)
	if now := w.Cluster("demo").Generation; now != generation+1 {
		t.Errorf("an edit of the spec gave generation %d after %d", now, generation)
	}
}

// TestOneOwnerOfASelector: what is one value to the API is replaced as a whole by an apply.
func TestOneOwnerOfASelector(t *testing.T) {
	w := testkit.NewWorld(t)
	made := service(w)
	config := applycore.Service("a", testkit.Namespace).WithUID(made.UID).WithSpec(applycore.ServiceSpec().WithSelector(map[string]string{"new": "1"}))
	w.Must(w.Client.Apply(w.Ctx, config, client.FieldOwner("us"), client.ForceOwnership))
	w.Read(made)
	if len(made.Spec.Selector) != 1 || made.Spec.Selector["new"] != "1" {
		t.Errorf("the selector is %v", made.Spec.Selector)
	}
}
