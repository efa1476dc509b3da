package cluster_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// furnished is a cluster that has one of everything.
func furnished() *v1beta1.ComputeCluster {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 2), sliced(1, 2))
	cluster.Spec.Head.Ingress = &v1beta1.IngressSpec{Host: "ray.example.com"}
	cluster.Spec.Head.Service = &v1beta1.HeadServiceSpec{Labels: map[string]string{"team": "a"}}
	cluster.Spec.WorkerGroups[0].VolumeClaimTemplates = data()
	return cluster
}

// data is a claim for each worker.
func data() []corev1.PersistentVolumeClaim {
	return []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: testkit.Resources("storage", "1Gi")},
		},
	}}
}

// fixed are the objects of fixed names that furnished has, empty.
func fixed() map[string]client.Object {
	return map[string]client.Object{
		"network":   &networkingv1.NetworkPolicy{ObjectMeta: named("demo-network")},
		"service":   &corev1.Service{ObjectMeta: named("demo-head")},
		"hosts":     &corev1.Service{ObjectMeta: named("demo-hosts")},
		"dashboard": &networkingv1.Ingress{ObjectMeta: named("demo-dashboard")},
		"budget":    &policyv1.PodDisruptionBudget{ObjectMeta: named("demo-head")},
	}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: testkit.Namespace}
}

func TestFixtures(t *testing.T) {
	for name, obj := range fixed() {
		play(t,
			testkit.Scenario{Name: "others-" + name, Run: func(w *testkit.World) { othersFixture(w, obj) }},
			testkit.Scenario{Name: "deleted-" + name, Run: losing(obj)},
			testkit.Scenario{Name: "edited-" + name, Run: func(w *testkit.World) { editedFixture(w, obj) }},
			testkit.Scenario{Name: "added-to-" + name, Run: func(w *testkit.World) { addedTo(w, obj) }},
		)
	}
	play(t,
		testkit.Scenario{Name: "not-wanted-any-more", Run: notWanted},
		testkit.Scenario{Name: "wanted-differently", Run: wantedDifferently},
		testkit.Scenario{Name: "claims-follow-slots", Run: claimsFollow},
		testkit.Scenario{Name: "claims-outlive-suspension", Run: claimsOutlive},
		testkit.Scenario{Name: "others-claim", Run: othersClaim},
		testkit.Scenario{Name: "group-refused", Run: groupRefused},
		testkit.Scenario{Name: "furnished-and-recreated", Run: func(w *testkit.World) {
			furnish(w)
			w.Delete(w.Cluster("demo"))
			w.Create(furnished())
			w.Settle()
			w.Expect("demo", ready)
			claims(w, 2)
			for _, obj := range fixed() {
				w.Read(obj)
				if owner := obj.GetOwnerReferences()[0].UID; owner != w.Cluster("demo").UID {
					w.Fatalf("%T %s belongs to %s", obj, obj.GetName(), owner)
				}
			}
		}},
	)
}

func copyOf(obj client.Object) client.Object { return obj.DeepCopyObject().(client.Object) }

func furnish(w *testkit.World) {
	w.Helper()
	w.Create(furnished())
	w.Settle()
	w.Expect("demo", ready)
	for _, obj := range fixed() {
		w.Read(obj)
	}
}

// othersFixture has someone else's object under a fixed name: it is never touched, and a
// cluster that can do without it runs.
func othersFixture(w *testkit.World, obj client.Object) {
	theirs := copyOf(obj)
	theirs.SetLabels(map[string]string{v1beta1.LabelCluster: "demo", "of": "someone"})
	w.Create(theirs)
	version := theirs.GetResourceVersion()
	w.Create(furnished())
	w.SettleRefused()
	w.Expect("demo", "NameConflict=True NameConflict")
	switch theirs.(type) {
	case *networkingv1.Ingress, *policyv1.PodDisruptionBudget:
		w.Expect("demo", ready, "Stalled=False")
	default:
		w.Expect("demo", "Ready=False NameConflict", "Stalled=True NameConflict")
	}
	w.Read(theirs)
	if theirs.GetResourceVersion() != version {
		w.Fatalf("someone else's object was written")
	}
	w.Delete(theirs)
	w.After(time.Minute)
	w.Expect("demo", ready, "NameConflict=absent", "Stalled=False")
}

// editedFixture has someone change what we set and add something of their own: the one
// comes back, the other stays.
func editedFixture(w *testkit.World, obj client.Object) {
	furnish(w)
	edited := copyOf(obj)
	w.Read(edited)
	labels := maps.Clone(edited.GetLabels())
	labels["app.kubernetes.io/managed-by"] = "me"
	labels["mine"] = "yes"
	edited.SetLabels(labels)
	edited.SetFinalizers([]string{"example.com/mine"})
	spoil(edited)
	w.Must(w.Client.Update(w.Ctx, edited))
	w.Settle()
	w.Expect("demo", ready)
	w.Read(edited)
	if labels := edited.GetLabels(); labels["mine"] != "yes" || labels["app.kubernetes.io/managed-by"] != "heliostat" || len(edited.GetFinalizers()) != 1 {
		w.Fatalf("labels %v, finalizers %v", edited.GetLabels(), edited.GetFinalizers())
	}
	if isSpoilt(edited) {
		w.Fatalf("what someone changed was not mended: %+v", edited)
	}
}

