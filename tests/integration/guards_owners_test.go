package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// onlyTheOperatorAdopts is what the guards say of forged controllers.
const onlyTheOperatorAdopts = "only the operator makes an object of heliostat.dev the controller"

func controlledBy(version, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "a", UID: "u", Controller: new(true)}}
}

// madeOf is one object of each kind that the operator makes, without owners.
func madeOf(namespace string) []client.Object {
	named := metav1.ObjectMeta{Namespace: namespace, Name: "forged"}
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	ingress := networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Name: "a", Port: networkingv1.ServiceBackendPort{Number: 80}},
	}}
	return []client.Object{
		newJob(namespace, "forged"), newCluster(namespace, "forged", 0), podWith(namespace, nil), setOf(namespace, map[string]string{}),
		&corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, &corev1.Secret{ObjectMeta: named},
		&corev1.PersistentVolumeClaim{ObjectMeta: named, Spec: claim}, &networkingv1.NetworkPolicy{ObjectMeta: named},
		&networkingv1.Ingress{ObjectMeta: named, Spec: ingress}, &policyv1.PodDisruptionBudget{ObjectMeta: named},
	}
}

// TestGuards_OwnersAreTheOperatorsOwn walks the kinds that the operator makes for objects of ours, and the kinds of these.
func TestGuards_OwnersAreTheOperatorsOwn(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	ana := tenant(t, namespace)
	ours := v1beta1.GroupVersion.String()
	must(t, live.Until(t.Context(), limit, "ana's rights and the guards to be in force", func(ctx context.Context) error {
		service := madeOf(namespace)[4]
		if err := ana.Create(ctx, service, client.DryRunAll); err != nil {
			return err
		}
		service = madeOf(namespace)[4]
		service.SetOwnerReferences(controlledBy(ours, "ComputeCluster"))
		if err := ana.Create(ctx, service, client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a Service with a controller of ours is answered with %w", err)
		}
		return nil
	}))
	for _, object := range madeOf(namespace) {
		refused := onlyTheOperatorAdopts
		if _, is := object.(*corev1.Pod); is {
			refused = "only the operator makes pods"
		}
		for _, one := range []struct{ version, kind, words string }{
			{ours, "ComputeCluster", refused}, {ours, "ClusterJob", refused}, {ours, "ClusterService", refused},
			{ours, "ClusterJobSchedule", refused}, {"apps/v1", "ReplicaSet", ""},
		} {
			forged, _ := object.DeepCopyObject().(client.Object) // the copy of an object is one
			forged.SetOwnerReferences(controlledBy(one.version, one.kind))
			attempt{fmt.Sprintf("a %T with a controller %s", object, one.kind), func(ctx context.Context) error {
				return ana.Create(ctx, forged, client.DryRunAll)
			}, one.words}.check(t)
		}
	}
}

// TestGuards_OwnedObjectsStayKnown: who may patch an object of an owner's takes the owner away, and not what it is known by.
func TestGuards_OwnedObjectsStayKnown(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	ana := tenant(t, namespace)
	cluster := newCluster(namespace, "forged", 0)
	cluster.Spec.Suspend, cluster.Labels = new(true), map[string]string{v1beta1.LabelJob: "a"}
	cluster.OwnerReferences = controlledBy(v1beta1.GroupVersion.String(), "ClusterJob")
	cluster.Finalizers = []string{"example.com/stays"} // the garbage collector does not find its owner
	must(t, shared.Create(t.Context(), cluster))       // as the operator makes it
	const labelled = "stay while another object is the controller"
	must(t, live.Until(t.Context(), limit, "ana's rights and the guards to be in force", func(ctx context.Context) error {
		if err := patches(ana, cluster, `{"metadata":{"labels":{"a":"b"}}}`)(ctx); err != nil {
			return err
		}
		if err := patches(ana, cluster, `{"metadata":{"labels":{"heliostat.dev/job":null}}}`)(ctx); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a cluster of a job without its label is answered with %w", err)
		}
		return nil
	}))
	for _, one := range []attempt{
		{"no label", patches(ana, cluster, `{"metadata":{"labels":{"heliostat.dev/job":null}}}`), labelled},
		{"another controller", patches(ana, cluster,
			`{"metadata":{"ownerReferences":[{"apiVersion":"heliostat.dev/v1beta1","kind":"ClusterJob","name":"b","uid":"v","controller":true}]}}`), onlyTheOperatorAdopts},
		{"no controller", patches(ana, cluster, `{"metadata":{"ownerReferences":null}}`), ""},
		{"a controller that blocks nothing", patches(ana, cluster,
			`{"metadata":{"ownerReferences":[{"apiVersion":"heliostat.dev/v1beta1","kind":"ClusterJob","name":"a","uid":"u","controller":true,"blockOwnerDeletion":false}]}}`), ""},
	} {
		one.check(t)
	}
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	must(t, client.IgnoreNotFound(shared.Patch(t.Context(), cluster, free)))
	must(t, client.IgnoreNotFound(shared.Delete(t.Context(), cluster)))
}

// refuseCopies tries, as ana, a copy of an object that the operator made and controls. Its kind is not among those of Kubernetes.
func refuseCopies(t *testing.T, ana client.Client, made *unstructured.Unstructured, resource string) {
	t.Helper()
	group := made.GroupVersionKind().Group
	permit(t, made.GetNamespace(), resource+"."+group, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create"}})
	copied := func(change func(*unstructured.Unstructured)) func(context.Context) error {
		forged := made.DeepCopy()
		forged.SetName("forged")
		forged.SetUID("")
		forged.SetResourceVersion("")
		change(forged)
		return func(ctx context.Context) error { return ana.Create(ctx, forged.DeepCopy(), client.DryRunAll) }
	}
	eventually(t, "ana's rights to be in force", copied(func(forged *unstructured.Unstructured) { forged.SetOwnerReferences(nil) }))
	attempt{"a copy of " + made.GetKind() + " with its controller", copied(func(*unstructured.Unstructured) {}), onlyTheOperatorAdopts}.check(t)
}
