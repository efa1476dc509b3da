package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	osexec "os/exec"
	"strings"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// cells are what docs/notebooks.md says that works in a notebook, each with a part of its output.
var cells = []struct{ code, says string }{
	{"import ray; ray.init(); print(len(ray.nodes()))", "2"},
	{"f = ray.remote(lambda x: x * x); print(ray.get([f.remote(i) for i in range(4)]))", "[0, 1, 4, 9]"},
	{"import ray.data; print(ray.data.from_items(['a', 'b', 'b']).groupby('item').count().sort('item').take_all())", "{'item': 'b', 'count()': 2}"},
	{"from ray.train import Checkpoint, RunConfig, ScalingConfig, report\nfrom ray.train.v2.api.data_parallel_trainer import DataParallelTrainer\n" +
		"def loop():\n    import tempfile; from ray import train\n" +
		"    report({'workers': train.get_context().get_world_size()}, checkpoint=Checkpoint.from_directory(tempfile.mkdtemp()))\n" +
		"print(DataParallelTrainer(loop, scaling_config=ScalingConfig(num_workers=2)).fit().metrics['workers'])", "2"},
	{"import getpass, os; print(getpass.getuser(), os.listdir(os.path.expanduser('~/ray_results')) != [])", "1000680000 True"},
	{"from ray import tune; print(tune.Tuner(lambda c: {'y': c['x']}, param_space={'x': tune.grid_search([1, 3])}).fit().get_best_result('y', 'max').metrics['y'])", "3"},
	{"from ray.util.state import list_nodes; print(len(list_nodes()))", "2"},
	{"import dask; from ray.util.dask import ray_dask_get\n" +
		"print(dask.delayed(sum)([dask.delayed(abs)(-1), 2]).compute(scheduler=ray_dask_get))", "3"},
	{"import joblib; from ray.util.joblib import register_ray; register_ray()\n" +
		"with joblib.parallel_backend('ray'): print(joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(i) for i in [-1, -2]))", "[1, 2]"},
	{"from ray.util.multiprocessing import Pool; print(Pool(2).map(lambda x: x + 1, [1, 2]))", "[2, 3]"},
	{"from ray import serve\n@serve.deployment(ray_actor_options={'num_cpus': 0})\nclass D:\n    def __call__(self, x): return x + 1\n" +
		"print(await serve.run(D.bind(), name='d', route_prefix=None).remote(41))", "42"},
}

var _ = It("opens a notebook in which all of Ray works, under any user", Label(localkubeLabel, live.JobExamplesLabel, live.AcceptLabel), func(ctx SpecContext) {
	packages := []string{"jupyterlab==4.4.3", "dask==2026.8.0", "joblib==1.6.0"}
	wheels := wheelsOf(ctx, packages...)
	inAJob := func(object *unstructured.Unstructured) {
		options := []any{"--no-index", "--find-links=http://" + wheels + "/", "--trusted-host=" + strings.Split(wheels, ":")[0]}
		pip := map[string]any{"pip_install_options": options}
		Expect(unstructured.SetNestedField(object.Object, pip, "spec", "runtimeEnv", "pip")).To(Succeed())
		Expect(unstructured.SetNestedStringSlice(object.Object, packages, "spec", "runtimeEnv", "pip", "packages")).To(Succeed())
	}
	o := example(ctx, "notebook", map[string]func(*unstructured.Unstructured){"ClusterJob": inAJob, "ComputeCluster": func(cluster *unstructured.Unstructured) { putUnderAnyUser(ctx, cluster) }})
	o.job("notebook").is(ctx, v1beta1.PhaseRunning)
	worker := (&env{types.NamespacedName{Namespace: o.namespace, Name: "lab"}}).workers(ctx, 1)[0]
	kernel := startKernel(ctx, client.ObjectKeyFromObject(&worker), exec(ctx, &worker, "cat", "/var/run/secrets/heliostat.dev/token/auth_token"))
	for _, cell := range cells {
		Expect(kernel.run(ctx, cell.code)).To(ContainSubstring(cell.says), cell.code)
	}
}, SpecTimeout(4*limit))

