package logs

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func TestChosen_TakesADeployment(t *testing.T) {
	for deployment, want := range map[string]bool{"": true, "Model": true, "a/Model": true, "b/Model": false, "Modl": false, "a": false} {
		if chosen(deployment).takes("a", "Model") != want {
			t.Errorf("%q takes it: %v", deployment, !want)
		}
	}
}

func TestChosen_SaysWhyThereIsNoLog(t *testing.T) {
	service := &v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{Name: "translate"}}
	service.Status.Active = &v1beta1.ServiceVersion{ClusterName: "x", Applications: []v1beta1.ApplicationStatus{{Name: "a"}, {Name: "b"}}}
	model := heads.Deployment{Cluster: "x", Application: "a", Name: "Model"}
	starting := model
	starting.Replicas = []heads.Replica{{State: "STARTING"}, {State: "RUNNING"}, {State: "STARTING"}}
	front := heads.Deployment{Cluster: "x", Application: "b", Name: "Front"}
	elsewhere := heads.Deployment{Cluster: "y", Application: "b", Name: "Front"}
	for name, c := range map[string]struct {
		chosen chosen
		all    []heads.Deployment
		want   string
		code   int
	}{
		"it sleeps":                {"Model", []heads.Deployment{model, front}, `service/translate has no log of deployment "Model" now: it has no replica`, outcome.Done},
		"it starts":                {"a/Model", []heads.Deployment{starting, front}, `deployment "a/Model" yet: its replicas are RUNNING, STARTING`, outcome.Done},
		"all start":                {"", []heads.Deployment{starting}, "service/translate has no log yet: its replicas are RUNNING, STARTING", outcome.Done},
		"Serve has no other one":   {"Modl", []heads.Deployment{model, front, front}, `service/translate has no deployment "Modl"; write "Model"`, outcome.Usage},
		"none is near":             {"x", []heads.Deployment{model, front, front}, "give one of Front, Model", outcome.Usage},
		"of another application":   {"b/Model", []heads.Deployment{model, front}, `no deployment "b/Model"; write "a/Model"`, outcome.Usage},
		"Serve builds the other":   {"Front", []heads.Deployment{model}, `deployment "Front" yet: Serve builds its applications`, outcome.Done},
		"Serve builds it here":     {"Fron", []heads.Deployment{model, elsewhere}, "Serve builds its applications", outcome.Done},
		"Serve builds all of them": {"", nil, "service/translate has no log yet: Serve builds its applications", outcome.Done},
	} {
		t.Run(name, func(t *testing.T) {
			said, err := c.chosen.explainNone(service, c.all)
			if err != nil {
				said = err.Error()
			}
			if outcome.Code(err) != c.code || !strings.Contains(said, c.want) {
				t.Errorf("it ends with %d: %s", outcome.Code(err), said)
			}
		})
	}
}

// serve deploys application first of service translate, and returns the service.
func (b *bed) serve() (away.Clusters, *v1beta1.ClusterService) {
	b.t.Helper()
	service := &v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: headstest.Namespace, Name: "translate"}}
	service.Status.Active = &v1beta1.ServiceVersion{ClusterName: "demo", Applications: []v1beta1.ApplicationStatus{{Name: "first"}}}
	if err := b.objects.Create(b.t.Context(), service); err != nil {
		b.t.Fatal(err)
	}
	clusters := away.Clusters{Console: b.console, Objects: b.objects}
	conversation, err := clusters.Converse(b.t.Context(), "demo")
	if err != nil {
		b.t.Fatal(err)
	}
	config := json.RawMessage(`{"applications": [{"name": "first", "route_prefix": "/first", "import_path": "module:app", "runtime_env": {"env_vars": {"CODE": "a"}},
		"deployments": [{"name": "Model"}]}]}`)
	if err := conversation.Serve().Deploy(b.t.Context(), config); err != nil {
		b.t.Fatal(err)
	}
	return clusters, service
}

// TestReplicaOutput_WaitsForALog follows a deployment from before Serve knows it until its replica has a place.
func TestReplicaOutput_WaitsForALog(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.fake.Hold("first")
		clusters, service := b.serve()
		ctx, interrupt := context.WithCancel(t.Context())
		of := &replicaOutput{clusters: clusters, service: service, deployment: "Model", isFollowed: true}
		done := make(chan error, 1)
		go func() { done <- of.print(ctx) }()
		pass(time.Minute)
		once := &replicaOutput{clusters: clusters, service: service, deployment: "Model"}
		if err := once.print(t.Context()); err != nil {
			t.Errorf("what does not follow ends with %v", err)
		}
		if out := b.out.String(); out != "" {
			t.Errorf("it prints %q", out)
		}
		b.fake.Heal("first")
		pass(time.Minute)
		interrupt()
		if err := <-done; outcome.Code(err) != outcome.Detached {
			t.Errorf("it ends with %v", err)
		}
		if out := b.out.String(); !strings.Contains(out, "Started initializing replica") {
			t.Errorf("it prints %q", out)
		}
		const start = `service/translate has no log of deployment "Model" yet: its replicas are STARTING; see heliostat why service/translate -n team`
		said := b.said.String()
		if strings.Count(said, start) != 2 || strings.Count(said, "\n") != 3 || !strings.HasPrefix(said, "service/translate has no log") {
			t.Errorf("it says %q", said)
		}
	})
}

// TestReplicaOutput_PrintsEachLineOnce follows a service while its replica writes, dies and comes back.
func TestReplicaOutput_PrintsEachLineOnce(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		clusters, service := b.serve()
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
