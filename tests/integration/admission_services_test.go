package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// servedIn serves one application on a cluster of its own, and is suspended: nothing is made.
func servedIn(namespace, name string) *v1beta1.ClusterService {
	return &v1beta1.ClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.ClusterServiceSpec{
			ServeConfig:     runtime.RawExtension{Raw: []byte(`{"applications":[{"name":"text","import_path":"app.main:app"}]}`)},
			ClusterTemplate: &v1beta1.ClusterTemplate{Spec: newCluster("", "", 0).Spec},
			Suspend:         new(true),
		},
	}
}

func TestTheAPIServerAndTheRulesAgreeOnServices(t *testing.T) {
	t.Parallel()
	agree(t, "services", countsOfServices)
}

// TestAServiceFromBeforeARuleCanBeSuspendedAndDeleted: a rule that is newer than a service must
// not keep anyone from labelling, suspending, resuming or deleting it.
func TestAServiceFromBeforeARuleCanBeSuspendedAndDeleted(t *testing.T) {
	t.Parallel()
	old := servedIn(newNamespace(t), "old")
	old.Spec.ServeConfig.Raw = []byte(`{"applications":[]}`)
	beforeARule(t, "clusterservices", old)
	outlivesARule(t, old, func() { old.Spec.HealthPath = "/" },
		func() { old.Spec.Suspend = new(false) }, func() { old.Spec.Suspend = new(true) })
}

// TestARefusalNamesThePlaceInAServeConfig: the application, the deployment and the field, as in
// the conditions of a service that got past the policy.
func TestARefusalNamesThePlaceInAServeConfig(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	service := servedIn(namespace, "deep")
	service.Spec.ServeConfig.Raw = []byte(`{"applications":[{"name":"a","import_path":"a:b"},
		{"name":"b","route_prefix":"/b","import_path":"a:b","deployments":[{"name":"c"},{"name":"d","ray_actor_options":{"num_cpus":-1}}]}]}`)
	const want = "spec.serveConfig.applications[1].deployments[1].ray_actor_options.num_cpus: Ray Serve takes a number of 0 or more here"
	if err := shared.Create(t.Context(), service, client.DryRunAll); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a negative number is answered with %v, want %q", err, want)
	}
}
