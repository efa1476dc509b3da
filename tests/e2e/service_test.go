package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// What the specs of services share: the code that they serve, and how they are asked. Each
// cluster is a head with two workers, so that two of them are the six Ray pods that there is
// room for.

const (
	// servingTime is for a service that goes from one cluster to another.
	servingTime = 2 * limit
	// withCode mounts all versions of the code into the pods of a head or a group.
	withCode = `template: {spec: {` + codeMounts
	// codeMounts ends a pod's template that began with spec.
	codeMounts  = codeVolumes + `containers: [{name: ray, ` + codeMount + `}]}}`
	codeVolumes = `volumes: [{name: code, configMap: {name: code, items: [` +
		`{key: echo.py, path: a/echo.py}, {key: next.py, path: b/echo.py}, {key: calls.py, path: a/calls.py}, {key: dies.py, path: a/dies.py}, {key: sickens.py, path: a/sickens.py}]}}], `
	codeMount = `volumeMounts: [{name: code, mountPath: /code}]`
	// codeHead and codeWorkers are a cluster for the code.
	codeHead    = "head: {size: {cpu: 500m, memory: 2560Mi}, " + withCode + "}"
	codeWorkers = "workerGroups: [{name: cpu, replicas: 2, size: {cpu: 500m, memory: 2Gi}, " + withCode + "}]"
	// ownCluster is the template of a service's own, and quickly how it is followed by another.
	ownCluster = "clusterTemplate: {spec: {rayVersion: " + release + ", imagePullPolicy: IfNotPresent, " + codeHead + ", " + codeWorkers + "}}\n"
	// limitedCluster is ownCluster, but no pod may use more CPU than it asks for; two of them are
	// little more than two CPUs.
	limitedCluster = "clusterTemplate: {spec: {rayVersion: " + release + ", imagePullPolicy: IfNotPresent, " +
		"head: {template: {spec: {" + codeVolumes + "containers: [{name: ray, resources: {requests: {cpu: 300m, memory: 2560Mi}, limits: {cpu: 300m, memory: 2560Mi}}, " + codeMount + "}]}}}, " +
		"workerGroups: [{name: cpu, replicas: 2, template: {spec: {" + codeVolumes + "containers: [{name: ray, resources: {requests: {cpu: 400m, memory: 2Gi}, limits: {cpu: 400m, memory: 2Gi}}, " + codeMount + "}]}}}]}}\n"
	quickly = "upgradeStrategy: {surge: {stepPercent: 50, intervalSeconds: 2}, drainSeconds: 20, retireAfterSeconds: 10}\n"
)

// longest is how many seconds a request takes at most that these specs send.
func longest() int {
	if *full {
		return 9
	}
	return 3
}

// hasty is how a service's cluster is followed by another, with time for the longest requests: on a busy machine one of
// 3 s can take 5.
const hasty = "upgradeStrategy: {surge: {stepPercent: 50, intervalSeconds: 2}, drainSeconds: 12, retireAfterSeconds: 5}\n"

// onNode is a template with the code, for a certain node.
func onNode(name string) string {
	return "template: {spec: {nodeSelector: {kubernetes.io/hostname: " + name + "}, " + codeMounts
}

// echoing is a serveConfig with the echo of the examples, under a name and a route.
func echoing(name, route string) string {
	return fmt.Sprintf(`serveConfig: {applications: [{name: %s, route_prefix: %q, import_path: "echo:app", runtime_env: {env_vars: {PYTHONPATH: /code/a}}, `+
		`deployments: [{name: Echo, num_replicas: 2, user_config: {version: "1"}}]}]}`+"\n", name, route)
}

// failing are two deployments that take the place of the echo.
const failing = `import os, socket, threading, time
from ray import serve
from starlette.requests import Request
@serve.deployment(num_replicas=2, max_replicas_per_node=1, ray_actor_options={"num_cpus": 0.1})
class Echo:
    def __init__(self):
        %s
    def __call__(self, request: Request):
        return {"version": "bad", "pid": os.getpid(), "node": socket.gethostname(), "said": request.query_params.get("said", "")}
    def reconfigure(self, config):
        pass
    def watch(self):
        while not os.path.exists("/tmp/sick"):
            time.sleep(0.05)
        os._exit(1)
app = Echo.bind()
`

// calls are methods of the echo for the gRPC calls of tests/internal/loadgen.
const calls = `    def answer(self, **said):
        from ray.serve.generated.serve_pb2 import UserDefinedResponse
        return UserDefinedResponse(greeting=json.dumps({**self.who(), **said}))

    def Method1(self, message):
        return self.answer(said=message.name)

    async def Streaming(self, message):
        count, pace = message.name.split()
        for chunk in range(int(count)):
            yield self.answer(chunk=chunk, of=int(count))
            await asyncio.sleep(float(pace))

`

// team is a namespace with services in it, and the code that they serve.
type team struct{ namespace string }

