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

// servingTime is for a service that goes from one cluster to another.
const servingTime = 2 * limit

// quickly is how a service's cluster is followed by another.
var quickly = values{"DrainSeconds": 20, "RetireAfterSeconds": 10}

// longest is how many seconds a request takes at most that these specs send.
func longest() int {
	if *full {
		return 9
	}
	return 3
}

// team is a namespace with services in it, and the code that they serve.
type team struct{ namespace string }

// serviced makes a fresh namespace with the code.
func serviced(ctx context.Context) *team {
	GinkgoHelper()
	t := &team{namespace: fresh(ctx)}
	echo, err := os.ReadFile(root + "/examples/serve/echo/echo.py")
	Expect(err).NotTo(HaveOccurred())
	const slow = `    @api.get("/slow")`
	code := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "code"}, Data: map[string]string{
		"echo.py":    string(echo),
		"calls.py":   strings.Replace(string(echo), slow, rendered("programs/calls.py", nil)+"\n"+slow, 1),
		"next.py":    string(echo) + "\nNEXT = True\n",
		"dies.py":    rendered("programs/failing.py", values{"Fails": "time.sleep(30); os._exit(1)"}),
		"sickens.py": rendered("programs/failing.py", values{"Fails": "threading.Thread(target=self.watch, daemon=True).start()"}),
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

// applies makes the service of a file of testdata, which this machine reaches, and waits until it has an address.
func (t *team) applies(ctx context.Context, name, file string, v values) *service {
	GinkgoHelper()
	text := rendered(file, v.and(values{"Name": name, "Outside": outside(ctx)}))
	Expect(kubernetes.Apply(ctx, t.namespace, []byte(text))).To(Succeed())
	return t.service(ctx, name)
}

// begins makes the service of a file of testdata, and waits until it serves.
func (t *team) begins(ctx context.Context, name, file string, v values) *service {
	GinkgoHelper()
	s := t.applies(ctx, name, file, v)
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
