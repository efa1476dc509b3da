package pod_test

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestIsAtLeast(t *testing.T) {
	for version, want := range map[string]bool{
		"2.55.1": false, "2.56.0": true, "2.60.0": true, "2.100.0": true, "2.9.0": false, "3.0.0": true, "2.61.0rc1": true, "nightly": true,
	} {
		cluster := testkit.Cluster("demo")
		cluster.Spec.RayVersion = version
		if have := pod.IsAtLeast(cluster, 2, 56); have != want {
			t.Errorf("%s: %v", version, have)
		}
	}
}
