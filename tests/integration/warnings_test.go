package integration

import (
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// warned collects the warnings of an API server.
type warned struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warned) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// take returns what was said since the last time.
func (w *warned) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.said = nil }()
	return strings.Join(w.said, "\n")
}

// warnedUser returns a client, and what the API server warns it of.
func warnedUser(t *testing.T) (client.Client, *warned) {
	t.Helper()
	heard := &warned{}
	config := rest.CopyConfig(shared.Config)
	config.WarningHandler = heard
	user, err := client.New(config, client.Options{Scheme: shared.Scheme()})
	must(t, err)
	return user, heard
}

// TestWarnings_OfOneReplica: other code for a deployment with one replica is taken, with a warning of what it costs.
func TestWarnings_OfOneReplica(t *testing.T) {
	t.Parallel()
	user, heard := warnedUser(t)
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	served := func(application string) []byte {
		return []byte(`{"applications":[{"name":"text",` + application + `}]}`)
	}
	const once = `"import_path":"app.main:app"`

	for name, c := range map[string]struct {
		before, after string
		change        func(*v1beta1.ClusterServiceSpec)
		isWarned      bool
	}{
		"one replica is warned of":           {`,"deployments":[{"name":"a","num_replicas":1}]`, "", nil, true},
		"no number is one replica":           {`,"deployments":[{"name":"b","num_replicas":2},{"name":"a"}]`, "", nil, true},
		"two replicas are not":               {`,"deployments":[{"name":"a","num_replicas":2}]`, "", nil, false},
		"one that surges is not":             {`,"deployments":[{"name":"a","max_surge_percent":100}]`, "", nil, false},
		"one that autoscales is not":         {`,"deployments":[{"name":"a","num_replicas":"auto"}]`, "", nil, false},
		"the same code is not":               {`,"deployments":[{"name":"a","user_config":{"v":1}}]`, once + `,"deployments":[{"name":"a","user_config":{"v":2}}]`, nil, false},
		"a change with a second cluster not": {`,"deployments":[{"name":"a"}]`, "", func(spec *v1beta1.ClusterServiceSpec) { spec.ClusterTemplate.Spec.RayVersion = "2.59.0" }, false},
	} {
		service := servedIn(namespace, "s"+strings.NewReplacer(" ", "").Replace(name))
		service.Spec.ServeConfig.Raw = served(once + c.before)
		must(t, user.Create(t.Context(), service))
		if said := heard.take(); said != "" {
			t.Errorf("%s: a new service is warned of: %s", name, said)
		}
		after := c.after
		if after == "" {
			after = `"import_path":"app.next:app"` + c.before
		}
		service.Spec.ServeConfig.Raw = served(after)
		if c.change != nil {
			c.change(&service.Spec)
		}
		must(t, user.Update(t.Context(), service))
		const want = "spec.serveConfig.applications: text: a deployment with one replica answers nothing while its code changes"
		if said := heard.take(); strings.Contains(said, want) != c.isWarned || !c.isWarned && said != "" {
			t.Errorf("%s: the warnings are %q", name, said)
		}
	}
}

// TestWarnings_OfGangsWithEncryption: a gang whose traffic is not encrypted, though its cluster's is, is taken with a warning.
func TestWarnings_OfGangsWithEncryption(t *testing.T) {
	t.Parallel()
	user, heard := warnedUser(t)
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	const want = "spec.gang: network.encryption does not encrypt what the processes of a gang send to each other"
	for name, c := range map[string]struct{ isGang, isEncrypted, isWarned bool }{
		"a gang with encryption is warned of": {true, true, true},
		"a gang without it is not":            {true, false, false},
		"another job with it is not":          {false, true, false},
	} {
		job := newJob(namespace, "j"+strings.ReplaceAll(name, " ", ""))
		if c.isGang {
			job.Spec.Gang = &v1beta1.Gang{Framework: v1beta1.FrameworkPyTorch, Roles: []v1beta1.GangRole{{
				Name: v1beta1.GangRoleWorker, Resources: map[string]resource.Quantity{"CPU": resource.MustParse("1")},
			}}}
		}
		if c.isEncrypted {
			job.Spec.ClusterTemplate.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
		}
		schedule := newSchedule(namespace, job.Name, job)
		for _, object := range []client.Object{job, schedule} {
			must(t, user.Create(t.Context(), object, client.DryRunAll))
			if said := heard.take(); strings.Contains(said, want) != c.isWarned || !c.isWarned && said != "" {
				t.Errorf("%s: the warnings of a %T are %q", name, object, said)
			}
		}
	}
}
