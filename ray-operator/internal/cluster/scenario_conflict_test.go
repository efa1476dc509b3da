package cluster_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func clientKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: testkit.Namespace, Name: name}
}

func foreign(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: testkit.Namespace, Labels: map[string]string{"of": "someone"}}
}

func TestConflict(t *testing.T) {
	worker := naming.Pod("demo", "demo-1", naming.Place{Group: "cpu", Slot: 1, Epoch: 1})
	head := naming.Pod("demo", "demo-1", naming.Place{Epoch: 1})
	for name, obj := range map[string]client.Object{
		"service": &corev1.Service{ObjectMeta: foreign("demo-head")},
		"secret":  &corev1.Secret{ObjectMeta: foreign("demo-token")},
		"head":    &corev1.Pod{ObjectMeta: foreign(head)},
		"worker":  &corev1.Pod{ObjectMeta: foreign(worker)},
	} {
		play(t, testkit.Scenario{Name: "foreign-" + name, Run: func(w *testkit.World) {
			foreignName(w, obj.DeepCopyObject().(client.Object))
		}})
	}
	play(t,
		testkit.Scenario{Name: "record-damaged", KeepRecord: true, Run: recordDamaged},
		testkit.Scenario{Name: "invalid-spec", Run: invalidSpec},
		testkit.Scenario{Name: "quota", Run: quota},
		// An operator that sees neither the head nor the record would have to ask for each
		// new cluster whether it is new, to know that the token is missing and not just yet to be made.
		testkit.Scenario{Name: "token-removed-groups-swapped", Run: tokenRemovedGroupsSwapped, NoPast: true},
		testkit.Scenario{Name: "token-removed", Run: tokenRemoved, NoPast: true},
		testkit.Scenario{Name: "token-removed-head-ended", Run: tokenRemovedHeadEnded},
		testkit.Scenario{Name: "token-removed-at-rest", Run: tokenRemovedAtRest, NoPast: true},
		testkit.Scenario{Name: "token-changed", Run: tokenChanged, NoPast: true},
		testkit.Scenario{Name: "service-edited", Run: serviceEdited},
		testkit.Scenario{Name: "service-deleted", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 1))
			w.Delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "demo-head", Namespace: testkit.Namespace}})
			w.Settle()
			w.Expect("demo", ready)
			w.Must(w.Client.Get(w.Ctx, clientKey("demo-head"), &corev1.Service{}))
		}},
	)
}

// foreignName has someone else's object under a name that the cluster needs.
func foreignName(w *testkit.World, obj client.Object) {
	w.Kubelet.Idle = func(pod *corev1.Pod) bool { return metav1.GetControllerOf(pod) == nil }
	w.Create(obj)
	version := obj.GetResourceVersion()
	w.Create(testkit.Cluster("demo", testkit.Group("cpu", 2)))
	w.SettleRefused()
	w.Expect("demo", "Ready=False NameConflict", "NameConflict=True NameConflict", "Stalled=True NameConflict", "Reconciling=False")
	if message := w.Message("demo", v1beta1.ConditionNameConflict); !strings.Contains(message, obj.GetName()) {
		w.Fatalf("the condition does not name %s: %s", obj.GetName(), message)
	}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(obj), obj))
	if obj.GetResourceVersion() != version {
		w.Fatalf("someone else's object was written")
	}
	w.Delete(obj)
	w.Settle()
	w.Expect("demo", ready, "NameConflict=absent", "Stalled=False")
	sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
}

func recordDamaged(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 1))
	w.Force(w.Head("demo"))
	w.Settle()
	epochIs(w, 2)
	before := testkit.UIDs(w.Pods("demo"))
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Annotations[v1beta1.AnnotationRecord] = `{"v":1` })
	w.Settle()
	w.Expect("demo", "Ready=False RecordDamaged", "Stalled=True RecordDamaged")
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { delete(c.Annotations, v1beta1.AnnotationRecord) })
	w.Settle()
	w.Expect("demo", ready)
	epochIs(w, 2)
	if !slices.Equal(before, testkit.UIDs(w.Pods("demo"))) {
		w.Fatalf("pods were touched")
	}
}

func invalidSpec(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 2))
	before := testkit.UIDs(w.Pods("demo"))
	w.Edit("demo", func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups[0].RayStartParams = map[string]string{"UPPER": "1"}
		c.Spec.WorkerGroups[0].Replicas = new(int32(3))
	})
	w.Settle()
	w.Expect("demo", "Ready=False InvalidSpec", "Stalled=True InvalidSpec", "Reconciling=False")
	if message := w.Message("demo", "Stalled"); !strings.Contains(message, "spec.workerGroups[0].rayStartParams[UPPER]") {
		w.Fatalf("the condition does not name the field: %s", message)
	}
	if !slices.Equal(before, testkit.UIDs(w.Pods("demo"))) {
		w.Fatalf("an invalid spec touched running pods")
	}
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].RayStartParams = nil })
	w.Settle()
	w.Expect("demo", ready)
	sizes(w, "demo", map[string]int{"cpu": 3})
}

