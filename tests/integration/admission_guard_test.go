package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// tenant is a client of someone with Kubernetes' own role admin in a namespace and no
// right beyond it.
func tenant(t *testing.T, namespace string) client.Client {
	t.Helper()
	must(t, shared.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ana"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ana"}},
	}))
	config := rest.CopyConfig(shared.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "ana"}
	as, err := client.New(config, client.Options{Scheme: shared.Scheme()})
	must(t, err)
	return as
}

// permit gives ana, whom tenant makes, rights beyond the role admin in a namespace.
func permit(t *testing.T, namespace, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	must(t, shared.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
	must(t, shared.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ana"}},
	}))
}

// podWith is a pod that is never bound to a node, so that nobody has to end it.
func podWith(namespace string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "p-", Labels: labels},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "heliostat.dev/never"}},
			Containers:      []corev1.Container{{Name: "c", Image: "none"}},
		},
	}
}

// TestNobodyPosesAsAPodOfACluster: the label lets a pod through the cluster's
// NetworkPolicy, so only the operator gives it, changes it and takes it away.
func TestNobodyPosesAsAPodOfACluster(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	ana := tenant(t, namespace)
	member := map[string]string{v1beta1.LabelCluster: "demo", v1beta1.LabelRole: v1beta1.RoleWorker}

	must(t, live.Until(t.Context(), limit, "ana's rights and the policy of pods to be in force", func(ctx context.Context) error {
		if err := ana.Create(ctx, podWith(namespace, nil), client.DryRunAll); err != nil {
			return err
		}
		if err := ana.Create(ctx, podWith(namespace, member), client.DryRunAll); !guarded(err) {
			return fmt.Errorf("a pod that poses as a worker is answered with %w", err)
		}
		return nil
	}))

	ours := podWith(namespace, member)
	must(t, shared.Create(t.Context(), ours)) // by one who has every right, as the operator has this one
	stranger := podWith(namespace, map[string]string{"app": "a"})
	must(t, ana.Create(t.Context(), stranger))
	for _, c := range []struct {
		what    string
		of      *corev1.Pod
		patch   string
		allowed bool
	}{
		{"a stranger gets the label", stranger, `{"metadata":{"labels":{"heliostat.dev/cluster":"demo"}}}`, false},
		{"a worker moves to another cluster", ours, `{"metadata":{"labels":{"heliostat.dev/cluster":"other"}}}`, false},
		{"a worker becomes a head", ours, `{"metadata":{"labels":{"heliostat.dev/role":"head"}}}`, false},
		{"a worker loses the label", ours, `{"metadata":{"labels":{"heliostat.dev/cluster":null}}}`, false},
		{"a worker gets another label of ours", ours, `{"metadata":{"labels":{"heliostat.dev/epoch":"2"}}}`, false},
		{"a worker gets an annotation of ours", ours, `{"metadata":{"annotations":{"heliostat.dev/intent":"v1-x"}}}`, false},
		{"a worker is to retire", ours, `{"metadata":{"annotations":{"heliostat.dev/retire":"now"}}}`, true},
		{"a worker gets a label of the user's", ours, `{"metadata":{"labels":{"team":"a"}}}`, true},
	} {
		err := ana.Patch(t.Context(), c.of.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(c.patch)), client.DryRunAll)
		if c.allowed && err != nil || !c.allowed && !guarded(err) {
			t.Errorf("%s: the answer is %v, want it allowed: %v", c.what, err, c.allowed)
		}
	}
	must(t, ana.Delete(t.Context(), ours))
}

func guarded(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "only the operator makes pods")
}

