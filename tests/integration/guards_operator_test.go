package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// TestGuards_HoldTheOperatorToClusters: the operator's token writes objects of clusters and nothing else.
func TestGuards_HoldTheOperatorToClusters(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	thief := asOperator(t)
	const labels, pods, elsewhere = "writes only objects with labels", "writes only pods of ComputeClusters", "writes nothing in kube-system"
	const specs = "changes only specs of clusters of ClusterJobs"
	cluster := newCluster(namespace, "anas", 0)
	cluster.Spec.Suspend = new(true)
	must(t, shared.Create(t.Context(), cluster))
	made := newCluster(namespace, "made", 0)
	made.Labels = map[string]string{v1beta1.LabelJob: "train"}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "anas", Labels: map[string]string{"app": "a"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	must(t, shared.Create(t.Context(), service))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}}
	job := newJob(namespace, "mine")
	job.Labels = map[string]string{v1beta1.LabelCluster: "demo"}
	create := func(object client.Object) func(context.Context) error { return tries(thief, object) }
	must(t, live.Until(t.Context(), limit, "the guards to be in force", func(ctx context.Context) error {
		if err := create(podWith(namespace, nil))(ctx); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a pod of nobody's is answered with %w", err)
		}
		return nil
	}))
	for _, one := range []attempt{
		{"a pod of a cluster", create(podOf("demo", namespace)), ""},
		{"a pod in kube-system", create(podOf("demo", metav1.NamespaceSystem)), elsewhere},
		{"a pod beside the operator", create(podOf("demo", live.ReleaseNamespace)), elsewhere},
		{"a pod without our labels", create(podWith(namespace, nil)), labels},
		{"a pod of no cluster", create(edited(namespace, func(p *corev1.Pod) { p.OwnerReferences = nil })), pods},
		{"a pod of a cluster with another name", create(edited(namespace, func(p *corev1.Pod) { p.OwnerReferences[0].Name = "other" })), pods},
		{"a pod of a cluster with another UID", create(edited(namespace, func(p *corev1.Pod) { p.Labels[v1beta1.LabelClusterUID] = "v" })), pods},
		{"a cluster of nobody's", create(made), "creates only clusters of ClusterJobs"},
		{"another's spec", patches(thief, cluster, `{"spec":{"suspend":false}}`), specs},
		{"another's cluster made a job's", patches(thief, cluster,
			`{"metadata":{"ownerReferences":[{"apiVersion":"heliostat.dev/v1beta1","kind":"ClusterJob","name":"a","uid":"u","controller":true}]}}`),
			specs},
		{"another's record", patches(thief, cluster, `{"metadata":{"annotations":{"heliostat.dev/record":"{}"}}}`), ""},
		{"a Secret without our labels", create(secret), labels},
		{"a job of no schedule", create(job), "creates only jobs of ClusterJobSchedules"},
		{"another's Service made ours", func(ctx context.Context) error {
			return thief.Patch(ctx, service.DeepCopy(), client.RawPatch("application/merge-patch+json",
				[]byte(`{"metadata":{"labels":{"heliostat.dev/cluster":"demo"}}}`)), client.DryRunAll)
		}, labels},
		{"another's Service", func(ctx context.Context) error { return thief.Delete(ctx, service.DeepCopy(), client.DryRunAll) }, labels},
	} {
		one.check(t)
	}
	must(t, shared.Delete(t.Context(), service))
	must(t, shared.Delete(t.Context(), cluster))
}

