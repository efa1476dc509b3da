package desired_test

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestGolden(t *testing.T) {
	cluster := testkit.Cluster("demo")
	testkit.Golden(t, "head-service", desired.HeadService(cluster, 3))
	testkit.Golden(t, "token-secret", desired.TokenSecret(cluster, "0123456789abcdef"))
}

// TestTokenIsTheArgument: the package draws nothing itself.
func TestTokenIsTheArgument(t *testing.T) {
	secret := desired.TokenSecret(testkit.Cluster("demo"), "given")
	if secret.StringData[v1alpha1.TokenKey] != "given" || len(secret.StringData) != 1 || !*secret.Immutable {
		t.Errorf("%+v", secret)
	}
}
