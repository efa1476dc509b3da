package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// installation is what the chart installs beside the one that all tests share: its own
// account with its own roles. The Deployment's flags are those of the program that a test
// starts in its place.
type installation struct {
	namespace, name string
	flags           []string
}

// newInstallation applies what the chart renders with some values, in a namespace of its
// own; all but the CRDs and policies, which are there and hold for all namespaces, and the Deployment.
func newInstallation(t *testing.T, name string, values ...string) installation {
	t.Helper()
	i := installation{namespace: newNamespace(t), name: name}
	out, err := live.Helm(t.Context(), "../..", append([]string{"template", name, "../../helm-chart/heliostat", "--namespace", i.namespace,
		"--set", "fullnameOverride=" + name, "--set", "crds.install=false", "--set", "admission.enabled=false", "--set", "rbac.aggregate=false"}, values...)...)
	must(t, err)
	objects, err := live.Decode([]byte(out))
	must(t, err)
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			if object.GetLabels()["app.kubernetes.io/component"] != "server" {
				i.flags = i.flagsOf(t, object)
			}
			continue
		}
		must(t, shared.ApplyObject(t.Context(), object))
		t.Cleanup(func() {
			must(t, client.IgnoreNotFound(shared.Delete(context.WithoutCancel(t.Context()), object)))
		})
	}
	return i
}

// flagsOf are those that the Deployment gives to the operator, with the account's token,
// and without the metrics' address, which the test chooses, and the name of a pod, which there is not.
func (i installation) flagsOf(t *testing.T, object *unstructured.Unstructured) []string {
	t.Helper()
	var deployment appsv1.Deployment
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
	flags := slices.DeleteFunc(deployment.Spec.Template.Spec.Containers[0].Args, func(flag string) bool {
		return strings.HasPrefix(flag, "--metrics-bind-address=") || strings.HasPrefix(flag, "--pod=")
	})
	return flags
}

// account is the user as which the installation's operator comes.
func (i installation) account() string { return "system:serviceaccount:" + i.namespace + ":" + i.name }

// login adds the flag for a kubeconfig with the account's token.
func (i installation) login(t *testing.T) []string {
	t.Helper()
	return append(slices.Clone(i.flags), "--kubeconfig="+i.kubeconfig(t))
}

// kubeconfig writes one with the account's token, and gives its path.
func (i installation) kubeconfig(t *testing.T) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: i.name}}
	request := &authenticationv1.TokenRequest{}
	must(t, shared.SubResource("token").Create(t.Context(), account, request))
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = clusterOf(shared.Config)
	config.AuthInfos["operator"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: "operator"}
	config.CurrentContext = "local"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, path))
	return path
}

func TestOnlyWatchedNamespacesAreTouched(t *testing.T) {
	t.Parallel()
	watched, other := newNamespace(t), newNamespace(t)
	i := newInstallation(t, "some", "--set", "watchNamespaces={"+watched+"}", "--set", "watchNodes=false")
	began := shared.audit.now(t)
	o := startOperator(t, i.login(t)...)
	left := create(t, other, 1, 1)[0]
	name := create(t, watched, 1, 2)[0]
	ready(t, name)
	scaleTo(t, name, 1)
	ready(t, name)
	o.quiet()

	if pods := podsOf(t, left, ""); len(pods) > 0 {
		t.Errorf("a cluster in a namespace that is not watched has %d pods", len(pods))
	}
	cluster, err := shared.Find(t.Context(), left)
	must(t, err)
	if condition := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionReady); condition == nil || condition.Reason != "Pending" {
		t.Errorf("it says %+v, want that it waits for an operator", condition)
	}
	asked := 0
	for _, r := range shared.audit.since(t, began, "") {
		if r.User.Username != i.account() {
			continue
		}
		// Discovery is about no resource.
		if r.ObjectRef.Resource != "" && r.ObjectRef.Namespace != watched {
			t.Errorf("the operator asked for %s in namespace %q", r.what(), r.ObjectRef.Namespace)
		}
		if r.ObjectRef.Namespace == watched {
			asked++
		}
	}
	if asked < 10 {
		t.Errorf("the log has only %d requests of the operator", asked)
	}
	must(t, shared.Delete(t.Context(), &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: watched, Name: name.Name}}))
	must(t, shared.UntilGone(t.Context(), name, limit))
}