// TestAClusterFromBeforeARuleCanBeSuspendedAndDeleted: a rule that is newer than a cluster must not keep anyone from these,
// nor from changing what is not its spec.
func TestAClusterFromBeforeARuleCanBeSuspendedAndDeleted(t *testing.T) {
	t.Parallel()
	old := newCluster(newNamespace(t), "old", 0)
	old.Spec.WorkerGroups[0].RayStartParams = badOption
	beforeARule(t, "computeclusters", old)
	outlivesARule(t, old, func() {
		old.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRecreate}
	}, func() { old.Spec.Suspend = new(true) })
}

// outlivesARule checks that an object which a newer rule refuses takes a label and other edits, and can be deleted. An edit that
// leaves its spec bad is refused.
func outlivesARule(t *testing.T, old client.Object, bad func(), edits ...func()) {
	t.Helper()
	patch := func(edit func()) error {
		seen := old.DeepCopyObject().(client.Object)
		edit()
		return shared.Patch(t.Context(), old.DeepCopyObject().(client.Object), client.MergeFrom(seen))
	}
	for _, edit := range append(edits, func() { old.SetLabels(map[string]string{"team": "a"}) }) {
		must(t, patch(edit))
	}
	if err := patch(bad); !apierrors.IsInvalid(err) {
		t.Errorf("an edit of a bad spec that leaves it bad is answered with %v, want it refused", err)
	}
	must(t, shared.Delete(t.Context(), old))
}

// beforeARule creates an object as if its kind's policy were younger: the policy spares the object's namespace meanwhile.
func beforeARule(t *testing.T, kind string, old client.Object) {
	t.Helper()
	policyInForce(t, old.GetNamespace())
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
		"metadata": map[string]any{"name": live.ReleaseName + "-" + kind},
	}}
	must(t, shared.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	elsewhere := binding.DeepCopy()
	must(t, unstructured.SetNestedSlice(elsewhere.Object, []any{map[string]any{
		"key": corev1.LabelMetadataName, "operator": string(metav1.LabelSelectorOpNotIn), "values": []any{old.GetNamespace()},
	}}, "spec", "matchResources", "namespaceSelector", "matchExpressions"))
	must(t, shared.Update(t.Context(), elsewhere))
	must(t, live.Until(t.Context(), limit, "the policy to be off", func(ctx context.Context) error { return shared.Create(ctx, old) }))
	binding.SetResourceVersion(elsewhere.GetResourceVersion())
	must(t, shared.Update(t.Context(), binding))
	policyInForce(t, old.GetNamespace())
}

// TestMisspeltFieldsAreRefused: a client that asks for strictness, as kubectl does, is told of fields that are not there,
// also in templates; numbers may stand without quotes.
func TestMisspeltFieldsAreRefused(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	text, err := os.ReadFile("testdata/misspelt.yaml")
	must(t, err)
	var all []struct {
		Kind string
		Spec map[string]any
		Says string
	}
	must(t, yaml.UnmarshalStrict(text, &all))
	for _, c := range all {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": c.Spec}}
		object.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(c.Kind))
		object.SetNamespace(namespace)
		object.SetName("c")
		err := client.WithFieldValidation(shared.WithWatch, metav1.FieldValidationStrict).Create(t.Context(), object, client.DryRunAll)
		if (err != nil) != (c.Says != "") || err != nil && !strings.Contains(err.Error(), c.Says) {
			t.Errorf("%s %v is answered with %v, want it to say %q", c.Kind, c.Spec, err, c.Says)
		}
	}
}

// TestTheSchedulerKeepsHostNetworksApart holds what the rules rely on: on the host's network
// Kubernetes makes every port of a container one of the host, so that two pods of Ray never
// come to one node.
func TestTheSchedulerKeepsHostNetworksApart(t *testing.T) {
	t.Parallel()
	pod := podWith(newNamespace(t), nil)
	pod.Spec.HostNetwork = true
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080}}
	must(t, shared.Create(t.Context(), pod, client.DryRunAll))
	if got := pod.Spec.Containers[0].Ports[0].HostPort; got != 8080 {
		t.Errorf("the port of the host is %d, want 8080", got)
	}
}
