package pod_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestConnect_FollowsTheSpec(t *testing.T) {
	const (
		jobs   = "export RAY_API_SERVER_ADDRESS=http://demo-head.team-a.svc:8265"
		client = "export RAY_ADDRESS=ray://demo-head.team-a.svc:10001"
	)
	token := func(secret string) string {
		return "export RAY_AUTH_MODE=token RAY_AUTH_TOKEN=$(kubectl -n team-a get secret " + secret + " -o jsonpath='{.data.auth_token}' | base64 -d)"
	}
	for name, test := range map[string]struct {
		edit func(*v1beta1.ComputeCluster)
		want v1beta1.ConnectSummary
	}{
		"an empty spec": {func(*v1beta1.ComputeCluster) {}, v1beta1.ConnectSummary{Token: token("demo-token"), Jobs: jobs, Client: client}},
		"a token of the user": {func(c *v1beta1.ComputeCluster) {
			c.Spec.Authentication = &v1beta1.Authentication{SecretName: "mine"}
		}, v1beta1.ConnectSummary{Token: token("mine"), Jobs: jobs, Client: client}},
		"no authentication": {func(c *v1beta1.ComputeCluster) {
			c.Spec.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationDisabled}
		}, v1beta1.ConnectSummary{Jobs: jobs, Client: client}},
		"encryption": {encrypted, v1beta1.ConnectSummary{
			Token: token("demo-token"), Jobs: "export RAY_API_SERVER_ADDRESS=https://demo-head.team-a.svc:8265",
			Certificate: `kubectl -n team-a get secret demo-ca -o jsonpath='{.data.ca\.crt}' | base64 -d >ca.crt`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := testkit.Cluster("demo")
			cluster.Namespace = "team-a"
			test.edit(cluster)
			if diff := cmp.Diff(&test.want, pod.Connect(cluster)); diff != "" {
				t.Errorf("(- wanted, + is):\n%s", diff)
			}
		})
	}
}