// spoil changes what an object is for.
func spoil(obj client.Object) {
	switch obj := obj.(type) {
	case *networkingv1.NetworkPolicy:
		obj.Spec.Ingress = nil
	case *networkingv1.Ingress:
		obj.Spec.Rules = nil
	case *corev1.Service:
		obj.Spec.Selector, obj.Spec.Ports, obj.Spec.PublishNotReadyAddresses = map[string]string{"app": "other"}, nil, false
	case *policyv1.PodDisruptionBudget:
		none := intstr.FromInt32(0)
		obj.Spec.MinAvailable = &none
	}
}

func isSpoilt(obj client.Object) bool {
	switch obj := obj.(type) {
	case *networkingv1.NetworkPolicy:
		return len(obj.Spec.Ingress) == 0
	case *networkingv1.Ingress:
		return len(obj.Spec.Rules) != 1
	case *corev1.Service:
		return !obj.Spec.PublishNotReadyAddresses || obj.Spec.Selector["app"] != ""
	case *policyv1.PodDisruptionBudget:
		return obj.Spec.MinAvailable.IntValue() != 1
	default:
		return true
	}
}

// addedTo has someone add to what an object is for: it goes, and what is theirs elsewhere stays.
func addedTo(w *testkit.World, obj client.Object) {
	furnish(w)
	edited := copyOf(obj)
	w.Read(edited)
	before := copyOf(edited)
	edited.SetAnnotations(labelled(edited.GetAnnotations(), "example.com/mine", "yes"))
	add(edited)
	w.Must(w.Client.Update(w.Ctx, edited))
	w.Settle()
	w.Read(edited)
	if !equality.Semantic.DeepEqual(specOf(edited), specOf(before)) || edited.GetAnnotations()["example.com/mine"] != "yes" {
		w.Fatalf("%+v, want the spec of %+v and the annotation", edited, before)
	}
	w.Expect("demo", ready)
}

func labelled(old map[string]string, key, value string) map[string]string {
	labels := maps.Clone(old)
	labels[key] = value
	return labels
}

func specOf(obj client.Object) any {
	if service, is := obj.(*corev1.Service); is {
		service.Spec.ClusterIP = "" // which a real API server keeps
	}
	return reflect.ValueOf(obj).Elem().FieldByName("Spec").Interface()
}

// add gives an object more than it is for.
func add(obj client.Object) {
	switch obj := obj.(type) {
	case *networkingv1.NetworkPolicy:
		obj.Spec.Ingress = append(obj.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
		obj.Spec.PodSelector.MatchLabels["app"] = "x"
	case *networkingv1.Ingress:
		obj.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "other"}}
	case *corev1.Service:
		obj.Spec.Selector["app"] = "x"
		obj.Spec.Ports = append(obj.Spec.Ports, corev1.ServicePort{Name: "zz", Port: 9999, TargetPort: intstr.FromInt32(22), Protocol: corev1.ProtocolTCP})
	case *policyv1.PodDisruptionBudget:
		obj.Spec.Selector.MatchLabels["app"] = "x"
	}
}

func gone(w *testkit.World, obj client.Object) {
	w.Helper()
	if err := w.Client.Get(w.Ctx, client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
		w.Fatalf("%T %s is still there: %v", obj, obj.GetName(), err)
	}
}

// notWanted takes back what was asked for; pods are not touched.
func notWanted(w *testkit.World) {
	furnish(w)
	kept := testkit.UIDs(w.Pods("demo"))
	w.Edit("demo", func(c *v1beta1.ComputeCluster) {
		c.Spec.Head.Ingress = nil
		c.Spec.Network = &v1beta1.Network{Isolation: v1beta1.Disabled}
	})
	w.Settle()
	w.Expect("demo", ready)
	gone(w, fixed()["dashboard"])
	gone(w, fixed()["network"])
	untouched(w, kept, w.Pods("demo"))
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups = c.Spec.WorkerGroups[:1] })
	w.Settle()
	gone(w, fixed()["hosts"])
}