// TestGuards_HoldTheOperatorsPodsToTheirContainers: what reaches beyond them asks for an administrator's label.
func TestGuards_HoldTheOperatorsPodsToTheirContainers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	accounts(t, namespace)
	thief := asOperator(t)
	needs := "namespace " + namespace + " needs the label heliostat.dev/privileged=allowed for pods with "
	set := setOf(namespace, map[string]string{v1beta1.LabelStore: "demo"})
	set.Labels = map[string]string{v1beta1.LabelStore: "demo"}
	set.Spec.Template.Spec.HostIPC = true
	pod := func(edit func(*corev1.Pod)) func(context.Context) error { return tries(thief, edited(namespace, edit)) }
	strong := func(p *corev1.Pod) { p.Spec.ServiceAccountName = "strong" }
	must(t, live.Until(t.Context(), limit, "the guards and the rights of the accounts to be in force", func(ctx context.Context) error {
		if err := pod(strong)(ctx); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a pod with an account that reaches everything is answered with %w", err)
		}
		return nil
	}))
	for _, one := range []attempt{
		{"a pod on a node", pod(func(p *corev1.Pod) { p.Spec.SchedulingGates, p.Spec.NodeName = nil, "n" }), needs + "nodeName"},
		{"a pod with the host's network", pod(func(p *corev1.Pod) { p.Spec.HostNetwork = true }), needs + "host namespaces"},
		{"a pod with the host's files", pod(func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}), needs + "hostPath volumes"},
		{"a pod with a privileged init container", pod(func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "none", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
		}), needs + "privileged containers"},
		{"a pod with capabilities of root", pod(func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}
		}), needs + "privileged containers"},
		{"a pod with all capabilities, as runtimes also read them", pod(func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"all"}}}
		}), needs + "privileged containers"},
		{"a pod with capabilities by their prefix", pod(func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"cap_sys_admin"}}}
		}), needs + "privileged containers"},
		{"a pod with an account that reaches everything", pod(strong), needs + "the service account strong"},
		{"a pod with an account of its namespace", pod(func(p *corev1.Pod) { p.Spec.ServiceAccountName = "plain" }), ""},
		{"a StatefulSet with the host's namespaces", tries(thief, set), needs + "host namespaces"},
	} {
		one.check(t)
	}
	allowed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	must(t, shared.Patch(t.Context(), allowed, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"heliostat.dev/privileged":"allowed"}}}`))))
	must(t, live.Until(t.Context(), limit, "the label to count", pod(func(p *corev1.Pod) {
		p.Spec.HostNetwork, p.Spec.ServiceAccountName = true, "strong"
	})))
}

// asOperator is a client with the operator's name.
func asOperator(t *testing.T) client.Client {
	t.Helper()
	config := rest.CopyConfig(shared.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + live.ReleaseNamespace + ":" + live.ReleaseName}
	as, err := client.New(config, client.Options{Scheme: shared.Scheme()})
	must(t, err)
	return as
}

// tries is the creation of an object that is not kept.
func tries(by client.Client, object client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		copied, _ := object.DeepCopyObject().(client.Object) // the copy of an object is one
		return by.Create(ctx, copied, client.DryRunAll)
	}
}

// edited is a pod of a cluster with a change.
func edited(namespace string, edit func(*corev1.Pod)) *corev1.Pod {
	pod := podOf("demo", namespace)
	edit(pod)
	return pod
}

// accounts makes two service accounts: strong may read all Secrets, plain has a right in its namespace.
func accounts(t *testing.T, namespace string) {
	t.Helper()
	for name, kind := range map[string]string{"strong": "ClusterRoleBinding", "plain": "RoleBinding"} {
		must(t, shared.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
		role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"}
		subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
		var binding client.Object = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: role, Subjects: subjects}
		if kind == "ClusterRoleBinding" {
			binding = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name}, RoleRef: role, Subjects: subjects}
			t.Cleanup(func() { must(t, shared.Delete(context.WithoutCancel(t.Context()), binding)) })
		}
		must(t, shared.Create(t.Context(), binding))
	}
}

// podOf is a pod as the operator makes those of a cluster.
func podOf(cluster, namespace string) *corev1.Pod {
	pod := podWith(namespace, map[string]string{v1beta1.LabelCluster: cluster})
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1beta1.GroupVersion.String(), Kind: "ComputeCluster", Name: cluster, UID: "u", Controller: new(true),
	}}
	return pod
}
