package service_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestWakeRules_AreNeeded(t *testing.T) {
	testkit.NeedWakeRules(t, "ClusterService", map[string]func(*testkit.World){
		"a service wakes those on its cluster":        routeGivenUp,
		"a cluster wakes the services that use it":    scaledImage,
		"a pod wakes the services of its cluster":     halfTheRoom,
		"a *v1.Service wakes its service":             losing(&corev1.ServiceList{}),
		"a *v1.NetworkPolicy wakes its service":       losing(&networkingv1.NetworkPolicyList{}),
		"a *v1.PodDisruptionBudget wakes its service": losing(&policyv1.PodDisruptionBudgetList{}),
		"a *v1.ControllerRevision wakes its service":  losing(&appsv1.ControllerRevisionList{}),
	})
}

func TestWakes(t *testing.T) {
	testkit.Play(t,
		// Without the record nothing but the revision knows what a cluster runs.
		testkit.Scenario{Name: "revision-deleted", Run: losing(&appsv1.ControllerRevisionList{}), KeepRecord: true},
	)
}

// ofService returns the objects of a kind that belong to a service.
func ofService(w *testkit.World, kind client.ObjectList) []client.Object {
	w.Helper()
	list := kind.DeepCopyObject().(client.ObjectList)
	w.Must(w.Client.List(w.Ctx, list, client.InNamespace(testkit.Namespace)))
	all, err := meta.ExtractList(list)
	w.Must(err)
	var found []client.Object
	for _, one := range all {
		object := one.(client.Object)
		if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "ClusterService" {
			found = append(found, object)
		}
	}
	return found
}

// losing has a service lose its objects of a kind, which it gets back.
func losing(kind client.ObjectList) func(*testkit.World) {
	return func(w *testkit.World) {
		own(w)
		before := ofService(w, kind)
		if len(before) == 0 {
			w.Fatalf("the service has no object for a %T", kind)
		}
		for _, object := range before {
			w.Must(w.Client.Delete(w.Ctx, object))
		}
		w.Settle()
		if after := ofService(w, kind); len(after) != len(before) {
			w.Fatalf("the service has %d objects for a %T, want %d", len(after), kind, len(before))
		}
		serving(w, 1)
	}
}

// routeGivenUp has a service that waits for a route come as soon as its elder gives it up.
func routeGivenUp(w *testkit.World) {
	w.Prepare(func() {
		w.Create(testkit.Cluster("demo", testkit.Group("cpu", 1)))
		w.Settle()
	})
	given(w, testkit.Service("text"))
	w.After(2 * time.Second)
	given(w, testkit.Service("other"), func(s *v1beta1.ClusterService) { s.Spec.ServeConfig = testkit.ServeConfig("text", "app:mine") })
	w.ExpectService("other", "Pending", "Ready=False ServeCollision", "Stalled=True")
	w.EditService("text", func(s *v1beta1.ClusterService) { s.Spec.ServeConfig = testkit.ServeConfig("elsewhere", "app:v1") })
	w.During(2 * time.Second)
	w.ExpectService("other", "Starting", "Stalled=False")
}