// deprived is the account of the operator that may be refused something.
const deprived = "less"

// TestARightTakenAwayIsNamed takes away the right to create pods, under a cluster that
// runs and one that comes, and gives it back.
func TestARightTakenAwayIsNamed(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	i := newInstallation(t, deprived, "--set", "watchNamespaces={"+namespace+"}", "--set", "watchNodes=false")
	o := launch(t, i.login(t)...)
	there := create(t, namespace, 1, 1)[0]
	ready(t, there)
	before := podNames(podsOf(t, there, ""))

	whole := i.pods(t, namespace, []string{"get", "list", "watch", "patch"})
	must(t, shared.Create(t.Context(), newCluster(namespace, "late", 1)))
	late := types.NamespacedName{Namespace: namespace, Name: "late"}
	must(t, live.Until(t.Context(), limit, "the status to name the missing right", func(ctx context.Context) error {
		cluster, err := shared.Find(ctx, late)
		if err != nil {
			return err
		}
		for _, condition := range cluster.Status.Conditions {
			if condition.Reason == "CreateForbidden" && strings.Contains(condition.Message, "create") && strings.Contains(condition.Message, "pods") {
				t.Logf("%s: %s: %s", condition.Type, condition.Reason, condition.Message)
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v", cluster.Status.Conditions)
	}))
	i.pods(t, namespace, whole)
	ready(t, late)
	o.quiet()
	if now := podNames(podsOf(t, there, "")); len(now) != 2 || !now[before.any()] {
		t.Errorf("the cluster that ran has the pods %v, it had %v", now, before)
	}
}

// pods sets what the account may do with pods, and gives what it could before.
func (i installation) pods(t *testing.T, namespace string, verbs []string) []string {
	t.Helper()
	var role rbacv1.Role
	must(t, shared.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: i.name}, &role))
	for n := range role.Rules {
		if slices.Equal(role.Rules[n].Resources, []string{"pods"}) {
			former := role.Rules[n].Verbs
			role.Rules[n].Verbs = verbs
			must(t, shared.Update(t.Context(), &role))
			return former
		}
	}
	t.Fatal("the role has no rule for pods alone")
	return nil
}

// launch starts the operator as startOperator does, but one that may be refused something.
func launch(t *testing.T, flags ...string) *operator {
	t.Helper()
	o := &operator{t: t, metrics: freeAddress(t)}
	must(t, o.start(append([]string{"--metrics-bind-address=" + o.metrics, "--health-probe-bind-address=0"}, flags...)))
	t.Cleanup(func() {
		o.stop(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the operator's log:\n%s", o.log.String())
		}
	})
	return o
}

// TestProbesAndEndOfAnOperator checks what a kubelet asks and that SIGTERM in the middle of
// work ends it in time.
func TestProbesAndEndOfAnOperator(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	address := freeAddress(t)
	o := startOperator(t, "--health-probe-bind-address="+address, "--watch-namespaces="+namespace)
	for _, path := range []string{"/healthz", "/readyz"} {
		must(t, live.Until(t.Context(), limit, path+" to answer", func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
			if err != nil {
				return err
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			defer func() { _ = answer.Body.Close() }()
			if answer.StatusCode != http.StatusOK {
				return errors.New(answer.Status)
			}
			return nil
		}))
	}
	create(t, namespace, 10, 3)
	must(t, live.Until(t.Context(), limit, "the first pod", func(ctx context.Context) error {
		var pods corev1.PodList
		err := shared.List(ctx, &pods, client.InNamespace(namespace))
		if err == nil && len(pods.Items) == 0 {
			err = errors.New("there is none")
		}
		return err
	}))
	must(t, o.command.Process.Signal(syscall.SIGTERM))
	took := o.ended()
	t.Logf("ended %v after SIGTERM in the middle of ten clusters", rounded(took))
	inTime(t, "the end of an operator", took, 10*time.Second)
	if code := o.command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ended with code %d, want 0", code)
	}
}