func quota(w *testkit.World) {
	w.Refuse(func(obj client.Object) error {
		if obj.GetLabels()[v1beta1.LabelGroup] == "" {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, obj.GetName(), errQuota)
	})
	w.Create(testkit.Cluster("demo", testkit.Group("cpu", 3)))
	w.SettleRefused()
	w.Expect("demo", "Ready=False CreateRefused", "HeadReady=True", "Reconciling=True", "Stalled=False")
	if message := w.Message("demo", "Ready"); !strings.Contains(message, errQuota.Error()) {
		w.Fatalf("the condition does not give the API server's reason: %s", message)
	}
	w.Refuse(nil)
	w.Settle()
	w.Expect("demo", ready)
}

type quotaError struct{}

func (quotaError) Error() string { return "exceeded quota: team, limited: pods=1" }

var errQuota = quotaError{}

func removeToken(w *testkit.World) {
	w.Helper()
	w.Delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "demo-token", Namespace: testkit.Namespace}})
	w.Settle()
}

// tokenRemovedGroupsSwapped needs a new pod though there are as many as are wanted.
func tokenRemovedGroupsSwapped(w *testkit.World) {
	started(w, "demo", testkit.Group("a", 1), testkit.Group("b", 0))
	removeToken(w)
	w.Edit("demo", func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups = []v1beta1.WorkerGroup{testkit.Group("a", 0), testkit.Group("b", 1)}
	})
	w.Settle()
	w.Expect("demo", "Ready=False TokenMissing", "Stalled=False")
	sizes(w, "demo", map[string]int{"": 1, "b": 0})
}

// tokenRemovedHeadEnded begins an epoch while all pods of the former one still run.
func tokenRemovedHeadEnded(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 1))
	removeToken(w)
	w.Clock.Step(time.Minute)
	w.Must(w.Kubelet.Restart(w.Ctx, w.Head("demo")))
	w.Settle()
	w.Expect("demo", ready)
	epochIs(w, 2)
	w.Must(w.Client.Get(w.Ctx, clientKey("demo-token"), &corev1.Secret{}))
}

// tokenRemovedAtRest: nobody needs the token for now, and the status tells. What runs goes on.
func tokenRemovedAtRest(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 1))
	before := testkit.UIDs(w.Pods("demo"))
	var secret corev1.Secret
	w.Must(w.Client.Get(w.Ctx, clientKey("demo-token"), &secret))
	removeToken(w)
	w.After(20 * time.Minute)
	w.Expect("demo", ready, "UpToDate=False TokenMissing", "Stalled=False", "Reconciling=False")
	secret.ResourceVersion = ""
	w.Create(&secret) // as the remedy says
	w.After(time.Minute)
	w.Expect("demo", ready, "UpToDate=True")
	if !slices.Equal(before, testkit.UIDs(w.Pods("demo"))) {
		w.Fatalf("a missing token touched running pods")
	}
}

// tokenChanged: a worker that is made with the new token cannot join, and the status tells for as long as that is so.
func tokenChanged(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 1))
	var secret corev1.Secret
	w.Must(w.Client.Get(w.Ctx, clientKey("demo-token"), &secret))
	secret.Data[v1beta1.TokenKey] = []byte("another")
	w.Must(w.Client.Update(w.Ctx, &secret))
	w.Delete(w.Workers("demo", "cpu")[0])
	w.Settle()
	w.Expect("demo", "UpToDate=False TokenChanged")
	w.After(time.Minute)
	w.Expect("demo", "UpToDate=False TokenChanged")
	w.Delete(w.Head("demo")) // as the remedy says
	w.Settle()
	w.Expect("demo", ready, "UpToDate=True")
}

func tokenRemoved(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 1))
	before := testkit.UIDs(w.Pods("demo"))
	removeToken(w)
	w.Scale("demo", 2)
	w.Settle()
	w.Expect("demo", "Ready=False TokenMissing", "Stalled=False", "HeadReady=True")
	if !slices.Equal(before, testkit.UIDs(w.Pods("demo"))) {
		w.Fatalf("a missing token touched running pods")
	}
	w.Delete(w.Head("demo")) // as the remedy says
	w.Settle()
	w.Expect("demo", ready)
	sizes(w, "demo", map[string]int{"cpu": 2})
	epochIs(w, 2)
}

// serviceEdited has someone change the head's Service: what the cluster needs comes
// back, what they added stays.
func serviceEdited(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 1))
	var service corev1.Service
	w.Must(w.Client.Get(w.Ctx, clientKey("demo-head"), &service))
	service.Spec.Selector[v1beta1.LabelEpoch] = "7"
	service.Spec.PublishNotReadyAddresses = false
	service.Annotations = map[string]string{"example.com/mine": "yes"}
	w.Must(w.Client.Update(w.Ctx, &service))
	w.Settle()
	w.Must(w.Client.Get(w.Ctx, clientKey("demo-head"), &service))
	if service.Spec.Selector[v1beta1.LabelEpoch] != "1" || !service.Spec.PublishNotReadyAddresses {
		w.Fatalf("the Service was not mended: %+v", service.Spec)
	}
	if service.Annotations["example.com/mine"] != "yes" {
		w.Fatalf("a foreign annotation was taken away")
	}
}
