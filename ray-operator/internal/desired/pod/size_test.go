package pod_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestOver_KeepsRequestAndLimitTogether: of the two the one that was given last moves the other.
func TestOver_KeepsRequestAndLimitTogether(t *testing.T) {
	for name, test := range map[string]struct{ under, over, want corev1.ResourceList }{
		"nothing":                   {nil, nil, corev1.ResourceList{}},
		"what is given holds":       {testkit.Resources("cpu", "1", "memory", "1Gi"), testkit.Resources("cpu", "2"), testkit.Resources("cpu", "2", "memory", "1Gi")},
		"a limit above":             {testkit.Resources("cpu", "1"), testkit.Resources("limits.cpu", "2"), testkit.Resources("cpu", "1", "limits.cpu", "2")},
		"a limit below the request": {testkit.Resources("cpu", "1"), testkit.Resources("limits.cpu", "500m"), testkit.Resources("cpu", "500m", "limits.cpu", "500m")},
		"a request above the limit": {testkit.Resources("limits.cpu", "500m"), testkit.Resources("cpu", "1"), testkit.Resources("cpu", "1", "limits.cpu", "1")},
		"both over both, as they are": {
			testkit.Resources("cpu", "4", "limits.cpu", "8"), testkit.Resources("cpu", "1", "limits.cpu", "2"), testkit.Resources("cpu", "1", "limits.cpu", "2"),
		},
	} {
		under := test.under.DeepCopy()
		if diff := cmp.Diff(test.want, pod.Over(test.under, test.over)); diff != "" {
			t.Errorf("%s (- want):\n%s", name, diff)
		}
		if diff := cmp.Diff(under, test.under); diff != "" {
			t.Errorf("%s: the size below was changed:\n%s", name, diff)
		}
	}
}

// TestSizes_ReachEachContainerOfTheOperator: from the cluster's fields as from the installation, so that each can meet a
// quota on limits and a LimitRange.
func TestSizes_ReachEachContainerOfTheOperator(t *testing.T) {
	size := testkit.Resources("cpu", "250m", "limits.cpu", "500m", "memory", "128Mi", "ephemeral-storage", "1Gi")
	want := corev1.ResourceRequirements{
		Requests: testkit.Resources("cpu", "250m", "memory", "128Mi", "ephemeral-storage", "1Gi"),
		Limits:   testkit.Resources("cpu", "500m", "memory", "128Mi", "ephemeral-storage", "1Gi"),
	}
	plain := testkit.Cluster("demo", testkit.Group("cpu", 1))
	plain.Spec.Autoscaling = &v1beta1.Autoscaling{}
	plain.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
	given := plain.DeepCopy()
	given.Spec.Autoscaling.Size, given.Spec.Network.EncryptionSize = size, size
	sizes := pod.Sizes{Autoscaling: size, Encryption: size, ManagedRedis: size}
	other := given.DeepCopy()
	for name, laid := range map[string]*v1beta1.ComputeCluster{
		"of the cluster": given, "of the installation": sizes.Under(plain),
		"of the cluster over the installation": pod.Sizes{Autoscaling: testkit.Resources("cpu", "9"), Encryption: testkit.Resources("memory", "9Gi")}.Under(other),
	} {
		seen := 0
		for _, made := range []*corev1.Pod{operatorImage.Complete(pod.Head(laid, 1), laid), operatorImage.Complete(worker(laid), laid)} {
			for _, container := range made.Spec.InitContainers {
				seen++
				if diff := cmp.Diff(want, container.Resources); diff != "" {
					t.Errorf("sizes %s, container %s (- want):\n%s", name, container.Name, diff)
				}
			}
		}
		if seen != 4 {
			t.Errorf("sizes %s: %d containers, want certificates twice, encryption and autoscaler", name, seen)
		}
	}
	for _, group := range []string{"", "cpu"} {
		if pod.Intent(other, group) == pod.Intent(plain, group) {
			t.Errorf("a size of encryption makes no pod of group %q out of date", group)
		}
	}
	if (pod.Sizes{}).Under(plain) != plain {
		t.Error("without sizes of the installation the cluster is another one")
	}
	if plain.Spec.Autoscaling.Size != nil || plain.Spec.Network.EncryptionSize != nil {
		t.Error("the spec was changed")
	}
}