// wantedDifferently changes what is wanted of an object: what was wanted before goes.
func wantedDifferently(w *testkit.World) {
	furnish(w)
	kept := testkit.UIDs(w.Pods("demo"))
	for _, labels := range []map[string]string{{"team": "b", "more": "yes"}, {"other": "yes"}} {
		w.Edit("demo", func(c *v1beta1.ComputeCluster) {
			c.Spec.Head.Service.Labels = labels
			c.Spec.Head.Ingress.Host = labels["team"] + "ray.example.com"
		})
		w.Settle()
	}
	var service corev1.Service
	w.Must(w.Client.Get(w.Ctx, clientKey("demo-head"), &service))
	if labels := service.Labels; labels["team"] != "" || labels["more"] != "" || labels["other"] != "yes" {
		w.Fatalf("the Service has the labels %v", labels)
	}
	var ingress networkingv1.Ingress
	w.Must(w.Client.Get(w.Ctx, clientKey("demo-dashboard"), &ingress))
	if len(ingress.Spec.Rules) != 1 || ingress.Spec.Rules[0].Host != "ray.example.com" {
		w.Fatalf("the Ingress has the rules %v", ingress.Spec.Rules)
	}
	w.Expect("demo", ready, "UpToDate=True")
	untouched(w, kept, w.Pods("demo"))
}

func claims(w *testkit.World, want int) []corev1.PersistentVolumeClaim {
	w.Helper()
	var list corev1.PersistentVolumeClaimList
	w.Must(w.Client.List(w.Ctx, &list))
	if len(list.Items) != want {
		w.Fatalf("%d claims, want %d", len(list.Items), want)
	}
	return list.Items
}

// claiming is a running cluster whose workers have a claim each.
func claiming(w *testkit.World, replicas int32) {
	w.Helper()
	group := testkit.Group("cpu", replicas)
	group.VolumeClaimTemplates = data()
	started(w, "demo", group)
}

func claimsFollow(w *testkit.World) {
	claiming(w, 3)
	claims(w, 3)
	w.Scale("demo", 1)
	w.Settle()
	left := claims(w, 1)[0].UID
	w.Delete(w.Workers("demo", "cpu")[0])
	w.Settle()
	w.Expect("demo", ready)
	if now := claims(w, 1)[0].UID; now != left {
		w.Fatalf("a worker's successor has another claim")
	}
	w.Scale("demo", 2)
	w.Settle()
	claims(w, 2)
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups = nil })
	w.Settle()
	claims(w, 0)
}

func claimsOutlive(w *testkit.World) {
	claiming(w, 2)
	former := claims(w, 2)
	suspend(w, true)
	w.Settle()
	gaveBack(w, isSuspended)
	claims(w, 2)
	suspend(w, false)
	w.Settle()
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Suspend = new(true) })
	w.Settle()
	claims(w, 2)
	w.Force(w.Head("demo"))
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Suspend = new(false) })
	w.Settle()
	w.Expect("demo", ready)
	for i, claim := range claims(w, 2) {
		if !strings.Contains(string(former[0].UID+former[1].UID), string(claim.UID)) {
			w.Fatalf("claim %d, %s, was made anew", i, claim.Name)
		}
	}
	w.Delete(w.Cluster("demo"))
	w.Settle()
	nothingLeft(w)
	claims(w, 0)
}

// othersClaim has someone else's claim under the name of a slot's: it is never touched, and
// no pod is made that would mount it.
func othersClaim(w *testkit.World) {
	theirs := &corev1.PersistentVolumeClaim{ObjectMeta: foreign(naming.Claim("demo", "demo-1", "cpu", 0, "data"))}
	w.Create(theirs)
	version := theirs.ResourceVersion
	group := testkit.Group("cpu", 1)
	group.VolumeClaimTemplates = data()
	w.Create(testkit.Cluster("demo", group))
	w.SettleRefused()
	w.Expect("demo", "Ready=False", "HeadReady=True")
	sizes(w, "demo", map[string]int{"cpu": 0})
	w.Read(theirs)
	if theirs.ResourceVersion != version {
		w.Fatalf("someone else's claim was written")
	}
	w.Delete(theirs)
	w.After(time.Minute)
	w.Expect("demo", ready)
	claims(w, 1)
}

// groupRefused refuses one group's pods: the others come, and the reason stands with the group.
func groupRefused(w *testkit.World) {
	refuse(w, func(obj client.Object) bool { return obj.GetLabels()[v1beta1.LabelGroup] == "gpu" })
	w.Create(testkit.Cluster("demo", testkit.Group("gpu", 2), testkit.Group("cpu", 2)))
	w.SettleRefused()
	w.Expect("demo", "HeadReady=True", "Ready=False CreateRefused", "Stalled=False", "Reconciling=True")
	sizes(w, "demo", map[string]int{"": 1, "cpu": 2, "gpu": 0})
	groups := w.Cluster("demo").Status.Groups
	if groups[0].Reason != "CreateRefused" || groups[1].Reason != "" {
		w.Fatalf("groups say %+v", groups)
	}
	w.Refuse(nil)
	w.Settle()
	w.Expect("demo", ready)
}