// serviced makes a fresh namespace with the code.
func serviced(ctx context.Context) *team {
	GinkgoHelper()
	t := &team{namespace: fresh(ctx)}
	echo, err := os.ReadFile(root + "/examples/serve/echo/echo.py")
	Expect(err).NotTo(HaveOccurred())
	code := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "code"}, Data: map[string]string{
		"echo.py":    string(echo),
		"calls.py":   strings.Replace(string(echo), `    @api.get("/slow")`, calls+`    @api.get("/slow")`, 1),
		"next.py":    string(echo) + "\nNEXT = True\n",
		"dies.py":    fmt.Sprintf(failing, "time.sleep(30); os._exit(1)"),
		"sickens.py": fmt.Sprintf(failing, "threading.Thread(target=self.watch, daemon=True).start()"),
	}}
	Expect(kubernetes.Create(ctx, code)).To(Succeed())
	return t
}

// service is a ClusterService, and where it answers.
type service struct {
	types.NamespacedName
	address string
}

// outside returns the block of the nodes' addresses and of this machine's: clients of these tests send from there, and no
// pod does.
func outside(ctx context.Context) string {
	GinkgoHelper()
	address, err := netip.ParseAddr(nodes(ctx)[0].Status.Addresses[0].Address)
	Expect(err).NotTo(HaveOccurred())
	block, err := address.Prefix(24)
	Expect(err).NotTo(HaveOccurred())
	return block.String()
}

// applies makes a service with a spec in YAML that this machine reaches, and waits until it has an address.
func (t *team) applies(ctx context.Context, name, spec string) *service {
	GinkgoHelper()
	text := fmt.Sprintf("apiVersion: heliostat.dev/v1beta1\nkind: ClusterService\nmetadata: {name: %s}\nspec:\n", name)
	spec += fmt.Sprintf("service: {allowFrom: [{ipBlock: {cidr: %s}}]}\n", outside(ctx))
	for line := range strings.Lines(spec) {
		text += "  " + line
	}
	Expect(kubernetes.Apply(ctx, t.namespace, []byte(text))).To(Succeed())
	return t.service(ctx, name)
}

// begins makes a service with a spec in YAML, and waits until it serves.
func (t *team) begins(ctx context.Context, name, spec string) *service {
	GinkgoHelper()
	s := t.applies(ctx, name, spec)
	s.serves(ctx)
	return s
}

// service finds one that was applied, by the address of its Service.
func (t *team) service(ctx context.Context, name string) *service {
	GinkgoHelper()
	s := &service{NamespacedName: types.NamespacedName{Namespace: t.namespace, Name: name}}
	eventually(ctx, "the Service "+name, func(ctx context.Context) error {
		var found corev1.Service
		if err := kubernetes.Get(ctx, s.NamespacedName, &found); err != nil {
			return err
		}
		if found.Spec.ClusterIP == "" || len(found.Spec.Ports) == 0 {
			return errors.New("it has no address yet")
		}
		s.address = "http://" + net.JoinHostPort(found.Spec.ClusterIP, fmt.Sprint(found.Spec.Ports[0].Port))
		return nil
	})
	return s
}