// putUnderAnyUser has the pods of a cluster run under an assigned user. CRI-O, which OpenShift runs, adds a line for such a user
// to /etc/passwd, and containerd does not. Ray creates a virtual environment with empty variables, which fails without that line.
func putUnderAnyUser(ctx context.Context, cluster *unstructured.Unstructured) {
	GinkgoHelper()
	const users = "root:x:0:0:root:/root:/bin/sh\n1000680000:x:1000680000:0:1000680000 user:/home/ray:/sbin/nologin\n"
	Expect(kubernetes.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.GetNamespace(), Name: "users"}, Data: map[string]string{"passwd": users}})).To(Succeed())
	var template map[string]any
	Expect(yaml.Unmarshal([]byte("{spec: {securityContext: "+assigned+", volumes: [{name: users, configMap: {name: users}}],"+
		" containers: [{name: ray, volumeMounts: [{name: users, mountPath: /etc/passwd, subPath: passwd}]}]}}"), &template)).To(Succeed())
	spec := cluster.Object["spec"].(map[string]any)
	for _, node := range append(spec["workerGroups"].([]any), spec["head"]) {
		node.(map[string]any)["template"] = template
	}
}

// wheelsOf serves packages for Ray's Python with all that they need, from PyPI, to pip in the pods.
func wheelsOf(ctx context.Context, requirements ...string) (address string) {
	GinkgoHelper()
	directory := GinkgoT().TempDir()
	options := []string{"-m", "pip", "download", "--quiet", "--dest", directory, "--python-version", "3.11", "--only-binary=:all:"}
	out, err := osexec.CommandContext(ctx, "python3", append(options, requirements...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	listener, err := net.Listen("tcp", net.JoinHostPort(here(ctx).String(), "0"))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: http.FileServer(http.Dir(directory)), ReadHeaderTimeout: limit}
	go func() { _ = server.Serve(listener) }() // ends when it is closed
	DeferCleanup(server.Close)
	return listener.Addr().String()
}

// kernel is one of JupyterLab's, whose channels are a WebSocket.
type kernel struct{ channels *websocket.Conn }

// startKernel waits until JupyterLab listens in a pod, and starts a kernel.
func startKernel(ctx context.Context, pod types.NamespacedName, token string) *kernel {
	GinkgoHelper()
	header := http.Header{"Authorization": {"token " + token}}
	var address string
	var started struct{ ID string }
	eventually(ctx, "JupyterLab to start a kernel", func(ctx context.Context) error {
		forwarded, stop, err := kubernetes.Forward(ctx, pod, 8888) // one that meets a closed port forwards no more
		if err != nil {
			return err
		}
		if err := postKernel(ctx, forwarded, header, &started); err != nil {
			stop()
			return err
		}
		address = forwarded
		DeferCleanup(stop)
		return nil
	})
	channels, response, err := websocket.Dial(ctx, "ws://"+address+"/api/kernels/"+started.ID+"/channels", &websocket.DialOptions{HTTPHeader: header})
	if response != nil && response.Body != nil {
		defer func() { _ = response.Body.Close() }() // nothing of it is wanted
	}
	Expect(err).NotTo(HaveOccurred())
	channels.SetReadLimit(1 << 20)
	DeferCleanup(channels.CloseNow)
	return &kernel{channels}
}

func postKernel(ctx context.Context, address string, header http.Header, started any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/api/kernels", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	request.Header = header
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	if answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("it answers %s", answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(started)
}

// message is one of Jupyter's protocol.
type message struct {
	Header   map[string]any `json:"header"`
	Parent   map[string]any `json:"parent_header"`
	Metadata map[string]any `json:"metadata"`
	Content  map[string]any `json:"content"`
	Channel  string         `json:"channel"`
	Type     string         `json:"msg_type,omitempty"`
}

// run executes a cell and returns what it prints, and the error that it ends with.
func (k *kernel) run(ctx context.Context, code string) string {
	GinkgoHelper()
	Expect(wsjson.Write(ctx, k.channels, message{
		Header:   map[string]any{"msg_id": code, "session": "notebook", "username": "", "msg_type": "execute_request", "version": "5.3"},
		Parent:   map[string]any{},
		Metadata: map[string]any{},
		Content:  map[string]any{"code": code, "silent": false},
		Channel:  "shell",
	})).To(Succeed())
	var said strings.Builder
	for {
		var got message
		Expect(wsjson.Read(ctx, k.channels, &got)).To(Succeed())
		if got.Parent["msg_id"] != code {
			continue
		}
		switch got.Type {
		case "stream":
			fmt.Fprint(&said, got.Content["text"])
		case "error":
			fmt.Fprint(&said, got.Content["ename"], ": ", got.Content["evalue"])
		case "status":
			if got.Content["execution_state"] == "idle" {
				return said.String()
			}
		}
	}
}
