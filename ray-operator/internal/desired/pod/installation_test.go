package pod_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func installed() *v1beta1.PodDefaults {
	return &v1beta1.PodDefaults{
		ServiceAccountName: "site", PriorityClassName: "site", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "site"}},
		Labels: map[string]string{"team": "site", "site": "a"}, Annotations: map[string]string{"site": "a"},
		NodeSelector: map[string]string{"pool": "site"}, Tolerations: []corev1.Toleration{{Key: "site"}},
		Env:     []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "site"}, {Name: "LEVEL", Value: "site"}},
		EnvFrom: []corev1.EnvFromSource{{Prefix: "SITE_"}},
	}
}

var empty = cmpopts.EquateEmpty()

// TestUnder_LaysTheClustersOver: what a cluster says of the same name or key stays, and neither is changed.
func TestUnder_LaysTheClustersOver(t *testing.T) {
	cluster, site := testkit.Cluster("demo"), installed()
	cluster.Spec.PodDefaults = &v1beta1.PodDefaults{
		ServiceAccountName: "own", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "own"}, {Name: "site"}},
		Labels: map[string]string{"team": "own"}, Tolerations: []corev1.Toleration{{Key: "own"}},
		Env: []corev1.EnvVar{{Name: "LEVEL", Value: "own"}}, EnvFrom: []corev1.EnvFromSource{{Prefix: "OWN_"}},
	}
	before := cluster.DeepCopy()
	want := &v1beta1.PodDefaults{
		ServiceAccountName: "own", PriorityClassName: "site", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "own"}, {Name: "site"}},
		Labels: map[string]string{"team": "own", "site": "a"}, Annotations: map[string]string{"site": "a"},
		NodeSelector: map[string]string{"pool": "site"}, Tolerations: []corev1.Toleration{{Key: "own"}, {Key: "site"}},
		Env:     []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "site"}, {Name: "LEVEL", Value: "own"}},
		EnvFrom: []corev1.EnvFromSource{{Prefix: "SITE_"}, {Prefix: "OWN_"}},
	}
	if diff := cmp.Diff(want, pod.Under(cluster, site).Spec.PodDefaults, empty); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, cluster) + cmp.Diff(installed(), site); diff != "" {
		t.Errorf("an argument was changed: %s", diff)
	}
	if pod.Under(cluster, nil) != cluster {
		t.Error("without defaults of the installation the cluster is another one")
	}
}

func TestUnder_GivesAClusterWithoutDefaultsThose(t *testing.T) {
	if diff := cmp.Diff(installed(), pod.Under(testkit.Cluster("demo"), installed()).Spec.PodDefaults, empty); diff != "" {
		t.Error(diff)
	}
}

// TestPlace_LeavesLabelsAndVariables: a store's pod gets what is about its place, under what it has.
func TestPlace_LeavesLabelsAndVariables(t *testing.T) {
	spec := corev1.PodSpec{NodeSelector: map[string]string{"pool": "own"}, Tolerations: []corev1.Toleration{{Key: "own"}}}
	pod.Place(&spec, installed())
	want := corev1.PodSpec{
		NodeSelector: map[string]string{"pool": "own"}, Tolerations: []corev1.Toleration{{Key: "own"}, {Key: "site"}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "site"}}, PriorityClassName: "site",
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Error(diff)
	}
}
