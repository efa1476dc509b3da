package integration

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/app"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// commandLine runs commands with a kubeconfig, as users of one namespace.
type commandLine struct{ kubeconfig, namespace string }

// newCommandLine returns one whose users have the roles of their names.
func newCommandLine(t *testing.T) *commandLine {
	t.Helper()
	c := &commandLine{filepath.Join(t.TempDir(), "kubeconfig"), newNamespaceOf(t, "cli")}
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = clusterOf(shared.Config)
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: shared.Config.BearerToken,
		ClientCertificate: shared.Config.CertFile, ClientCertificateData: shared.Config.CertData,
		ClientKey: shared.Config.KeyFile, ClientKeyData: shared.Config.KeyData}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: "admin", Namespace: c.namespace}
	config.CurrentContext = "local"
	must(t, clientcmd.WriteToFile(*config, c.kubeconfig))
	for _, role := range []string{"view", "edit"} {
		bindRole(t, c.namespace, role, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: role})
		must(t, live.Until(t.Context(), limit, "the role "+role+" to hold clusters", func(ctx context.Context) error {
			if !may(ctx, t, role, c.namespace, "list computeclusters") {
				return errors.New("it does not yet")
			}
			return nil
		}))
	}
	return c
}

// run runs a command as a user and checks its exit code. It returns all that was printed.
func (c *commandLine) run(t *testing.T, user string, code int, line string) string {
	t.Helper()
	var printed bytes.Buffer
	args := append(strings.Fields(line), "--kubeconfig", c.kubeconfig, "--as", user)
	got := app.Run(t.Context(), args, app.Settings{Clock: clock.RealClock{},
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &printed, ErrOut: &printed}})
	if got != code {
		t.Errorf("heliostat %s ends with %d, want %d:\n%s", line, got, code, printed.String())
	}
	return printed.String()
}

// says runs a command, which must end well, and checks what it prints.
func (c *commandLine) says(t *testing.T, want, line string) {
	t.Helper()
	if printed := c.run(t, "edit", outcome.Done, line); !strings.Contains(printed, want) {
		t.Errorf("heliostat %s prints no %q:\n%s", line, want, printed)
	}
}

// tell writes the status of the cluster dev, as an operator would.
func (c *commandLine) tell(t *testing.T, kind string, status metav1.ConditionStatus, finding reason.Finding) {
	t.Helper()
	cluster := &v1beta1.ComputeCluster{}
	must(t, shared.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "dev"}, cluster))
	cluster.Status.ObservedGeneration = cluster.Generation
	cluster.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Reason: finding.Code, Message: finding.Text,
		LastTransitionTime: metav1.Now()}}
	must(t, shared.Status().Update(t.Context(), cluster))
}

// TestCommandLine_WalksOneCluster has a cluster go through its life by commands on a real API server, whose status the test
// writes: what the API server stores, refuses and permits is what a fake cannot show.
func TestCommandLine_WalksOneCluster(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t)
	c.says(t, "server dry run", "up dev --workers 2 --cpu 1 --dry-run=server")
	c.says(t, `no such objects in namespace "`+c.namespace+`"`, "top")
	if said := c.run(t, "edit", outcome.Refused, "up dev --ray-version 1.0"); !strings.Contains(said, "rayVersion") {
		t.Errorf("it does not say which field is refused: %s", said)
	}
	if said := c.run(t, "view", outcome.Refused, "up dev"); !strings.Contains(said, `role "edit" in namespace "`+c.namespace) {
		t.Errorf("it does not say which role is missing: %s", said)
	}
	c.says(t, "cluster/dev created", "up dev --workers 2 --cpu 1 --detach")
	c.says(t, "edit", "top clusters -o jsonpath={.items[0].metadata.annotations.heliostat\\.dev/owner}")
	c.says(t, "Waiting for the operator", "why cluster/dev")
	c.run(t, "edit", outcome.Timeout, "wait cluster/dev --timeout 1s")

	c.tell(t, v1beta1.ConditionReady, metav1.ConditionFalse, reason.TokenMissing.Of("dev-token"))
	c.says(t, "TokenMissing", "problems -o json")
	c.tell(t, v1beta1.ConditionReady, metav1.ConditionTrue, reason.AllReady.Of(2, 2))
	c.says(t, "is ready", "wait cluster/dev")

	c.says(t, "cluster/dev scaled", "scale dev workers=3")
	c.says(t, "3", "top clusters -o jsonpath={.items[0].spec.workerGroups[0].replicas}")
	c.run(t, "view", outcome.Refused, "scale dev 1")
	c.says(t, "cluster/dev suspended", "suspend cluster/dev")
	c.run(t, "edit", outcome.Timeout, "wait cluster/dev --for suspended --timeout 1s")
	c.tell(t, v1beta1.ConditionSuspended, metav1.ConditionTrue, reason.SuspendedBySpec.Of())
	c.says(t, "is suspended", "wait cluster/dev --for suspended")
	c.run(t, "edit", outcome.Stopped, "wait cluster/dev")
	c.says(t, "cluster/dev resumed", "resume dev")
	c.says(t, "edit", "whoami")

	if said := c.run(t, "view", outcome.Usage, "why cluster/deb"); !strings.Contains(said, `write "dev"`) {
		t.Errorf("it does not say which name is near: %s", said)
	}
	c.says(t, "cluster/dev deleted", "delete dev --yes")
	c.run(t, "edit", outcome.Usage, "why cluster/dev")
}
