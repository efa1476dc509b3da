package logs

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/heads"
	"github.com/heliostat-dev/heliostat/apiserver/heads/headstest"
	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

func TestChosen_TakesADeployment(t *testing.T) {
	one := heads.Replica{Application: "a", Deployment: "Model"}
	for deployment, want := range map[string]bool{"": true, "Model": true, "a/Model": true, "b/Model": false, "Modl": false, "a": false} {
		if chosen(deployment).takes(one) != want {
			t.Errorf("%q takes it: %v", deployment, !want)
		}
	}
}

// TestReplicaOutput_PrintsEachLineOnce follows a service while its replica writes, dies and comes back.
func TestReplicaOutput_PrintsEachLineOnce(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		service := &v1alpha1.ClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: headstest.Namespace, Name: "translate"}}
		service.Status.Active = &v1alpha1.ServiceVersion{ClusterName: "demo", Applications: []v1alpha1.ApplicationStatus{{Name: "first"}}}
		if err := b.objects.Create(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		clusters := away.Clusters{Console: b.console, Objects: b.objects}
		conversation, err := clusters.Converse(t.Context(), "demo")
		if err != nil {
			t.Fatal(err)
		}
		config := json.RawMessage(`{"applications": [{"name": "first", "route_prefix": "/first", "import_path": "module:app", "runtime_env": {"env_vars": {"CODE": "a"}},
			"deployments": [{"name": "Model"}]}]}`)
		if err := conversation.Serve().Deploy(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		ctx, interrupt := context.WithCancel(t.Context())
		of := &replicaOutput{clusters: clusters, service: service, isFollowed: true}
		done := make(chan error, 1)
		go func() { done <- of.print(ctx) }()
		pass(10 * time.Second)
		first := strings.Count(b.out.String(), "\n")
		if first == 0 {
			t.Fatal("it prints nothing of what was written before")
		}
		b.network.Break()
		pass(10 * time.Second)
		if !b.fake.KillReplica("first", "it was out of memory") {
			t.Fatal("there is no replica")
		}
		pass(time.Minute)
		interrupt()
		if err := <-done; outcome.Code(err) != outcome.Detached || !strings.Contains(err.Error(), "logs service/translate -f -n team") {
			t.Errorf("it ends with %v", err)
		}
		lines := strings.Split(strings.TrimSpace(b.out.String()), "\n")
		if len(lines) <= first {
			t.Errorf("it prints nothing of the replica that came after: %q", lines)
		}
		of = &replicaOutput{clusters: clusters, service: service, deployment: "Nope"}
		if err := of.print(t.Context()); outcome.Code(err) != outcome.Usage {
			t.Errorf("a deployment that is not there: %v", err)
		}
	})
}
