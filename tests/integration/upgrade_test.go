package integration

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// release is installed and uninstalled by helm, CRDs included. The Deployment's pods fall to
// the kubelet of these tests, which runs nothing: the program is started beside them.
type release struct {
	installation
	t *testing.T
}

func (r release) install() {
	r.t.Helper()
	_, err := live.Helm(r.t.Context(), "../..", "upgrade", "--install", r.name, "../../helm-chart/heliostat", "--namespace", r.namespace,
		"--take-ownership", "--set", "fullnameOverride="+r.name, "--set", "watchNamespaces={"+r.namespace+"}", "--set", "watchNodes=false",
		"--set", "rbac.aggregate=false", "--wait", "--timeout", "2m")
	must(r.t, err)
}

func (r release) uninstall(ctx context.Context) error {
	_, err := live.Helm(ctx, "../..", "uninstall", r.name, "--namespace", r.namespace, "--ignore-not-found", "--wait", "--timeout", "2m")
	return err
}

func TestClustersOutliveAnUninstalledOperator(t *testing.T) {
	r := release{t: t, installation: installation{namespace: newNamespace(t), name: "brief"}}
	r.flags = []string{"--watch-namespaces=" + r.namespace, "--watch-nodes=false", "--leader-elect", "--namespace=" + r.namespace, "--leader-election-name=" + r.name}
	t.Cleanup(func() { must(t, r.uninstall(context.WithoutCancel(t.Context()))) })
	r.install()
	first := startOperator(t, r.login(t)...)
	names := create(t, r.namespace, 2, 2)
	before := map[types.UID]bool{}
	for _, name := range names {
		ready(t, name)
	}
	first.quiet()
	stays, goes := names[0], names[1]
	for _, pod := range podsOf(t, stays, "") {
		before[pod.UID] = true
	}
	first.stop(syscall.SIGTERM)
	must(t, r.uninstall(t.Context()))

	must(t, shared.List(t.Context(), &v1beta1.ComputeClusterList{})) // the kind is still there
	nothingHolds(t, r.namespace)
	must(t, shared.Delete(t.Context(), &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: goes.Namespace, Name: goes.Name}}))
	begin := time.Now()
	must(t, shared.UntilGone(t.Context(), goes, limit))
	t.Logf("without an operator a deleted cluster left nothing after %v", rounded(time.Since(begin)))
	untouched(t, stays, before)

	r.install()
	again := shared.audit.now(t)
	second := startOperator(t, r.login(t)...)
	second.leads(time.Now())
	second.quiet()
	untouched(t, stays, before)
	if made := budgetsApart(writes(shared.audit.since(t, again, r.namespace))); len(made) > 0 {
		t.Errorf("a reinstalled operator wrote: %s", tally(made))
	}
	scaleTo(t, stays, 3)
	ready(t, stays)
	for _, pod := range podsOf(t, stays, "") {
		delete(before, pod.UID)
	}
	if len(before) > 0 {
		t.Errorf("%d pods were replaced", len(before))
	}
}

// untouched checks that a cluster has exactly the pods it had, and that all run.
func untouched(t *testing.T, name types.NamespacedName, before map[types.UID]bool) {
	t.Helper()
	pods := podsOf(t, name, "")
	for _, pod := range pods {
		if !before[pod.UID] || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s is %s, was there before: %t, leaves: %t", pod.Name, pod.Status.Phase, before[pod.UID], pod.DeletionTimestamp != nil)
		}
	}
	if len(pods) != len(before) {
		t.Errorf("%s has %d pods, it had %d", name, len(pods), len(before))
	}
}

// nothingHolds checks of everything that was made for clusters, of every kind there is,
// that no finalizer keeps it: without an operator nobody would take it away.
func nothingHolds(t *testing.T, namespace string) {
	t.Helper()
	groups, err := shared.Kubernetes.Discovery().ServerPreferredNamespacedResources()
	must(t, err)
	seen := 0
	for _, group := range groups {
		for _, kind := range group.APIResources {
			// Endpoints are deprecated; what they say is in EndpointSlices.
			if !slices.Contains(kind.Verbs, "list") || kind.Kind == "Endpoints" {
				continue
			}
			for _, object := range ofClusters(t, namespace, schema.FromAPIVersionAndKind(group.GroupVersion, kind.Kind)) {
				seen++
				// A claim's protection is Kubernetes' own, and lifted by it.
				held := slices.DeleteFunc(object.GetFinalizers(), func(name string) bool { return name == "kubernetes.io/pvc-protection" })
				if len(held) > 0 {
					t.Errorf("%s %s is held by %v", kind.Kind, object.GetName(), held)
				}
			}
		}
	}
	if seen < 2*5 { // of two clusters: itself, three pods, a Service
		t.Errorf("only %d objects of clusters were seen", seen)
	}
}

// ofClusters lists the clusters of a namespace or what was made for them, of one kind.
func ofClusters(t *testing.T, namespace string, kind schema.GroupVersionKind) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	must(t, shared.List(t.Context(), list, client.InNamespace(namespace)))
	return slices.DeleteFunc(list.Items, func(object unstructured.Unstructured) bool {
		return kind.Kind != "ComputeCluster" && object.GetLabels()[v1beta1.LabelCluster] == ""
	})
}