func (s *service) now(ctx context.Context) *v1beta1.ClusterService {
	GinkgoHelper()
	found, err := kubernetes.FindService(ctx, s.NamespacedName)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// serves waits until the service is as its spec asks, with nothing under way.
func (s *service) serves(ctx context.Context) *v1beta1.ClusterService {
	GinkgoHelper()
	found, err := kubernetes.UntilServing(ctx, s.NamespacedName, servingTime)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// becomes waits until the service is as a look wants it, which gives what is not so.
func (s *service) becomes(ctx context.Context, what string, look func(*v1beta1.ClusterService) error) *v1beta1.ClusterService {
	GinkgoHelper()
	var found *v1beta1.ClusterService
	eventually(ctx, s.Name+" to "+what, func(ctx context.Context) (err error) {
		if found, err = kubernetes.FindService(ctx, s.NamespacedName); err != nil {
			return err
		}
		if err = look(found); err != nil {
			err = fmt.Errorf("%w: it is %s", err, live.SaysOfService(found))
		}
		return err
	})
	return found
}

// has looks for a condition of a status and a reason; any reason will do where it is empty.
func has(condition string, status metav1.ConditionStatus, why string) func(*v1beta1.ClusterService) error {
	return func(service *v1beta1.ClusterService) error {
		found := meta.FindStatusCondition(service.Status.Conditions, condition)
		if found == nil || found.Status != status || why != "" && found.Reason != why {
			return fmt.Errorf("%s is not %s with %s", condition, status, why)
		}
		return nil
	}
}

func (s *service) edit(ctx context.Context, changes ...func(*v1beta1.ClusterServiceSpec) error) {
	GinkgoHelper()
	Expect(kubernetes.EditService(ctx, s.NamespacedName, func(spec *v1beta1.ClusterServiceSpec) error {
		for _, change := range changes {
			if err := change(spec); err != nil {
				return err
			}
		}
		return nil
	})).To(Succeed())
}

// configured changes a serveConfig.
func configured(change func(config map[string]any)) func(*v1beta1.ClusterServiceSpec) error {
	return func(spec *v1beta1.ClusterServiceSpec) error {
		config := map[string]any{}
		if err := yaml.Unmarshal(spec.ServeConfig.Raw, &config); err != nil {
			return fmt.Errorf("read the serveConfig: %w", err)
		}
		change(config)
		raw, err := json.Marshal(config)
		spec.ServeConfig = runtime.RawExtension{Raw: raw}
		return err
	}
}

// application changes the only application of a serveConfig.
func application(change func(app map[string]any)) func(*v1beta1.ClusterServiceSpec) error {
	return configured(func(config map[string]any) {
		change(config["applications"].([]any)[0].(map[string]any))
	})
}

// tells has the same processes tell another version.
func tells(version string) func(*v1beta1.ClusterServiceSpec) error {
	return application(func(app map[string]any) {
		app["deployments"] = []any{map[string]any{"name": "Echo", "num_replicas": 2, "user_config": map[string]any{"version": version}}}
	})
}

// runs has other code serve: that of a directory, or of a module.
func codeOf(directory, module string) func(*v1beta1.ClusterServiceSpec) error {
	return application(func(app map[string]any) {
		app["import_path"] = module + ":app"
		app["runtime_env"] = map[string]any{"env_vars": map[string]any{"PYTHONPATH": directory}}
	})
}

// moved gives the pods an environment that Ray does not look at, so that they are other pods.
func moved(value string) func(*v1beta1.ClusterServiceSpec) error {
	return func(spec *v1beta1.ClusterServiceSpec) error {
		if spec.ClusterTemplate.Spec.PodDefaults == nil {
			spec.ClusterTemplate.Spec.PodDefaults = &v1beta1.PodDefaults{}
		}
		spec.ClusterTemplate.Spec.PodDefaults.Env = []corev1.EnvVar{{Name: "EDITED", Value: value}}
		return nil
	}
}

// echoed is what an application of the examples says of itself.
type echoed struct {
	Version, Node, Said string
	PID                 int
}

// read asks for a path once, over a connection of its own, from outside of Kubernetes, and
// gives the whole answer.
func (s *service) read(ctx context.Context, path string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+path, nil)
	if err != nil {
		return "", err
	}
	request.Close = true
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = reply.Body.Close() }() // it was read
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %d: %q", reply.StatusCode, text[:min(len(text), 200)])
	}
	return string(text), err
}

// ask is read of what says JSON.
func (s *service) ask(ctx context.Context, path string) (echoed, error) {
	var said echoed
	text, err := s.read(ctx, path)
	if err == nil {
		err = json.Unmarshal([]byte(text), &said)
	}
	return said, err
}

// processes asks until two processes have answered, and many times more, and gives all that
// did, each "pod/process version". None may fail.
func (s *service) processes(ctx context.Context, path string) []string {
	GinkgoHelper()
	found := map[string]bool{}
	deadline := time.Now().Add(limit)
	for asked := 0; asked < 20 || len(found) < 2; asked++ {
		said, err := s.ask(ctx, path)
		Expect(err).NotTo(HaveOccurred())
		Expect(time.Now()).To(BeTemporally("<", deadline), "two processes that answer; there are %v", found)
		found[fmt.Sprintf("%s/%d %s", said.Node, said.PID, said.Version)] = true
	}
	return sorted(found)
}

// clusters are those that were made for the service, those on their way out included.
func (s *service) clusters(ctx context.Context) []v1beta1.ComputeCluster {
	GinkgoHelper()
	var list v1beta1.ComputeClusterList
	Expect(kubernetes.List(ctx, &list, client.InNamespace(s.Namespace), client.MatchingLabels{v1beta1.LabelService: s.Name})).To(Succeed())
	return list.Items
}

// alone waits until the service has one cluster, and gives it.
func (s *service) alone(ctx context.Context) *env {
	GinkgoHelper()
	e := &env{}
	eventually(ctx, s.Name+" to have one cluster", func(ctx context.Context) error {
		clusters := s.clusters(ctx)
		if len(clusters) != 1 {
			return fmt.Errorf("there are %d", len(clusters))
		}
		e.NamespacedName = client.ObjectKeyFromObject(&clusters[0])
		return nil
	})
	return e
}

var _ = JustAfterEach(func(ctx SpecContext) {
	var services v1beta1.ClusterServiceList
	if CurrentSpecReport().Failed() && kubernetes.List(ctx, &services) == nil {
		for i := range services.Items {
			text, _ := json.MarshalIndent(services.Items[i].Status, "", " ") // what cannot be printed is left out of a report
			GinkgoWriter.Printf("service %s: %s\n", services.Items[i].Name, text)
		}
	}
})
